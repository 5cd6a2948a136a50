// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// --from: a dump instead of a model. A file is HDF5 and comes from oscar-capture; a directory comes
// from upstream's server. Only HDF5 stores the scale and the window of attention. For a directory,
// options give them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "capture/dump/attention_dump.h"
#include "tools/cli/log.h"
#include "tools/cli/option_table.h"

namespace oscar {

struct DumpArguments {
  std::string from;             // empty: no dump
  bool skip_warmup = true;      // skips the warm-up captures of a directory
  std::optional<double> scale;  // absent: 1 / sqrt(head_dim)
  bool allow_layer_gaps = false;
};
void AddDumpOptions(OptionTable& table, DumpArguments* dump);

// Opens a dump and logs its content. Throws UsageError or InputError.
std::shared_ptr<const AttentionDump> OpenDump(const DumpArguments& dump, Log& log);

}  // namespace oscar
