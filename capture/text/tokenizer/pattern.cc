// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/tokenizer/pattern.h"

#include <fmt/format.h>

#include <string_view>

#include "capture/text/tokenizer/regex_dialect.h"
#include "linalg/base/error.h"

namespace oscar {

Regex ParsePattern(const Json& component, const std::string& where) {
  const Json& pattern = JsonMember(component, "pattern", where);
  const std::string inner = where + ".pattern";
  if (!pattern.is_object() || pattern.size() != 1 ||
      !(pattern.contains("Regex") || pattern.contains("String"))) {
    throw InputError(inner + ": expected an object with one member, \"Regex\" or \"String\"");
  }
  const bool is_regex = pattern.contains("Regex");
  const std::string text = JsonString(pattern, is_regex ? "Regex" : "String", inner);
  return is_regex ? OnigurumaRegex(text, inner) : Regex(text, Regex::Syntax::kLiteral, inner);
}

PatternReplacement::PatternReplacement(const Json& component, const std::string& where)
    : pattern_(ParsePattern(component, where)), content_(JsonString(component, "content", where)) {}

void CheckGrownBytes(size_t bytes, size_t max_bytes) {
  if (bytes <= max_bytes) return;
  throw InputError(fmt::format(
      "the tokenizer's replacements make a text longer than {} bytes, which no real tokenizer "
      "does; give rows with \"input_ids\" to calibrate without this tokenizer",
      max_bytes));
}

std::string PatternReplacement::Apply(std::string text, size_t max_bytes) const {
  RegexMatcher matcher(pattern_);
  matcher.Reset(text);
  std::string out;
  size_t done = 0;
  size_t begin = 0;
  size_t end = 0;
  while (matcher.Next(begin, end)) {
    CheckGrownBytes(out.size() + (begin - done) + content_.size(), max_bytes);
    out.append(text, done, begin - done);
    out += content_;
    done = end;
  }
  CheckGrownBytes(out.size() + text.size() - done, max_bytes);
  if (done == 0 && out.empty()) return text;
  return out.append(text, done);
}

}  // namespace oscar
