// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Implements oscar-validate --served: checks that a running server's cache matches the artifact.
#pragma once

#include "tools/cli/command.h"
#include "tools/validate/validate_options.h"

namespace oscar {

// Compares a server with the artifact. Returns exit code kGateFailed unless their caches agree with
// 95 % confidence. Throws as CompletionsClient does, and InputError if the server runs another
// model.
CommandResult CheckServed(ValidateOptions options, CommandContext& context);

}  // namespace oscar
