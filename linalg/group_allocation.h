// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Neighbouring components coded in groups under a budget of bits, the last ones with none: the
// dynamic program of KVTC (arXiv 2511.01815, appendix B.17).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace oscar {

struct GroupOption {
  int64_t size = 1;  // components
  int64_t bits = 0;  // of one token, metadata included
};

// The groups of least error, from the first component on, that `budget` bits pay for, as indices
// into `options`; what lies behind the last group has no bits. `energies`: of the components, which
// is the error of those without bits. `error(begin, option)`: of components from `begin` on.
std::vector<size_t> AllocateGroups(std::span<const GroupOption> options,
                                   std::span<const double> energies,
                                   const std::function<double(int64_t begin, size_t option)>& error,
                                   int64_t budget);

}  // namespace oscar
