// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares a decode launch with float64 attention over the same bytes.
#pragma once

#include <string>
#include <vector>

#include "export/cuda/decode/decode_attention.h"
#include "export/cuda/reference/random_cache.h"

namespace oscar {

struct DecodeCase {
  RandomCacheOptions cache;
  int num_q_heads = 8;
  DecodeRule rule = {.scale = 0.0883883F};
  bool attention_sinks = false;
  // Factors of normally distributed queries: head h uses entry h % size. Empty: all 1.
  std::vector<float> query_scales = {};
};

struct DecodeError {
  double worst = 0;        // largest |out - reference|, divided by the row's largest sum p |v|
  double worst_lse = 0;    // largest |lse - reference|
  std::string coordinate;  // where `worst` occurred
  int rows_not_finite = 0;
  bool finite = true;  // whether all rows are finite and the same in both runs
};

// Fills workspace and outputs with NaN and runs the kernel twice on the same workspace. Compares
// the second result, which must equal the first.
DecodeError MeasureDecode(const DecodeCase& decode_case);

// Probabilities are fp16, and codes times scales are float32. So rounding errors are 2^-11 of the
// sum of p sigma (code + |zero|), which is at most a few times the sum of p |v|.
inline constexpr double kDecodeTolerance = 2e-3;

}  // namespace oscar
