// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rotary settings out of config.json, in both spellings: rope_theta + rope_scaling (original
// releases) and rope_parameters (transformers 5), the latter possibly one for each layer type.
// Files may hold both spellings; then they must say the same.
#pragma once

#include <optional>
#include <string>

#include "capture/model/config_reader.h"
#include "capture/model/rope_spec.h"

namespace oscar {

struct RopeOptions {
  std::optional<double> default_theta = {};  // where a config may leave it out; nothing: an error
  // The part of a head that turns where the config does not say; nothing: the family turns whole
  // heads, and a config that says otherwise is refused.
  std::optional<double> default_partial = {};
  RopeLayout layout = RopeLayout::kHalf;
  std::string layer_type = {};  // "full_attention": which member of nested rope_parameters
  std::string theta_field = "rope_theta";  // of the old spelling
  bool scaled = true;  // whether rope_scaling of the old spelling is meant for these layers
  bool position_scaling = false;  // whether llama_4_scaling_beta is implemented
  std::string default_type = "default";
  bool alpha = false;  // whether a "dynamic" rope may have an alpha, which makes theta larger for
                       // every length (Hunyuan)
  bool mscales =
      false;  // longrope has short_mscale and long_mscale, factors on cosines (Phi-3.5-MoE)
  bool text_of_mrope = false;  // multimodal sections are let pass: on text they all turn alike
};

struct RopeConfig {
  RopeSpec rope;
  double position_beta = 0;   // llama_4_scaling_beta
  double mscale_all_dim = 0;  // of yarn, where the config has it: DeepSeek's softmax scale
  FieldNotes notes = {};
};

// InputError for a type or setting that is not implemented, naming it and what is supported.
RopeConfig ReadRope(ConfigReader& config, int64_t head_dim, const RopeOptions& options);

}  // namespace oscar
