// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Selects the modules that a quantization_config refers to, by names, regular expressions ("re:..."
// as in Python's re.match: anchored at the start only) and globs, each with a number. Patterns are
// untrusted. They run in time proportional to pattern times name (libstdc++'s breadth-first
// matcher), and syntax that Python and ECMAScript read differently is refused.
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
  // Throws InputError naming `what` if a rule with the same text has another value, or if a pattern
  // is not understood. A name that ends in "." matches all modules below it.
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
