// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-validate --served: whether a running server reads its cache as the artifact says.
#pragma once

#include "tools/cli/command.h"
#include "tools/validate/validate_options.h"

namespace oscar {

// Exit code kGateFailed unless the server behaves like the artifact at 95 % confidence. Throws as
// CompletionsClient does; InputError for a server of another model.
CommandResult CheckServed(ValidateOptions options, CommandContext& context);

}  // namespace oscar
