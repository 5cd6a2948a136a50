// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The "pattern" of a component of tokenizer.json: {"Regex": ...} or {"String": ...}. The component
// Split cuts a text at the matches, and Replace replaces them by literal text (no references to
// groups).
#pragma once

#include <cstddef>
#include <string>

#include "capture/files/regex.h"
#include "capture/files/strict_json.h"

namespace oscar {

// Parses the member "pattern" of `component`. Throws InputError naming `where` if it is not a
// pattern.
Regex ParsePattern(const Json& component, const std::string& where);

// The members "pattern" and "content".
class PatternReplacement {
 public:
  PatternReplacement(const Json& component, const std::string& where);
  // Takes valid UTF-8. Throws InputError if the result would exceed `max_bytes`.
  std::string Apply(std::string text, size_t max_bytes) const;
  const std::string& content() const { return content_; }

 private:
  Regex pattern_;
  std::string content_;
};

// Returns the number of bytes to which a tokenizer may enlarge a text of `bytes` bytes; the number
// of tokens is limited in the same way. Unicode normalization enlarges a text at most elevenfold,
// and the replacement of spaces by another factor of three. Without a limit, each step in a chain
// of replacements could double the text.
constexpr size_t MaxGrownBytes(size_t bytes) {
  constexpr size_t kLargeText = size_t{1} << 20;
  return bytes <= kLargeText ? 256 + 64 * bytes : 64 * kLargeText + 4 * (bytes - kLargeText) + 256;
}
// Throws InputError if `bytes` exceeds `max_bytes`.
void CheckGrownBytes(size_t bytes, size_t max_bytes);

}  // namespace oscar
