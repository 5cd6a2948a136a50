// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A compiled pattern and its matches in a text (PCRE2: UTF, UCP, JIT if the machine supports it).
// Trap: a pattern from a file can backtrack without end; the match limit turns that into an error.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace oscar {

class Regex {
 public:
  // kPython only accepts patterns that mean the same in Python's re.match and in PCRE2. In such
  // patterns, ^ and $ match only at the ends of the text.
  enum class Syntax { kPcre2, kPython, kLiteral };

  // Throws InputError naming `where` if the pattern is refused or does not compile.
  Regex(std::string_view pattern, Syntax syntax, std::string where);

  // For kPython: whether the pattern matches at the beginning of a name in valid UTF-8. Throws
  // InputError if the match limit is exceeded, which is lower than for texts.
  bool MatchesName(std::string_view subject) const;

  class Code;

 private:
  friend class RegexMatcher;
  std::shared_ptr<const Code> code_;
};

// Scratch memory for one user of a regex. Matchers of one regex may run in parallel.
class RegexMatcher {
 public:
  explicit RegexMatcher(const Regex& regex);
  ~RegexMatcher();
  RegexMatcher(const RegexMatcher&) = delete;
  RegexMatcher& operator=(const RegexMatcher&) = delete;

  // Restarts at the beginning of `subject`, which must be valid UTF-8 and outlive the matching.
  void Reset(std::string_view subject);

  // Finds the next match [begin, end), in bytes. Like Rust's onig crate, it never returns an empty
  // match directly after another match. Throws InputError if the match limit is exceeded.
  bool Next(size_t& begin, size_t& end);

 private:
  struct Scratch;
  std::shared_ptr<const Regex::Code> code_;
  std::unique_ptr<Scratch> scratch_;
  std::string_view subject_;
  size_t search_from_ = 0;               // bytes
  size_t last_match_end_ = kNoMatchYet;  // bytes
  static constexpr size_t kNoMatchYet = static_cast<size_t>(-1);
};

}  // namespace oscar
