// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// GLM-4.7-Flash: DeepSeek-V3's attention and experts, not GLM-4.7's in spite of its name. By
// default only the first layer is dense.
#include "capture/model/families/latent_decoder.h"

namespace oscar {

ModelSpec ReadGlm4MoeLite(ConfigReader& config) {
  config.Default("routed_scaling_factor", 1.8);
  return ReadLatentDecoder(config, 1);
}

}  // namespace oscar
