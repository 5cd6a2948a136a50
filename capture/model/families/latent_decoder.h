// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Common code of families with multi-head latent attention (DeepSeek-V3 and its descendants):
// latents, experts with sigmoid scores. Trap: a scaled rope applies mscale_all_dim twice to the
// softmax scale, and head_dim in these configs is that of the part with position, or missing.
#pragma once

#include "capture/model/families/experts_config.h"

namespace oscar {

struct LatentOptions {
  bool position_scaling = false;  // queries scaled by position (llama_4_scaling_beta)
  bool part_of_head = false;      // rope_parameters has the turning part of a head, too
  bool tied_by_default = false;
};

// Reads latent attention and a dense MLP in every layer.
ModelSpec ReadLatentLayers(ConfigReader& config, const LatentOptions& options);

// `default_dense`: number of dense layers if the config does not say. The others get these experts,
// whose names are still missing.
void PutLatentExperts(ConfigReader& config, int64_t default_dense, ExpertsSpec experts,
                      ModelSpec& spec);

// Reads both, with DeepSeek-V3's router.
ModelSpec ReadLatentDecoder(ConfigReader& config, int64_t default_dense);

}  // namespace oscar
