// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The rules by which a quantization_config assigns numbers (of storage schemes) to modules. A rule
// is a name, a glob, or a regular expression ("re:...", anchored at the start only, as by Python's
// re.match). Patterns are untrusted: matching stops at a limit (files/regex.h), and syntax that
// Python and PCRE2 read differently is refused.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace oscar {

class ModuleRules {
 public:
  // These throw InputError naming `what` if a pattern is not supported, or if the same name, or
  // "all", was added with another value. A name that ends in "." matches all modules below it.
  void AddName(const std::string& name, size_t value, std::string_view what);
  void AddRegex(const std::string& pattern, size_t value, std::string_view what);
  void AddGlob(const std::string& pattern, size_t value, std::string_view what);  // with * and ?
  void AddAll(size_t value, std::string_view what);

  // Names have priority over patterns, and patterns over "all". Throws InputError if patterns with
  // different values match.
  std::optional<size_t> Match(std::string_view module) const;

 private:
  struct Pattern;
  std::map<std::string, size_t, std::less<>> names_;
  std::vector<std::shared_ptr<const Pattern>> patterns_;
  std::optional<size_t> all_;
};

}  // namespace oscar
