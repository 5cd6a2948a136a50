// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows on the device with their values known on the host, and plain float64 sums of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "export/cuda/device/device_array.h"
#include "export/cuda/statistics/attention_rows.h"

namespace oscar {

struct RowsShape {
  RowType type = RowType::kBFloat16;
  int64_t num_tokens = 0;
  int num_heads = 1, num_kv_heads = 1, dim = 128;
  int head_gap = 0, token_gap = 0;  // values between heads and between tokens: NaN
};
std::string Describe(const RowsShape& shape);

// How values are distributed.
//   kNormal      standard normal
//   kLargeMean   50 + normal, by feature of either sign: what keys with a bias look like
//   kHeavyTails  normal / |normal|^1.5, clamped to 1e4
enum class RowsKind { kNormal, kLargeMean, kHeavyTails };
inline constexpr RowsKind kRowsKinds[] = {RowsKind::kNormal, RowsKind::kLargeMean,
                                          RowsKind::kHeavyTails};
const char* RowsKindName(RowsKind kind);

struct TestRows {
  std::vector<double> values;   // [num_tokens, num_heads, dim] as rounded to the type
  DeviceArray<uint8_t> memory;  // with gaps
  AttentionRows rows;           // in `memory`
};
TestRows MakeRows(const RowsShape& shape, RowsKind kind, uint64_t seed);

// [num_kv_heads, dim, dim] Σ w xᵀx; weights [num_tokens, num_kv_heads], empty: 1.
std::vector<double> HostGram(const TestRows& x, const std::vector<double>& weights = {});

// The largest |a - b|_ij / sqrt(b_ii b_jj) over [matrices, dim, dim], and where it is.
struct GramError {
  double worst = 0;
  std::string where;
};
GramError WorstGramError(const std::vector<double>& a, const std::vector<double>& b, int dim);

}  // namespace oscar
