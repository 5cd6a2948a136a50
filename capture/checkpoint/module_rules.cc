// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/module_rules.h"

#include <fmt/format.h>

#include "capture/files/quote.h"
#include "capture/files/regex.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr size_t kLongestPattern = 1000;  // bytes
// Real models have lists of a few hundred entries at most; each entry is tested on every module.
constexpr size_t kMostPatterns = 2000, kMostPatternBytes = size_t{128} << 10;

Regex Compile(const std::string& pattern, std::string_view what) {
  try {
    if (pattern.size() <= kLongestPattern)
      return Regex(pattern, Regex::Syntax::kPython, std::string(what));
  } catch (const InputError&) {
  }
  throw InputError(
      fmt::format("{}: the regular expression {} is not supported; give the names of the modules "
                  "or a simpler expression",
                  what, Quoted(pattern)));
}

std::string RegexOfGlob(std::string_view glob) {
  std::string regex;
  for (const char c : glob) {
    if (c == '*') {
      regex += ".*";
    } else if (c == '?') {
      regex += '.';
    } else {
      if (std::string_view("\\^$.|+()[]{}").find(c) != std::string_view::npos) regex += '\\';
      regex += c;
    }
  }
  return regex + '$';
}

template <typename Pattern>
void AddPattern(std::vector<std::shared_ptr<const Pattern>>& patterns, const std::string& text,
                const std::string& regex, size_t value, std::string_view what) {
  size_t bytes = text.size();
  for (const auto& pattern : patterns) bytes += pattern->text.size();
  if (patterns.size() == kMostPatterns || bytes > kMostPatternBytes) {
    throw InputError(
        fmt::format("{}: more than {} module patterns, or more than {} bytes of patterns", what,
                    kMostPatterns, kMostPatternBytes));
  }
  patterns.push_back(std::make_shared<const Pattern>(Pattern{text, Compile(regex, what), value}));
}

}  // namespace

struct ModuleRules::Pattern {
  std::string text;
  Regex regex;
  size_t value;
};

void ModuleRules::AddName(const std::string& name, size_t value, std::string_view what) {
  const auto [entry, added] = names_.emplace(name, value);
  if (!added && entry->second != value) {
    throw InputError(fmt::format("{}: {} is in two groups", what, Quoted(name)));
  }
}

void ModuleRules::AddRegex(const std::string& pattern, size_t value, std::string_view what) {
  AddPattern(patterns_, pattern, pattern, value, what);
}

void ModuleRules::AddGlob(const std::string& glob, size_t value, std::string_view what) {
  if (glob.find_first_of("*?") == glob.npos) return AddName(glob, value, what);
  if (glob.find_first_of("[{") != glob.npos || glob.size() > kLongestPattern) {
    throw InputError(
        fmt::format("{}: the pattern {} is not supported; only * and ? are", what, Quoted(glob)));
  }
  AddPattern(patterns_, glob, RegexOfGlob(glob), value, what);
}

void ModuleRules::AddAll(size_t value, std::string_view what) {
  if (all_ && *all_ != value) {
    throw InputError(fmt::format("{}: two groups apply to all linear modules", what));
  }
  all_ = value;
}

std::optional<size_t> ModuleRules::Match(std::string_view module) const {
  if (const auto found = names_.find(module); found != names_.end()) return found->second;
  // Rules for "a.b." match all modules below a.b.
  for (size_t dot = module.rfind('.'); dot != module.npos && dot > 0;
       dot = module.rfind('.', dot - 1)) {
    const auto found = names_.find(module.substr(0, dot + 1));
    if (found != names_.end()) return found->second;
  }
  const Pattern* matched = nullptr;
  for (const auto& pattern : patterns_) {
    if (!pattern->regex.MatchesName(module)) continue;
    if (matched != nullptr && matched->value != pattern->value) {
      throw InputError(fmt::format(
          "quantization_config: module {} matches {} and {}, which mean different formats",
          Quoted(module), Quoted(matched->text), Quoted(pattern->text)));
    }
    matched = pattern.get();
  }
  return matched != nullptr ? std::optional(matched->value) : all_;
}

}  // namespace oscar
