// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Plain substitution in text, without patterns.
#pragma once

#include <string>
#include <string_view>

namespace oscar {

// Replaces every non-empty `from`, from left to right. Replacements are not searched again.
inline std::string ReplaceAll(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace oscar
