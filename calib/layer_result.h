// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What calibration finds out about one layer: plain data that is written to disk as it stands
// (layer_file.h) and read by export.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calib/auto_choice.h"
#include "calib/auto_points.h"
#include "calib/layer_moments.h"

namespace oscar {

// One side (keys or values) of one grouping (per KV head, or shared by all KV heads of the layer).
struct SideResult {
  int64_t num_rotations = 0;  // num_kv_heads, or 1 if shared
  int64_t dim = 0;            // d or dv
  std::vector<double>
      rotation;  // [num_rotations, dim, dim] row-major: a token is a row vector x, rotated x * R
  std::vector<double> eigenvalues;  // [num_rotations, dim] ascending
  double clip_ratio = 0;            // chosen
  std::vector<double> clip_error;   // [candidates] held-out error / energy of each candidate; empty
                                    // where not searched
  std::vector<double> clip_threshold;  // [num_kv_heads] clip_ratio percentile of |x R| over all
                                       // tokens; empty where there were none
  double orthogonality = 0;            // max|RᵀR - I| in float64, worst of the rotations
  double float32_orthogonality = 0;    // the same after the cast to float32
  double eigen_residual = 0;           // ‖AV - VΛ‖/‖A‖, worst
  double min_relative_gap = 0;  // smallest gap of neighbouring eigenvalues / largest eigenvalue
  double importance_max_over_mean = 0;  // of diag(Rᵀ C R): 1 is perfectly flat; worst
};

// Attention error of one way to store the cache, over sampled query rows of held-out tokens and all
// query heads.
struct ArmResult {
  std::string name;         // "naive", "hadamard", "oscar_shared", "oscar_per_head"
  int64_t rows = 0;         // query rows measured
  int64_t rows_beyond = 0;  // of them, those whose causal reach exceeds the sink and recent windows
  double kl_mean = 0;       // nats, KL(S‖Ŝ), over rows and query heads
  double kl_mean_beyond = 0;  // over rows beyond the windows; 0 if there are none
  double kl_max = 0;
  double output_rel_error = 0;  // ‖ŜV̂ - SV‖_F / ‖SV‖_F
  double output_rel_error_beyond = 0;
  double kl_mean_no_windows = 0;  // every key and value quantized
  double output_rel_error_no_windows = 0;
};

// The arm "auto" at a point that the choice may end at (auto_points.h).
struct AutoArm {
  ChoicePoint point;
  ArmResult arm;
};

struct LayerResult {
  LayerMoments moments;
  std::vector<double>
      clip_candidates;  // ratios that the curves stand over; empty where not searched
  SideResult k, v;      // per KV head
  SideResult k_shared, v_shared;
  std::vector<ArmResult> arms;  // empty where nothing was held out
  AutoChoice automatic;         // the headline's; not `made` where nothing was to be chosen
  // Those of the other consumers, in the order of OtherChoices.
  std::vector<AutoChoice> other_choices = {};
  // Where it may end, if that is not where it stands; the arm "auto" is of where it stands.
  std::vector<AutoArm> auto_arms = {};
};

}  // namespace oscar
