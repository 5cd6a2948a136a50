// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The options of a calibration. The names of enum values are stored in artifacts and never
// change.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "calib/consumers.h"
#include "linalg/cache_windows.h"  // CacheWindows
#include "linalg/rotation.h"       // Composition

namespace oscar {

// clang-format off
// The second moment that value rotations are fitted to.
//   attention_output  OᵀO / (T g), O = softmax(q kᵀ scale) v: the paper's VᵀSᵀSV (arXiv 2605.17757, C_S)
//   diagonal          Vᵀ diag(w) V / Σw, w_t = k_t C_Q k_tᵀ: what upstream's compute_kv_rotation.py calls sst
// clang-format on
enum class ValueTarget { kAttentionOutput, kDiagonal };
std::string_view ValueTargetName(ValueTarget target);
ValueTarget ValueTargetFromName(std::string_view name);  // throws UsageError listing the names

enum class ClipMode { kSearch, kFixed };
std::string_view ClipModeName(ClipMode mode);

struct FitOptions {
  ValueTarget value_target = ValueTarget::kAttentionOutput;
  Composition composition = Composition::kRHPbr;
};

struct ClipOptions {
  ClipMode mode = ClipMode::kSearch;
  double fixed_k = 0.96;  // upstream's recipe
  double fixed_v = 0.92;
  // Candidates of the search, ascending. 1 is the largest magnitude itself, so it clips nothing.
  std::vector<double> candidates = {0.80, 0.82, 0.84, 0.86, 0.88, 0.90,
                                    0.92, 0.94, 0.96, 0.98, 1.00};
  int64_t quant_group_size = 0;  // values per scale; 0: the head dimension
};

// Options for searching a layer's quantization settings. Searches for different consumers
// (consumers.h) differ only in `automatic`.
struct SearchOptions {
  AutoOptions automatic = {};
  Composition composition = Composition::kRHPbr;
  int64_t quant_group_size = 0;  // values per scale; 0: the head dimension
  CacheWindows windows = {64, 256};
};

// All options. Each phase receives only the parts that it needs.
struct CalibrationOptions {
  FitOptions fit = {};
  ClipOptions clip = {};
  AutoOptions automatic = {};
  double held_out = 0.1;        // share of tokens on which clipping and errors are judged
  int64_t min_tokens = -1;      // per head; -1: 20 * head_dim
  int64_t sink_tokens = 64;     // kept in bf16 at the start of a sequence
  int64_t recent_tokens = 256;  // kept in bf16 at the end of a sequence
  int64_t error_rows = 128;  // query rows per held-out sequence on which attention KL is measured

  CacheWindows windows() const { return {sink_tokens, recent_tokens}; }
  SearchOptions search() const {
    return {automatic, fit.composition, clip.quant_group_size, windows()};
  }
};

}  // namespace oscar
