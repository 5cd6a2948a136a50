// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The generator behind the built-in corpus: an integer random source and a text grammar. Trap: no
// std:: distribution, no hash order, no floating point and no two draws in one expression (their
// order is the compiler's choice) may decide anything here: the same bytes must come out on every
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "linalg/splitmix64.h"

namespace oscar {

// A symbol and what it may become. In an alternative, marks stand for:
//   «name»       a random alternative of that symbol, or the value bound to the name
//   «^name»      the same with a capital first letter (ASCII)
//   «x=name»     the same, and binds x to it until it is bound again
//   «10-99»      a random integer, both ends included
struct Rule {
  std::string_view symbol;
  std::vector<std::string_view> alternatives;
};

// An alternative does not come twice until the others of its symbol have come.
class Grammar {
 public:
  Grammar(std::span<const Rule> rules, SplitMix64& random);

  std::string Expand(std::string_view text);            // a text with marks
  std::string Make(std::string_view symbol);            // one alternative of a symbol
  void Bind(std::string_view name, std::string value);  // «name» is `value` from now on

 private:
  struct Symbol {
    std::span<const std::string_view> alternatives;
    std::vector<size_t> deck;  // indices that are still to come in this round
  };
  std::string Mark(std::string_view mark);

  SplitMix64& random_;
  std::map<std::string, Symbol, std::less<>> symbols_;
  std::map<std::string, std::string, std::less<>> bound_;
};

// Repeats `paragraph()` with `separator` between until at least `target_bytes` are there.
template <class MakeParagraph>
std::string Fill(size_t target_bytes, std::string_view separator, MakeParagraph paragraph) {
  std::string text;
  while (text.size() < target_bytes) {
    if (!text.empty()) text += separator;
    text += paragraph();
  }
  return text;
}

}  // namespace oscar
