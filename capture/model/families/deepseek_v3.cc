// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// DeepSeek-V3, R1 and V3.1, and Kimi-K2, which differs only in sizes. Rope rotates pairs of
// neighbours, and the softmax scale includes yarn's mscale, squared.
#include "capture/model/families/latent_decoder.h"

namespace oscar {

ModelSpec ReadDeepSeekV3(ConfigReader& config) {
  config.Default("routed_scaling_factor", 2.5);
  return ReadLatentDecoder(config, 3);
}

}  // namespace oscar
