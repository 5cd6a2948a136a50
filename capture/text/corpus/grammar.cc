// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/corpus/grammar.h"

#include <algorithm>
#include <numeric>

#include "linalg/check.h"

namespace oscar {
namespace {

constexpr std::string_view kOpen = "«";
constexpr std::string_view kClose = "»";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Grammar::Grammar(std::span<const Rule> rules, SplitMix64& random) : random_(random) {
  for (const Rule& rule : rules) symbols_[std::string(rule.symbol)] = {rule.alternatives, {}};
}

void Grammar::Bind(std::string_view name, std::string value) {
  bound_[std::string(name)] = std::move(value);
}

std::string Grammar::Make(std::string_view symbol) {
  const auto found = symbols_.find(symbol);
  OSCAR_CHECK(found != symbols_.end());
  Symbol& rule = found->second;
  if (rule.deck.empty()) {
    rule.deck.resize(rule.alternatives.size());
    std::iota(rule.deck.begin(), rule.deck.end(), size_t{0});
  }
  const size_t drawn = random_.Below(rule.deck.size());
  const size_t index = rule.deck[drawn];
  rule.deck.erase(rule.deck.begin() + static_cast<ptrdiff_t>(drawn));
  return Expand(rule.alternatives[index]);
}

std::string Grammar::Expand(std::string_view text) {
  std::string out;
  while (true) {
    const size_t open = text.find(kOpen);
    out.append(text.substr(0, open));
    if (open == std::string_view::npos) return out;
    text.remove_prefix(open + kOpen.size());
    const size_t close = text.find(kClose);
    OSCAR_CHECK(close != std::string_view::npos);
    out += Mark(text.substr(0, close));
    text.remove_prefix(close + kClose.size());
  }
}

std::string Grammar::Mark(std::string_view mark) {
  if (IsDigit(mark.front())) {
    const size_t dash = mark.find('-');
    const int64_t low = std::stoll(std::string(mark.substr(0, dash)));
    return std::to_string(random_.Between(low, std::stoll(std::string(mark.substr(dash + 1)))));
  }
  if (mark.front() == '^') {
    std::string value = Mark(mark.substr(1));
    if (!value.empty() && value[0] >= 'a' && value[0] <= 'z') {
      value[0] = static_cast<char>(value[0] - 'a' + 'A');
    }
    return value;
  }
  if (const size_t equals = mark.find('='); equals != std::string_view::npos) {
    std::string value = Mark(mark.substr(equals + 1));
    Bind(mark.substr(0, equals), value);
    return value;
  }
  if (const auto bound = bound_.find(mark); bound != bound_.end()) return bound->second;
  return Make(mark);
}

}  // namespace oscar
