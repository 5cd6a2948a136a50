// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Implements oscar-validate --served: checks that a running server's cache matches the artifact.
#pragma once

#include "tools/cli/command.h"
#include "tools/validate/validate_options.h"

namespace oscar {

// Compares a server with the artifact. Returns exit code kGateFailed unless they agree at 95 %
// confidence. Throws as CompletionsClient does, and InputError for a server of another model.
CommandResult CheckServed(ValidateOptions options, CommandContext& context);

}  // namespace oscar
