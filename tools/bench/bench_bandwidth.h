// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reference measurements of memory bandwidth. Every run begins with them, because floors are
// computed from them.
#pragma once

#include <vector>

#include "tools/bench/bench_case.h"

namespace oscar {

// Measures reads, then a copy, of buffers far larger than any cache. Part of BandwidthBench().
std::vector<BenchEntry> ReferenceBandwidth();

}  // namespace oscar
