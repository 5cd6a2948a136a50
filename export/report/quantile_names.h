// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The quantiles of distributions in report.json, ascending. They are the quantiles that
// llama-perplexity prints.
#pragma once

namespace oscar {

struct NamedQuantile {
  const char* name;
  double probability;
};
inline constexpr NamedQuantile kReportQuantiles[] = {
    {"min", 0},    {"p0_1", 0.001},  {"p1", 0.01},  {"p5", 0.05}, {"p10", 0.1},
    {"p25", 0.25}, {"median", 0.5},  {"p75", 0.75}, {"p90", 0.9}, {"p95", 0.95},
    {"p99", 0.99}, {"p99_9", 0.999}, {"max", 1}};

}  // namespace oscar
