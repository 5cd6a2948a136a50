// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What families with multi-head latent attention share (DeepSeek-V3 and its descendants): latents,
// experts of sigmoid scores. Trap: a scaled rope puts mscale_all_dim twice into the softmax scale,
// and head_dim in these configs is that of the part with position, or missing.
#pragma once

#include "capture/model/families/experts_config.h"

namespace oscar {

struct LatentOptions {
  bool position_scaling = false;  // queries scaled by position (llama_4_scaling_beta)
  bool part_of_head = false;      // rope_parameters has the turning part of a head, too
  bool tied_by_default = false;
};

// Latent attention and a dense MLP in every layer.
ModelSpec ReadLatentLayers(ConfigReader& config, const LatentOptions& options);

// `default_dense`: how many layers are dense where the config does not say. The others get these
// experts, whose names are missing yet.
void PutLatentExperts(ConfigReader& config, int64_t default_dense, ExpertsSpec experts,
                      ModelSpec& spec);

// Both, with DeepSeek-V3's router.
ModelSpec ReadLatentDecoder(ConfigReader& config, int64_t default_dense);

}  // namespace oscar
