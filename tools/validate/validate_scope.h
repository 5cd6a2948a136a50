// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Implements --scope of oscar-validate: the amount of measurement where no option sets it.
#pragma once

#include <string>

#include "tools/validate/validate_options.h"

namespace oscar {

struct AppliedScope {
  std::string name;  // "quick", "normal" or "thorough"
  std::string
      left_out;  // what the normal scope has and this run does not, and how to get it; or ""
};

// Fills in what `options` leave to the scope; "auto" is quick on a CPU and normal on a GPU. An
// option that asks for more of a part turns that part on.
AppliedScope ApplyScope(bool on_cpu, ValidateOptions& options);

}  // namespace oscar
