// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs independent pieces of host work on all cores. Pieces run concurrently in any order, so each
// piece writes only to its own place, and results must not depend on the order.
#pragma once

#include <cstdint>
#include <functional>

namespace oscar {

// Calls body(i) exactly once for each i in [0, count), on up to `num_threads` threads including
// this one (0: as many as this process may run on). Returns when all calls have finished. If calls
// throw, rethrows the exception of the lowest i, whatever the number of threads.
void ParallelFor(int64_t count, const std::function<void(int64_t)>& body, int num_threads = 0);

}  // namespace oscar
