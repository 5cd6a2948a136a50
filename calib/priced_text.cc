// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/priced_text.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr int64_t kMostOfText = 4096;

// A position where a passage of a sequence may end.
struct End {
  size_t sequence = 0;
  int64_t at = 0;
};

// Reorders `ends` so that any number of them from the start is spread evenly over all.
std::vector<End> Spread(const std::vector<End>& ends, int64_t wanted) {
  const size_t stride = std::max<size_t>(1, ends.size() / static_cast<size_t>(wanted));
  std::vector<End> spread;
  for (size_t offset = 0; offset < stride; ++offset)
    for (size_t i = offset; i < ends.size(); i += stride) spread.push_back(ends[i]);
  return spread;
}

}  // namespace

TokenTexts FittedText(const TokenTexts& sequences, const HeldOutSplit& split, int64_t tokens,
                      int64_t least) {
  std::vector<End> whole, shorter, set_aside;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const int64_t fitted = split.fit_rows.at(i), size = std::ssize(sequences[i]);
    if (fitted >= least) {
      whole.push_back({i, fitted});
    } else if (fitted > 1) {
      shorter.push_back({i, fitted});
    } else if (size > 1) {
      set_aside.push_back({i, size});
    }
  }
  std::ranges::stable_sort(shorter, std::ranges::greater(), &End::at);
  const int64_t share = std::clamp(tokens / std::max<int64_t>(1, std::ssize(whole)), least,
                                   std::max(least, kMostOfText));
  std::vector<End> ends = Spread(whole, (tokens + share - 1) / share);
  ends.insert(ends.end(), shorter.begin(), shorter.end());
  ends.insert(ends.end(), set_aside.begin(), set_aside.end());
  TokenTexts texts;
  for (const End& end : ends) {
    const int64_t length = std::min({end.at, share, tokens});
    if (length < 2) break;
    const auto stop = sequences[end.sequence].begin() + end.at;
    texts.emplace_back(stop - length, stop);
    tokens -= length;
  }
  return texts;
}

TokenTexts HeldOutText(const TokenTexts& sequences, const HeldOutSplit& split, int64_t tokens) {
  TokenTexts texts;
  for (size_t i = 0; i < sequences.size() && tokens > 1; ++i) {
    const int64_t size = std::ssize(sequences[i]), length = std::min({size, kMostOfText, tokens});
    if (split.fit_rows.at(i) >= size || length < 2) continue;
    const auto begin = sequences[i].begin() + (split.fit_rows[i] == 0 ? 0 : size - length);
    texts.emplace_back(begin, begin + length);
    tokens -= length;
  }
  if (texts.empty()) {
    throw InputError(
        "no held-out text has two tokens, so next-token KL cannot be measured; give more data",
        Remedy::kHoldOutMore);
  }
  return texts;
}

int64_t NumTokens(const TokenTexts& texts) {
  return std::accumulate(texts.begin(), texts.end(), int64_t{0},
                         [](int64_t sum, const auto& text) { return sum + std::ssize(text); });
}

}  // namespace oscar
