// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/families/families.h"

#include <algorithm>

namespace oscar {

using Reader = ModelSpec(ConfigReader& config);
Reader ReadCohere2, ReadDeepSeekV3, ReadErnie45, ReadErnie45Moe, ReadExaone4, ReadGemma2,
    ReadGemma3, ReadGemma4, ReadGlm4, ReadGlm4Moe, ReadGlm4MoeLite, ReadGlmMoeDsa, ReadGptOss,
    ReadGranite, ReadGraniteMoe, ReadLlama, ReadMiniMaxM2, ReadMinistral3, ReadMistral, ReadMixtral,
    ReadOlmo2, ReadOlmo3, ReadPhi3, ReadQwen2, ReadQwen2Moe, ReadQwen3, ReadQwen35, ReadQwen35Moe,
    ReadQwen3Moe, ReadQwen3Next, ReadSeedOss, ReadSmolLm3, ReadStarcoder2;

std::span<const Family> Families() {
  static constexpr Family kFamilies[] = {
      {"cohere2", "Cohere2ForCausalLM", ReadCohere2},
      {"deepseek_v3", "DeepseekV3ForCausalLM", ReadDeepSeekV3},
      {"deepseek_v32", "DeepseekV32ForCausalLM", ReadGlmMoeDsa},
      {"ernie4_5", "Ernie4_5ForCausalLM", ReadErnie45},
      {"ernie4_5_moe", "Ernie4_5_MoeForCausalLM", ReadErnie45Moe},
      {"exaone4", "Exaone4ForCausalLM", ReadExaone4},
      {"gemma2", "Gemma2ForCausalLM", ReadGemma2},
      {"gemma3_text", "Gemma3ForCausalLM", ReadGemma3},
      {"gemma4_text", "Gemma4ForCausalLM", ReadGemma4},
      {"glm4", "Glm4ForCausalLM", ReadGlm4},
      {"glm4_moe", "Glm4MoeForCausalLM", ReadGlm4Moe},
      {"glm4_moe_lite", "Glm4MoeLiteForCausalLM", ReadGlm4MoeLite},
      {"glm_moe_dsa", "GlmMoeDsaForCausalLM", ReadGlmMoeDsa},
      {"gpt_oss", "GptOssForCausalLM", ReadGptOss},
      {"granite", "GraniteForCausalLM", ReadGranite},
      {"granitemoe", "GraniteMoeForCausalLM", ReadGraniteMoe},
      {"kimi_k2", "DeepseekV3ForCausalLM", ReadDeepSeekV3},
      {"llama", "LlamaForCausalLM", ReadLlama},
      {"minimax_m2", "MiniMaxM2ForCausalLM", ReadMiniMaxM2},
      {"ministral3", "Ministral3ForCausalLM", ReadMinistral3},
      {"mistral", "MistralForCausalLM", ReadMistral},
      {"mixtral", "MixtralForCausalLM", ReadMixtral},
      {"olmo2", "Olmo2ForCausalLM", ReadOlmo2},
      {"olmo3", "Olmo3ForCausalLM", ReadOlmo3},
      {"phi3", "Phi3ForCausalLM", ReadPhi3},
      {"qwen2", "Qwen2ForCausalLM", ReadQwen2},
      {"qwen2_moe", "Qwen2MoeForCausalLM", ReadQwen2Moe},
      {"qwen3", "Qwen3ForCausalLM", ReadQwen3},
      {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", ReadQwen35Moe},
      {"qwen3_5_text", "Qwen3_5ForCausalLM", ReadQwen35},
      {"qwen3_moe", "Qwen3MoeForCausalLM", ReadQwen3Moe},
      {"qwen3_next", "Qwen3NextForCausalLM", ReadQwen3Next},
      {"seed_oss", "SeedOssForCausalLM", ReadSeedOss},
      {"smollm3", "SmolLM3ForCausalLM", ReadSmolLm3},
      {"starcoder2", "Starcoder2ForCausalLM", ReadStarcoder2},
  };
  return kFamilies;
}

std::span<const Wrapper> Wrappers() {
  static constexpr Wrapper kWrappers[] = {
      {"gemma3", "Gemma3ForConditionalGeneration", "gemma3_text"},
      {"gemma4", "Gemma4ForConditionalGeneration", "gemma4_text"},
      {"gemma4_unified", "Gemma4UnifiedForConditionalGeneration", "gemma4_text"},
      {"kimi_k25", "KimiK25ForConditionalGeneration", "kimi_k2"},
      {"mistral3", "Mistral3ForConditionalGeneration", "mistral"},
      {"qwen3_5", "Qwen3_5ForConditionalGeneration", "qwen3_5_text"},
      {"qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe_text"},
  };
  return kWrappers;
}

std::span<const std::string_view> OtherModalityTensors() {
  static constexpr std::string_view kBeginnings[] = {
      "audio_tower.",           "embed_audio.",
      "embed_vision.",          "mm_projector.",
      "model.audio_tower.",     "model.embed_audio.",
      "model.embed_vision.",    "model.multi_modal_projector.",
      "model.vision_embedder.", "model.vision_tower.",
      "model.visual.",          "mtp.",
      "multi_modal_projector.", "vision_embedder.",
      "vision_tower.",          "visual."};
  return kBeginnings;
}

bool IsOtherModalityField(std::string_view name) {
  static constexpr std::string_view kPieces[] = {
      "vision",   "image", "video", "audio", "mm_",
      "boi_",     "eoi_",  "boa_",  "eoa_",  "spatial_merge_size",
      "projector"};
  return std::ranges::any_of(
      kPieces, [&](std::string_view piece) { return name.find(piece) != std::string_view::npos; });
}

}  // namespace oscar
