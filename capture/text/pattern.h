// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The "pattern" of a component of tokenizer.json: {"Regex": ...} or {"String": ...}; Split cuts at
// its matches, Replace puts other text in their place. The replacement is literal text,
// without groups.
#pragma once

#include <cstddef>
#include <string>

#include "capture/files/regex.h"
#include "capture/files/strict_json.h"

namespace oscar {

// Member "pattern" of `component`. Throws InputError naming `where` for what is no pattern.
Regex ParsePattern(const Json& component, const std::string& where);

// Members "pattern" and "content".
class PatternReplacement {
 public:
  PatternReplacement(const Json& component, const std::string& where);
  // Valid UTF-8. Throws InputError if the result would have more than `max_bytes`.
  std::string Apply(std::string text, size_t max_bytes) const;
  const std::string& content() const { return content_; }

 private:
  Regex pattern_;
  std::string content_;
};

// How long the steps of a tokenizer may make a text of `bytes` bytes, or as many tokens. What is
// composed and replaced grows elevenfold, and spaces again threefold; a chain of replacements
// without a bound doubles the text with each.
constexpr size_t MaxGrownBytes(size_t bytes) {
  constexpr size_t kLargeText = size_t{1} << 20;
  return bytes <= kLargeText ? 256 + 64 * bytes : 64 * kLargeText + 4 * (bytes - kLargeText) + 256;
}
// Throws InputError if `bytes` exceeds `max_bytes`.
void CheckGrownBytes(size_t bytes, size_t max_bytes);

}  // namespace oscar
