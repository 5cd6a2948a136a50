// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Youtu-LLM: DeepSeek-V3's latent attention in a dense model. By default embedding and output head
// are tied.
#include "capture/model/families/latent_decoder.h"

namespace oscar {

ModelSpec ReadYoutu(ConfigReader& config) {
  (void)config.Find("embedding_initializer_range");  // for training
  return ReadLatentLayers(config, {.tied_by_default = true});
}

}  // namespace oscar
