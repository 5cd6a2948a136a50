// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "export/evaluate/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace oscar {
namespace {

size_t Levenshtein(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, diagonal + 1, row[j] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string NearestName(std::string_view name, std::span<const std::string> known) {
  const auto found =
      std::min_element(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
        return Levenshtein(name, a) < Levenshtein(name, b);
      });
  return found == known.end() ? std::string() : *found;
}

}  // namespace oscar
