// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Known families (late 2026, as in transformers 5) that are refused, each with the missing feature.
// A family of which only some sizes are implemented has no row here; its own code refuses the
// others (granitemoehybrid).
#include "capture/model/families/families.h"

namespace oscar {

std::span<const Refusal> Refusals() {
  static constexpr std::string_view
      kStateSpace = "its state-space layers (Mamba) are not implemented",
      kLightning = "its lightning attention (linear, with decay) is not implemented",
      kDelta = "its Kimi delta attention is not implemented",
      kEncoderDecoder =
          "it is an encoder-decoder model, whose cache also holds an encoder's output",
      kEncoder = "it is an encoder without a KV cache",
      kLearned = "its positions are learned or in the attention biases (ALiBi), not rotary",
      kConvolution = "its short convolutions over tokens are not implemented",
      kCross = "its layers with attention to images (cross attention) are not implemented";
  static constexpr Refusal kRefusals[] = {
      {"bamba", kStateSpace},
      {"bart", kEncoderDecoder},
      {"bert", kEncoder},
      {"bloom", kLearned},
      {"cohere2_moe", "experts that run in parallel with attention are not implemented"},
      {"deepseek_ref",
       "its compressed keys and values and its multiple residual streams (hyper-connections) are "
       "not implemented"},
      {"deepseek_v4",
       "its compressed keys and values and its multiple residual streams (hyper-connections) are "
       "not implemented"},
      {"falcon_h1", kStateSpace},
      {"falcon_mamba", kStateSpace},
      {"gemma3n", "its alternating updates of multiple hidden states (AltUp) are not implemented"},
      {"gemma3n_text",
       "its alternating updates of multiple hidden states (AltUp) are not implemented"},
      {"glm5_next", "its compressed keys and values are not implemented"},
      {"gpt2", kLearned},
      {"hy_v4", "its multiple residual streams (hyper-connections) are not implemented"},
      {"jamba", kStateSpace},
      {"kimi_k3", kDelta},
      {"kimi_linear", kDelta},
      {"lfm2", kConvolution},
      {"lfm2_moe", kConvolution},
      {"longcat_flash",
       "its layers with two attention blocks and parallel experts are not implemented"},
      {"mamba", kStateSpace},
      {"mamba2", kStateSpace},
      {"minimax", kLightning},
      {"minimax_text_01", kLightning},
      {"mllama", kCross},
      {"mpt", kLearned},
      {"nanochat",
       "its rotary embedding, which rotates in the opposite direction, is not implemented"},
      {"nemotron-nas",
       "its layers without attention or with other widths (block_configs) are not implemented"},
      {"nemotron_h", kStateSpace},
      {"olmo_hybrid", "its gated delta rule with negative eigenvalues is not implemented"},
      {"opt", kLearned},
      {"recurrent_gemma", "its recurrent layers (RG-LRU) are not implemented"},
      {"roberta", kEncoder},
      {"rwkv", "it is a recurrent model without a KV cache"},
      {"step3p5", "its limits inside the experts, which differ by layer, are not implemented"},
      {"step3p7", "its limits inside the experts, which differ by layer, are not implemented"},
      {"t5", kEncoderDecoder},
      {"t5gemma", kEncoderDecoder},
      {"t5gemma2", kEncoderDecoder},
      {"whisper", kEncoderDecoder},
      {"xlstm", "it is a recurrent model without a KV cache"},
      {"zamba", kStateSpace},
      {"zamba2", kStateSpace},
  };
  return kRefusals;
}

}  // namespace oscar
