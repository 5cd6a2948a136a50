// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The "pattern" of a component of tokenizer.json: {"Regex": ...} or {"String": ...}; Split cuts at
// its matches, Replace puts other text in their place. The replacement is literal text,
// without groups.
#pragma once

#include <string>

#include "capture/files/strict_json.h"
#include "capture/text/split_regex.h"

namespace oscar {

// Member "pattern" of `component`. Throws InputError naming `where` for what is no pattern.
SplitRegex ParsePattern(const Json& component, const std::string& where);

// Members "pattern" and "content".
class PatternReplacement {
 public:
  PatternReplacement(const Json& component, const std::string& where);
  std::string Apply(std::string text) const;  // valid UTF-8
  const std::string& content() const { return content_; }

 private:
  SplitRegex pattern_;
  std::string content_;
};

}  // namespace oscar
