// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Are these bytes UTF-8? Trap: surrogates and overlong forms are not, though Python's pickle may
// write the former.
#pragma once

#include <string_view>

namespace oscar {

bool IsUtf8(std::string_view text);

}  // namespace oscar
