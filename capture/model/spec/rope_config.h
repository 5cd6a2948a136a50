// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rotary settings from config.json, in two spellings: rope_theta with rope_scaling (original
// releases), and rope_parameters (transformers 5), which may have one entry per layer type. If a
// file has both spellings, they must agree.
#pragma once

#include <optional>
#include <string>

#include "capture/model/spec/config_reader.h"
#include "capture/model/spec/rope_spec.h"

namespace oscar {

struct RopeOptions {
  std::optional<double> default_theta = {};  // for a config without theta; absent: an error
  // The part of a head that rotates if the config does not say. Absent: the family rotates whole
  // heads, and a config with another part is refused.
  std::optional<double> default_partial = {};
  RopeLayout layout = RopeLayout::kHalf;
  std::string layer_type = {};             // "full_attention": a member of nested rope_parameters
  std::string theta_field = "rope_theta";  // name in the old spelling
  bool scaled = true;  // whether rope_scaling of the old spelling applies to these layers
  bool position_scaling = false;  // whether llama_4_scaling_beta is implemented
  std::string default_type = "default";
  bool alpha = false;  // whether a "dynamic" rope may have an alpha, which increases theta for all
                       // lengths (Hunyuan)
  bool mscales =
      false;  // longrope has short_mscale and long_mscale, factors on cosines (Phi-3.5-MoE)
  bool text_of_mrope = false;  // accepts multimodal sections, which on text rotate alike
};

struct RopeConfig {
  RopeSpec rope;
  double position_beta = 0;   // llama_4_scaling_beta
  double mscale_all_dim = 0;  // yarn's, if the config has it; DeepSeek's softmax scale needs it
  FieldNotes notes = {};
};

// Throws InputError for a type or setting that is not implemented, naming it and what is supported.
RopeConfig ReadRope(ConfigReader& config, int64_t head_dim, const RopeOptions& options);

}  // namespace oscar
