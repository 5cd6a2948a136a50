// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A case of oscar-bench: a launch, and the check of its result. Launches use several sets of
// buffers in turn. Trap: if all sets fit into the L2 cache, the case times that cache and not
// memory. Give as many sets as a model has layers, or more bytes than the cache holds.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <vector>

namespace oscar {

struct BenchCheck {
  bool ok = false;
  std::string text;  // what was compared, and where the worst error is
};

struct BenchCase {
  double bytes = 0;        // per launch: each input read once, each output written once
  double flops = 0;        // per launch, 0 if memory bandwidth is the only limit
  double peak_tflops = 0;  // peak of the unit that computes them
  double bar_us = 0;       // the longest accepted time on an H200; 0: no limit
  int buffers = 36;        // sets of buffers; launches take turns
  std::function<void(cudaStream_t stream, int set)> launch;  // can be captured in a graph
  std::function<BenchCheck()> check;                         // called after each set was launched
  bool graph = true;                                         // whether the launch can be captured
};

// A benchmark by name. The case is made only when it runs, because it holds gigabytes.
struct BenchEntry {
  std::string kernel;  // as selected on the command line: "decode"
  std::string name;    // for example "batch 1, 30000 tokens"
  std::function<BenchCase()> make;
};

// Each file of this folder has one such function; bench_table.cc lists them.
using BenchEntries = std::vector<BenchEntry> (*)();

}  // namespace oscar
