// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The benchmarks of oscar-bench: one function per file of this folder, and a table of these
// functions. To add a benchmark, add a file and a row. Making entries is cheap and needs no GPU;
// only BenchEntry::make needs one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/bench/bench_case.h"

namespace oscar {

std::vector<BenchEntry> BandwidthBench();    // memory bandwidth, the reference for the others
std::vector<BenchEntry> PeerBench();         // LibTorch's BF16 attention
std::vector<BenchEntry> DecodeBench();       // decode attention over the quantized cache
std::vector<BenchEntry> AttentionKlBench();  // KL of a layer's attention rows
std::vector<BenchEntry> WriteBench();        // rotate, clip, quantize, pack; flush; append

// The table's rows, in the order in which they run and print.
std::span<const BenchEntries> BenchTable();

}  // namespace oscar
