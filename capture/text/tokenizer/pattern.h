// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The "pattern" of a component of tokenizer.json: {"Regex": ...} or {"String": ...}. Split
// cuts at its matches, Replace replaces them. The replacement is literal text without
// groups.
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

// Limit to which a tokenizer's steps may enlarge a text of `bytes` bytes, and limit for its number
// of tokens. Composing and replacing enlarge a text at most elevenfold, and spaces by another
// factor of three. Without a limit, each step in a chain of replacements could double the text.
constexpr size_t MaxGrownBytes(size_t bytes) {
  constexpr size_t kLargeText = size_t{1} << 20;
  return bytes <= kLargeText ? 256 + 64 * bytes : 64 * kLargeText + 4 * (bytes - kLargeText) + 256;
}
// Throws InputError if `bytes` exceeds `max_bytes`.
void CheckGrownBytes(size_t bytes, size_t max_bytes);

}  // namespace oscar
