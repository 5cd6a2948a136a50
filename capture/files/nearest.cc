// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/nearest.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace oscar {
namespace {

bool SameLetter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  // Three rows of the table: the second to last, the last and the current one. Column j is for the
  // first j bytes of `b`.
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (SameLetter(a[i - 1], b[j - 1]) ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && SameLetter(a[i - 1], b[j - 2]) && SameLetter(a[i - 2], b[j - 1]))
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string Nearest(std::string_view name, const std::vector<std::string>& known) {
  constexpr size_t kMost = 3, kLeastPart = 3;  // most suggestions; fewest letters to find in names
  std::vector<std::pair<size_t, size_t>> order;  // distance, index
  for (size_t i = 0; i < known.size(); ++i) {
    const auto part =
        std::search(known[i].begin(), known[i].end(), name.begin(), name.end(), SameLetter);
    const bool contains = name.size() >= kLeastPart && part != known[i].end();
    order.emplace_back(contains ? 0 : EditDistance(name, known[i]), i);
  }
  std::ranges::sort(order);
  std::string list;
  for (size_t i = 0; i < std::min(kMost, order.size()); ++i)
    list += (i == 0 ? "" : ", ") + known[order[i].second];
  return list;
}

}  // namespace oscar
