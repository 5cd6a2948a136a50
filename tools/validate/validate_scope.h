// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Implements --scope of oscar-validate: how much is measured if no option sets it.
#pragma once

#include <string>

#include "tools/validate/validate_options.h"

namespace oscar {

struct AppliedScope {
  std::string name;  // "quick", "normal" or "thorough"
  std::string
      left_out;  // the parts of the normal scope that this run leaves out, and how to add them; or
                 // ""
};

// Sets the options that the user left to the scope. The scope "auto" is quick on a CPU and normal
// on a GPU. An option for a part of the validation, such as --needle-lengths, turns that part on.
AppliedScope ApplyScope(bool on_cpu, ValidateOptions& options);

}  // namespace oscar
