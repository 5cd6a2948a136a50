// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What families with multi-head latent attention share (DeepSeek-V3 and its descendants): latents,
// experts of sigmoid scores. Trap: a scaled rope puts mscale_all_dim twice into the softmax scale,
// and head_dim in these configs is that of the part with position, or missing.
#pragma once

#include "capture/model/families/experts_config.h"

namespace oscar {

// `default_dense`: how many layers are dense where the config does not say.
ModelSpec ReadLatentDecoder(ConfigReader& config, int64_t default_dense);

}  // namespace oscar
