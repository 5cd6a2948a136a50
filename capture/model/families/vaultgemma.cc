// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// VaultGemma: Gemma 2 without the norms after attention and MLP (transformers 5,
// modeling_vaultgemma.py). The norm before the MLP keeps Gemma 2's name,
// pre_feedforward_layernorm.
#include "capture/model/families/gemma.h"

namespace oscar {

ModelSpec ReadVaultGemma(ConfigReader& config) {
  DenseDecoderOptions options = GemmaOptions(config);
  options.norms = {"input_layernorm", "", "pre_feedforward_layernorm", ""};
  return ReadSoftcappedGemma(config, options);
}

}  // namespace oscar
