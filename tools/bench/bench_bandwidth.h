// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reference measurements of memory bandwidth. Every run begins with them, because they give the
// floor of each case, its shortest possible time.
#pragma once

#include <vector>

#include "tools/bench/bench_case.h"

namespace oscar {

// Returns the cases for reads and then a copy of buffers that far exceed the L2 cache. They are
// part of BandwidthBench().
std::vector<BenchEntry> ReferenceBandwidth();

}  // namespace oscar
