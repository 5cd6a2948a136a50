// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tells users if the zoo in OSCAR_ZOO already has rotations for their model.
#pragma once

#include <string>

namespace oscar {

// Returns a sentence with the command that pulls rotations for `model` from the zoo. Returns "" if
// OSCAR_ZOO is not set or nothing fits. Mentions a zoo that cannot be read, without failing.
std::string ZooHint(const std::string& model);

}  // namespace oscar
