// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The result of calibrating one layer: plain data that is written to disk as it is (layer_file.h)
// and that exports read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calib/choose/choice.h"
#include "calib/choose/choice_points.h"
#include "calib/fit/side_result.h"
#include "calib/moments/layer_moments.h"

namespace oscar {

// Attention error of one way to store the cache (an arm), over sampled held-out query rows and all
// query heads.
struct ArmResult {
  std::string name;           // "naive", "hadamard", "oscar_shared", "oscar_per_head"
  int64_t rows = 0;           // query rows measured
  int64_t rows_beyond = 0;    // rows whose causal reach exceeds the sink and recent windows
  double kl_mean = 0;         // nats, KL(S‖Ŝ), over rows and query heads
  double kl_mean_beyond = 0;  // over rows beyond the windows; 0 if there are none
  double kl_max = 0;
  double output_rel_error = 0;  // ‖ŜV̂ - SV‖_F / ‖SV‖_F
  double output_rel_error_beyond = 0;
  double kl_mean_no_windows = 0;  // nats, if every key and value is quantized
  double output_rel_error_no_windows = 0;
};

// The arm "auto" at a point where the choice may end (choice_points.h).
struct AutoArm {
  ChoicePoint point;
  ArmResult arm;
};

struct LayerResult {
  LayerMoments moments;
  std::vector<double> clip_candidates;  // ratios of the error curves; empty if nothing was searched
  SideResult k, v;                      // per KV head
  SideResult k_shared, v_shared;
  std::vector<ArmResult> arms;  // empty if nothing was held out
  AutoChoice automatic;         // the headline's; not `made` if no choice was requested
  // Choices of the other consumers, in the order of OtherChoices.
  std::vector<AutoChoice> other_choices = {};
  // Other points where the choice may end; the arm "auto" in `arms` is at the current point.
  std::vector<AutoArm> auto_arms = {};
};

}  // namespace oscar
