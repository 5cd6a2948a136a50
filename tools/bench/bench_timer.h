// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Times a case by the rules of README.md, in two ways. For `graph`, a CUDA graph launches every set
// of buffers once. A sample is the time of one replay between two events, divided by the number of
// sets. For `eager`, the host makes the same launches one by one, starting on an idle device. If a
// kernel is short, this measures the host, so both are reported.
#pragma once

#include <optional>
#include <vector>

#include "tools/bench/bench_case.h"

namespace oscar {

// The times of one launch in microseconds.
struct BenchSummary {
  double median = 0, p10 = 0, p90 = 0, min = 0;
  int samples = 0;
};
// Uses the nearest rank for percentiles. `us` must not be empty.
BenchSummary Summarize(std::vector<double> us);

struct BenchTiming {
  BenchSummary eager;
  std::optional<BenchSummary> graph;  // absent if the case cannot be captured
  const BenchSummary& best() const { return graph ? *graph : eager; }
};

// If a launch takes longer than this, a fifth of the samples are taken, but at least kFewSamples.
inline constexpr double kLongLaunchUs = 5000;
inline constexpr int kFewSamples = 20;
int SamplesFor(double launch_us, int samples);

// Times the launches of all sets. Throws ResourceError if a launch fails.
BenchTiming TimeCase(const BenchCase& bench, int samples);

}  // namespace oscar
