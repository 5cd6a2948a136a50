// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/choose/head_bits.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "calib/choose/bit_allocation.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

double MeanOf(const std::vector<double>& heads) {
  return std::accumulate(heads.begin(), heads.end(), 0.0) / static_cast<double>(heads.size());
}

// Combines the options in `whole`: each head takes the option with its bits.
SideOption Mixed(std::span<const SideOption> whole,
                 std::span<const std::vector<std::vector<double>>> in_windows,
                 const std::vector<double>& head_bits) {
  SideOption mixed{.bits = MeanOf(head_bits), .clip = {}};
  if (!in_windows.empty()) mixed.in_windows.resize(in_windows[0].size());
  for (size_t head = 0; head < head_bits.size(); ++head) {
    const auto at = static_cast<size_t>(
        std::ranges::find(whole, head_bits[head], &SideOption::bits) - whole.begin());
    const SideOption& own = whole[at];
    mixed.head_bits.push_back(static_cast<int>(own.bits));
    mixed.clip.push_back(own.clip.size() == 1 ? own.clip[0] : own.clip.at(head));
    mixed.head_score.push_back(own.head_score.at(head));
    mixed.head_check.push_back(own.head_check.at(head));
    for (size_t w = 0; w < mixed.in_windows.size(); ++w)
      mixed.in_windows[w] += in_windows[at].at(w).at(head) / static_cast<double>(head_bits.size());
  }
  mixed.score = MeanOf(mixed.head_score);
  mixed.check = MeanOf(mixed.head_check);
  return mixed;
}

}  // namespace

void AddHeadBits(std::span<const std::vector<std::vector<double>>> in_windows,
                 std::vector<SideOption>& options) {
  const std::vector<SideOption> whole = options;
  const size_t heads = whole.at(0).head_score.size();
  OSCAR_CHECK(in_windows.empty() || in_windows.size() == whole.size());
  if (heads < 2) return;
  std::vector<BitPart> parts(heads, {.elements = 1, .points = {}});
  for (const SideOption& option : whole) {
    for (size_t head = 0; head < heads; ++head) {
      const double score = option.head_score.at(head);
      parts[head].points.push_back({option.bits, in_windows.empty() ? score * score : score});
    }
  }
  for (const double bits : kMixedBits) {
    if (bits >= whole.back().bits) break;
    SideOption mixed =
        Mixed(whole, in_windows, AllocateBits(parts, bits * static_cast<double>(heads)));
    const auto alike = [&](int of_head) { return of_head == mixed.head_bits[0]; };
    if (std::ranges::all_of(mixed.head_bits, alike)) continue;
    const auto same = std::ranges::find(options, mixed.bits, &SideOption::bits);
    if (same == options.end()) {
      options.push_back(std::move(mixed));
    } else if (same->head_bits.empty() && mixed.score < (1 - kWorthwhile) * same->score &&
               mixed.check <= same->check) {
      *same = std::move(mixed);
    }
  }
  std::ranges::sort(options, {}, &SideOption::bits);
}

}  // namespace oscar
