// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Quotes text from hostile files for our messages: escapes control and non-UTF-8 bytes, and
// shortens long text (and says so).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace oscar {

// `text` in double quotes, at most `max_bytes` of it; `Quoted("a
// b")` is `"a
// b"` with the newline written as backslash and n.
std::string Quoted(std::string_view text, size_t max_bytes = 120);

// Quoted without the quotes, for text that is already a sentence.
std::string Escaped(std::string_view text, size_t max_bytes = 300);

}  // namespace oscar
