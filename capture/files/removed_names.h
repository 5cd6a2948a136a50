// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Names from earlier releases, for errors that say that a name was removed and what to use instead.
#pragma once

#include <string>
#include <string_view>

namespace oscar {

// Returns the hint after an unknown name: "was removed; use kivi2_g32 instead", or "" if no release
// had it.
std::string RemovedHint(std::string_view name);

}  // namespace oscar
