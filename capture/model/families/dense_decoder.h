// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What the dense pre-norm families share (skeleton G of ../shared/reference/ecosystem.md section
// 3): the usual fields and tensor names. A family says where it differs. Trap: head_dim is often
// not hidden_size / num_attention_heads.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "capture/model/config_reader.h"
#include "capture/model/model_spec.h"

namespace oscar {

struct DenseDecoderOptions {
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  bool qk_norm = false;
  std::optional<int64_t>
      default_head_dim;  // if the config has none; nothing: hidden_size / num_attention_heads
  std::optional<double> default_rope_theta;     // if the config has none; nothing: it must have one
  std::vector<std::optional<int64_t>> windows;  // per layer; empty: no layer slides
};

ModelSpec ReadDenseDecoder(ConfigReader& config, const DenseDecoderOptions& options);

// Attention kinds of all layers: from layer_types where it is given, else layer i slides if i >=
// first_sliding. `window`: what a sliding layer uses; InputError if a layer slides without one.
std::vector<std::optional<int64_t>> ReadWindows(ConfigReader& config, std::optional<int64_t> window,
                                                int64_t first_sliding);

}  // namespace oscar
