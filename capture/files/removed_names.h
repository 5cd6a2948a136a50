// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Names that earlier releases knew: an error says that one was removed and what to use instead.
#pragma once

#include <string>
#include <string_view>

namespace oscar {

// What follows a name that was not found: "was removed; use kivi2_g32 instead", or "" if no release
// ever knew it.
std::string RemovedHint(std::string_view name);

}  // namespace oscar
