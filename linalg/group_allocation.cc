// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/group_allocation.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "linalg/base/check.h"

namespace oscar {

std::vector<size_t> AllocateGroups(std::span<const GroupOption> options,
                                   std::span<const double> energies,
                                   const std::function<double(int64_t begin, size_t option)>& error,
                                   int64_t budget) {
  OSCAR_CHECK(options.size() <= std::numeric_limits<int8_t>::max());
  int64_t unit = 0;  // every group's number of bits is a multiple of this
  for (const GroupOption& option : options) unit = std::gcd(unit, option.bits);
  if (unit == 0) return {};
  const auto components = static_cast<int64_t>(energies.size());
  const int64_t units = budget / unit;
  // `errors` holds the least error of the first `end` components at a cost of `spent` units, and
  // `last` holds the option of the last group in that allocation.
  const auto count = static_cast<size_t>((components + 1) * (units + 1));
  std::vector<double> errors(count, std::numeric_limits<double>::infinity());
  std::vector<int8_t> last(count);
  const auto at = [&](int64_t end, int64_t spent) {
    return static_cast<size_t>(end * (units + 1) + spent);
  };
  errors[0] = 0;
  for (int64_t end = 1; end <= components; ++end) {
    for (size_t i = 0; i < options.size(); ++i) {
      const int64_t begin = end - options[i].size, cost = options[i].bits / unit;
      if (begin < 0 || cost > units) continue;
      const double own = error(begin, i);
      for (int64_t spent = cost; spent <= units; ++spent) {
        const double sum = errors[at(begin, spent - cost)] + own;
        if (!(sum < errors[at(end, spent)])) continue;
        errors[at(end, spent)] = sum;
        last[at(end, spent)] = static_cast<int8_t>(i);
      }
    }
  }
  // Among equally good allocations, the shortest wins.
  double tail = std::accumulate(energies.begin(), energies.end(), 0.0),
         least = std::numeric_limits<double>::infinity();
  int64_t end = 0, spent = 0;
  for (int64_t e = 0; e <= components; ++e) {
    if (e > 0) tail -= energies[static_cast<size_t>(e - 1)];
    for (int64_t s = 0; s <= units; ++s) {
      if (errors[at(e, s)] + tail >= least) continue;
      least = errors[at(e, s)] + tail;
      end = e;
      spent = s;
    }
  }
  std::vector<size_t> groups;
  while (end > 0) {
    groups.push_back(static_cast<size_t>(last[at(end, spent)]));
    end -= options[groups.back()].size;
    spent -= options[groups.back()].bits / unit;
  }
  std::ranges::reverse(groups);
  return groups;
}

}  // namespace oscar
