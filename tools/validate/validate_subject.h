// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a validation on a model or on a dump. Both functions return the report's "validation"
// without its gate, or nothing if only samples or the plan were printed.
#pragma once

#include <future>
#include <memory>
#include <optional>

#include "export/artifact/moment_check.h"
#include "tools/cli/command.h"
#include "tools/input/rank_job.h"
#include "tools/validate/validate_input.h"
#include "tools/validate/validate_options.h"

namespace oscar {

std::optional<Json> OnDump(const ValidateOptions& options,
                           const std::shared_ptr<const AttentionDump>& dump,
                           const Artifact& artifact, CommandContext& context);
// Waits for `checked` after the model is open.
std::optional<Json> OnModel(const ValidateOptions& options, const Artifact& artifact,
                            std::future<MomentCheck> checked, const RankGroup& group,
                            CommandContext& context);

}  // namespace oscar
