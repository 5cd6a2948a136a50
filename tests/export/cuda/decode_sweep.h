// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// One decode launch against float64 attention over the same bytes.
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
  // Query head h is that of a normal distribution times scale h % size; none: 1.
  std::vector<float> query_scales = {};
};

struct DecodeError {
  double worst = 0;        // |out - reference| / (|reference| row's sum p |v|), largest
  double worst_lse = 0;    // |lse - reference|
  std::string coordinate;  // of `worst`
  int rows_not_finite = 0;
  bool finite = true;  // all rows, and the same in both runs
};

// Workspace and outputs are filled with NaN first. Runs the kernel twice on the same workspace; the
// second result counts, and must equal the first.
DecodeError MeasureDecode(const DecodeCase& decode_case);

// fp16 probabilities and codes times scales in float32: rounding errors of 2^-11 relative to the
// sum of p sigma (code + |zero|), which is at most a few times sum p |v|.
inline constexpr double kDecodeTolerance = 2e-3;

}  // namespace oscar
