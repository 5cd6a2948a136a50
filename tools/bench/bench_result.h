// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The output of oscar-bench. Each case has its times, its floor (the shortest possible time) and
// its limit (the longest accepted time). Decode cases also have their speedup over LibTorch. A case
// that failed or gave a wrong result has no times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "linalg/base/error.h"
#include "tools/bench/bench_timer.h"

namespace oscar {

struct BenchResult {
  std::string kernel, name;
  double bytes = 0, flops = 0, peak_tflops = 0, bar_us = 0;  // as in BenchCase
  int buffers = 0;
  std::optional<BenchTiming> timing;  // absent if the result is wrong
  std::optional<BenchCheck> check;    // absent if nothing ran
  std::string error;                  // why it did not run
  ExitCode error_code = ExitCode::kDone;
};

// The memory bandwidth in bytes per microsecond, measured in the same run.
struct BenchBandwidth {
  double read = 0, copy = 0;
};

// Makes, times and checks a case. It does not throw: the result holds the error.
BenchResult RunEntry(const BenchEntry& entry, int samples);

// Returns the highest read and copy bandwidth among the results of ReferenceBandwidth(). Throws
// ResourceError if there are none.
BenchBandwidth BestBandwidth(const std::vector<BenchResult>& results);

// Returns the shortest possible time: max(bytes / read bandwidth, flops / peak) in microseconds.
// Returns nothing if both are unknown, or if the data is not in device memory.
std::optional<double> FloorUs(const BenchResult& result, const BenchBandwidth& bandwidth);

// The speedup of a decode case over LibTorch's best BF16 attention at the same shape.
struct BenchRatio {
  std::string name;
  double ours_us = 0, peer_us = 0, bar = 0;  // bar: the required speedup, 0 for none
  double value() const { return peer_us / ours_us; }
};
std::vector<BenchRatio> PeerRatios(const std::vector<BenchResult>& results);
// Returns whether a case of the peer (LibTorch) must run together with decode, because the speedup
// over it is checked.
bool IsPeerOfDecode(const BenchEntry& entry);

Json BenchJson(const std::vector<BenchResult>& results, const BenchBandwidth& bandwidth,
               int64_t l2_bytes);
std::string BenchText(const std::vector<BenchResult>& results, const BenchBandwidth& bandwidth);

// Returns kGateFailed for a wrong result, else the exit code of the first failure.
ExitCode BenchExitCode(const std::vector<BenchResult>& results);

}  // namespace oscar
