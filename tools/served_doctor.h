// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-calibrate doctor --served: a checkpoint directory as a runtime sees it, on one screen or as
// JSON. Exit code 3 where the runtime would ignore, misread or refuse something; without a runtime
// given, where every one that reads anything there would.
#pragma once

#include <filesystem>

#include "tools/cli/command.h"
#include "tools/cli/option_table.h"

namespace oscar {

struct ServedOptions {
  std::string directory;
  unsigned runtime = 0;  // of ServedRuntime; 0: all that read anything
};

void AddServedOptions(OptionTable& table, ServedOptions* options);

CommandResult DoctorServed(const ServedOptions& options, bool json, CommandContext& context);

}  // namespace oscar
