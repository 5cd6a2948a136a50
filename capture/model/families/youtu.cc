// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Youtu-LLM: DeepSeek-V3's latent attention in a dense model. Embedding and output head are
// one unless the configuration says otherwise.
#include "capture/model/families/latent_decoder.h"

namespace oscar {

ModelSpec ReadYoutu(ConfigReader& config) {
  (void)config.Find("embedding_initializer_range");  // of training
  return ReadLatentLayers(config, {.tied_by_default = true});
}

}  // namespace oscar
