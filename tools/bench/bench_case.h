// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A case of oscar-bench: one launch on one of several distinct sets of buffers, and the check of
// its result. Trap: a set that fits the L2 cache is timed in that cache, not in memory. Give as
// many sets as a model has layers, or more bytes than the cache holds.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <vector>

namespace oscar {

struct BenchCheck {
  bool ok = false;
  std::string text;  // what was compared with what, the worst error and where
};

struct BenchCase {
  double bytes = 0;        // per launch: each input read once, each output written once
  double flops = 0;        // per launch, 0 where bytes are the floor
  double peak_tflops = 0;  // of the unit that does them
  double bar_us = 0;       // the longest time that is accepted on an H200; 0: no limit
  int buffers = 36;        // sets of buffers
  std::function<void(cudaStream_t stream, int set)> launch;  // capturable in a graph
  std::function<BenchCheck()> check;  // after every set was launched at least once
  bool graph = true;                  // whether it can be captured
};

// An entry has a name before its case is made, because a case holds gigabytes while it lives.
struct BenchEntry {
  std::string kernel;  // "decode": what the command line selects
  std::string name;    // "batch 1, 30000 tokens"
  std::function<BenchCase()> make;
};

// One function per file of this folder; the table is in bench_table.cc.
using BenchEntries = std::vector<BenchEntry> (*)();

}  // namespace oscar
