// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures what a quantized cache does to attention: KL(S‖Ŝ) and output error on sampled held-out
// query rows, for several ways to store the cache (arms). The scalar reference is
// tests/reference/scalar_attention_kl.h. Errors are local: every arm sees the reference queries,
// keys and values of this layer, and nothing propagates between layers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calib/choose/choice_points.h"
#include "calib/job/layer_result.h"
#include "calib/observe/statistics_observer.h"
#include "calib/options.h"
#include "calib/search/search_cost.h"

namespace oscar {

// One way to store the cache. A clip ratio <= 0 clips nothing.
struct CacheArm {
  std::string name;
  const SideResult* k = nullptr;
  const SideResult* v = nullptr;
  double k_clip = 0;
  double v_clip = 0;
  // If set, this automatic choice at `point`, in bf16 arithmetic, replaces everything above except
  // the name. Adjacent arms of one choice with equal keys take little more time than one arm.
  const AutoChoice* choice = nullptr;
  ChoicePoint point = {};
};

// Returns the type in which a calibration measures errors: kFloat on a CPU, where it takes half the
// time and has a relative error of 1e-5; otherwise kDouble.
at::ScalarType ErrorType(at::DeviceType device);

// Measures every arm twice: with the sink and recent windows of `windows` kept exact, and without
// windows. `type`: kDouble or kFloat.
std::vector<ArmResult> MeasureAttentionError(const ObservedLayer& layer, const LayerSpec& spec,
                                             const std::vector<CacheArm>& arms,
                                             const CacheWindows& windows,
                                             int64_t quant_group_size = 0,
                                             at::ScalarType type = at::kDouble);

// Returns the device bytes for measuring a held-out sequence of `tokens` tokens with `rows` query
// rows. There are `num_arms` arms and the arms of a choice, which share keys.
uint64_t AttentionErrorMemory(const LayerSpec& spec, int64_t tokens, int64_t rows, int64_t num_arms,
                              const ChoiceArms& choice, at::DeviceType device);

}  // namespace oscar
