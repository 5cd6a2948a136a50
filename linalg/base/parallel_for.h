// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs independent pieces of host work on all cores. Pieces run concurrently in any order, so each
// writes only to its own place, and results must not depend on the order.
#pragma once

#include <cstdint>
#include <functional>

namespace oscar {

// Calls body(0) .. body(count - 1), each once, on up to `num_threads` threads including this one; 0
// means as many as this process may run on. Returns when all have finished. If bodies throw, the
// exception of the lowest index is rethrown, which does not depend on the number of threads.
void ParallelFor(int64_t count, const std::function<void(int64_t)>& body, int num_threads = 0);

}  // namespace oscar
