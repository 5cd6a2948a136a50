// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Text from hostile files inside our messages: quoted, control and non-UTF-8 bytes escaped, long
// text cut (and said to be).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace oscar {

// "text" in double quotes with at most `max_bytes` of it; `Quoted("a\nb")` is `"a\nb"` with the
// newline written as backslash and n.
std::string Quoted(std::string_view text, size_t max_bytes = 120);

// The same without the quotes, for text that is already a sentence.
std::string Escaped(std::string_view text, size_t max_bytes = 300);

}  // namespace oscar
