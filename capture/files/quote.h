// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Quotes text from untrusted files in messages: escapes control and non-UTF-8 bytes, and marks
// where it shortens long text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace oscar {

// Returns `text` in double quotes, at most `max_bytes` of it. Control characters become escapes
// (\n).
std::string Quoted(std::string_view text, size_t max_bytes = 120);

// Quoted without the quotes, for text that is already a sentence.
std::string Escaped(std::string_view text, size_t max_bytes = 300);

}  // namespace oscar
