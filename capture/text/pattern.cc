// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/pattern.h"

#include <string_view>

#include "linalg/error.h"

namespace oscar {

SplitRegex ParsePattern(const Json& component, const std::string& where) {
  const Json& pattern = JsonMember(component, "pattern", where);
  const std::string inner = where + ".pattern";
  if (!pattern.is_object() || pattern.size() != 1 ||
      !(pattern.contains("Regex") || pattern.contains("String"))) {
    throw InputError(inner + ": expected an object with one member, \"Regex\" or \"String\"");
  }
  const bool is_regex = pattern.contains("Regex");
  return {JsonString(pattern, is_regex ? "Regex" : "String", inner),
          is_regex ? SplitRegex::Syntax::kOniguruma : SplitRegex::Syntax::kLiteral, inner};
}

PatternReplacement::PatternReplacement(const Json& component, const std::string& where)
    : pattern_(ParsePattern(component, where)), content_(JsonString(component, "content", where)) {}

std::string PatternReplacement::Apply(std::string text) const {
  RegexMatcher matcher(pattern_);
  matcher.Reset(text);
  std::string out;
  size_t done = 0;
  size_t begin = 0;
  size_t end = 0;
  while (matcher.Next(begin, end)) {
    out.append(text, done, begin - done);
    out += content_;
    done = end;
  }
  if (done == 0 && out.empty()) return text;
  return out.append(text, done);
}

}  // namespace oscar
