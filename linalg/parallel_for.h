// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Independent pieces of host work on all cores. Pieces run in any order at once, so each
// writes only to its own place, and what they leave must not depend on who came first.
#pragma once

#include <cstdint>
#include <functional>

namespace oscar {

// Calls body(0) .. body(count - 1), each once, on up to `num_threads` threads, this one among them;
// 0: as many as this process may run on. Returns when all have. Of what the bodies threw, the
// exception of the lowest index is thrown, the same one whatever the number of threads.
void ParallelFor(int64_t count, const std::function<void(int64_t)>& body, int num_threads = 0);

}  // namespace oscar
