// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Allocates bits to groups of neighbouring components under a budget. The last components may get
// no bits. This is the dynamic program of KVTC (arXiv 2511.01815, appendix B.17).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace oscar {

struct GroupOption {
  int64_t size = 1;  // components
  int64_t bits = 0;  // bits per token, metadata included
};

// Returns the groups with the smallest total error that fit into `budget` bits, as indices into
// `options`. The first group starts at the first component; components after the last group get no
// bits. `energies` holds the error of each component without bits. `error(begin, option)` returns
// the error of a group that starts at `begin`.
std::vector<size_t> AllocateGroups(std::span<const GroupOption> options,
                                   std::span<const double> energies,
                                   const std::function<double(int64_t begin, size_t option)>& error,
                                   int64_t budget);

}  // namespace oscar
