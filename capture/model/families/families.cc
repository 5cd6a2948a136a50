// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/families/families.h"

#include <algorithm>

#include "capture/model/families/readers.h"

namespace oscar {

std::span<const Family> Families() {
  static constexpr Family kFamilies[] = {
      {"afmoe", "AfmoeForCausalLM", ReadAfmoe},
      {"apertus", "ApertusForCausalLM", ReadApertus},
      {"arcee", "ArceeForCausalLM", ReadArcee},
      {"axk1", "AXK1ForCausalLM", ReadAxk1},
      {"bitnet", "BitNetForCausalLM", ReadBitNet},
      {"cohere", "CohereForCausalLM", ReadCohere},
      {"cohere2", "Cohere2ForCausalLM", ReadCohere2},
      {"cwm", "CwmForCausalLM", ReadCwm},
      {"deepseek_v2", "DeepseekV2ForCausalLM", ReadDeepSeekV2},
      {"deepseek_v3", "DeepseekV3ForCausalLM", ReadDeepSeekV3},
      {"deepseek_v32", "DeepseekV32ForCausalLM", ReadGlmMoeDsa},
      {"dots1", "Dots1ForCausalLM", ReadDots1},
      {"ernie4_5", "Ernie4_5ForCausalLM", ReadErnie45},
      {"ernie4_5_moe", "Ernie4_5_MoeForCausalLM", ReadErnie45Moe},
      {"exaone4", "Exaone4ForCausalLM", ReadExaone4},
      {"exaone_moe", "ExaoneMoeForCausalLM", ReadExaoneMoe},
      {"flex_olmo", "FlexOlmoForCausalLM", ReadFlexOlmo},
      {"gemma", "GemmaForCausalLM", ReadGemma},
      {"gemma2", "Gemma2ForCausalLM", ReadGemma2},
      {"gemma3_text", "Gemma3ForCausalLM", ReadGemma3},
      {"gemma4_text", "Gemma4ForCausalLM", ReadGemma4},
      {"gemma4_unified_text", "Gemma4UnifiedForCausalLM", ReadGemma4},
      {"glm", "GlmForCausalLM", ReadGlm},
      {"glm4", "Glm4ForCausalLM", ReadGlm4},
      {"glm4_moe", "Glm4MoeForCausalLM", ReadGlm4Moe},
      {"glm4_moe_lite", "Glm4MoeLiteForCausalLM", ReadGlm4MoeLite},
      {"glm4v_moe_text", "Glm4vMoeForConditionalGeneration", ReadGlm4vMoe},
      {"glm4v_text", "Glm4vForConditionalGeneration", ReadGlm4v},
      {"glm_moe_dsa", "GlmMoeDsaForCausalLM", ReadGlmMoeDsa},
      {"gpt_oss", "GptOssForCausalLM", ReadGptOss},
      {"granite", "GraniteForCausalLM", ReadGranite},
      {"granite_swa", "GraniteSWAForCausalLM", ReadGraniteSwa},
      {"granitemoe", "GraniteMoeForCausalLM", ReadGraniteMoe},
      {"granitemoe_swa", "GraniteMoeSWAForCausalLM", ReadGraniteMoeSwa},
      {"granitemoehybrid", "GraniteMoeHybridForCausalLM", ReadGraniteHybrid},
      {"granitemoeshared", "GraniteMoeSharedForCausalLM", ReadGraniteMoeShared},
      {"helium", "HeliumForCausalLM", ReadHelium},
      {"hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM", ReadHunYuanDense},
      {"hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM", ReadHunYuanMoe},
      {"hy_v3", "HYV3ForCausalLM", ReadHyV3},
      {"jais2", "Jais2ForCausalLM", ReadJais2},
      {"kimi_k2", "DeepseekV3ForCausalLM", ReadDeepSeekV3},
      {"laguna", "LagunaForCausalLM", ReadLaguna},
      {"llama", "LlamaForCausalLM", ReadLlama},
      {"llama4_text", "Llama4ForCausalLM", ReadLlama4},
      {"mellum", "MellumForCausalLM", ReadMellum},
      {"mimo_v2_flash", "MiMoV2FlashForCausalLM", ReadMiMoV2Flash},
      {"minicpm3", "MiniCPM3ForCausalLM", ReadMiniCpm3},
      {"minimax_m2", "MiniMaxM2ForCausalLM", ReadMiniMaxM2},
      {"minimax_m3", "MiniMaxM3ForCausalLM", ReadMiniMaxM3},
      {"minimax_m3_vl_text", "MiniMaxM3VLForCausalLM", ReadMiniMaxM3},
      {"ministral", "MinistralForCausalLM", ReadMinistral},
      {"ministral3", "Ministral3ForCausalLM", ReadMinistral3},
      {"mistral", "MistralForCausalLM", ReadMistral},
      {"mistral4", "Mistral4ForCausalLM", ReadMistral4},
      {"mixtral", "MixtralForCausalLM", ReadMixtral},
      {"nemotron", "NemotronForCausalLM", ReadNemotron},
      {"olmo", "OlmoForCausalLM", ReadOlmo},
      {"olmo2", "Olmo2ForCausalLM", ReadOlmo2},
      {"olmo3", "Olmo3ForCausalLM", ReadOlmo3},
      {"olmoe", "OlmoeForCausalLM", ReadOlmoe},
      {"phi", "PhiForCausalLM", ReadPhi},
      {"phi3", "Phi3ForCausalLM", ReadPhi3},
      {"phimoe", "PhimoeForCausalLM", ReadPhiMoe},
      {"qwen2", "Qwen2ForCausalLM", ReadQwen2},
      {"qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", ReadQwen2Vl},
      {"qwen2_5_vl_text", "Qwen2_5_VLForConditionalGeneration", ReadQwen2Vl},
      {"qwen2_moe", "Qwen2MoeForCausalLM", ReadQwen2Moe},
      {"qwen2_vl", "Qwen2VLForConditionalGeneration", ReadQwen2Vl},
      {"qwen2_vl_text", "Qwen2VLForConditionalGeneration", ReadQwen2Vl},
      {"qwen3", "Qwen3ForCausalLM", ReadQwen3},
      {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", ReadQwen35Moe},
      {"qwen3_5_text", "Qwen3_5ForCausalLM", ReadQwen35},
      {"qwen3_moe", "Qwen3MoeForCausalLM", ReadQwen3Moe},
      {"qwen3_next", "Qwen3NextForCausalLM", ReadQwen3Next},
      {"qwen3_vl_moe_text", "Qwen3VLMoeForConditionalGeneration", ReadQwen3VlMoe},
      {"qwen3_vl_text", "Qwen3VLForConditionalGeneration", ReadQwen3Vl},
      {"seed_oss", "SeedOssForCausalLM", ReadSeedOss},
      {"smollm3", "SmolLM3ForCausalLM", ReadSmolLm3},
      {"solar_open", "SolarOpenForCausalLM", ReadSolarOpen},
      {"stablelm", "StableLmForCausalLM", ReadStableLm},
      {"starcoder2", "Starcoder2ForCausalLM", ReadStarcoder2},
      {"vaultgemma", "VaultGemmaForCausalLM", ReadVaultGemma},
      {"youtu", "YoutuForCausalLM", ReadYoutu},
  };
  return kFamilies;
}

std::span<const Wrapper> Wrappers() {
  static constexpr Wrapper kWrappers[] = {
      {"aya_vision", "AyaVisionForConditionalGeneration", "cohere2"},
      {"cohere2_vision", "Cohere2VisionForConditionalGeneration", "cohere2"},
      {"gemma3", "Gemma3ForConditionalGeneration", "gemma3_text"},
      {"gemma4", "Gemma4ForConditionalGeneration", "gemma4_text"},
      {"gemma4_unified", "Gemma4UnifiedForConditionalGeneration", "gemma4_unified_text"},
      {"glm4v", "Glm4vForConditionalGeneration", "glm4v_text"},
      {"glm4v_moe", "Glm4vMoeForConditionalGeneration", "glm4v_moe_text"},
      {"internvl", "InternVLForConditionalGeneration", "qwen2"},
      {"kimi_k25", "KimiK25ForConditionalGeneration", "kimi_k2"},
      {"llama4", "Llama4ForConditionalGeneration", "llama4_text"},
      {"llava", "LlavaForConditionalGeneration", "llama"},
      {"llava_next", "LlavaNextForConditionalGeneration", "llama"},
      {"minimax_m3_vl", "MiniMaxM3SparseForConditionalGeneration", "minimax_m3_vl_text"},
      {"mistral3", "Mistral3ForConditionalGeneration", "mistral"},
      {"qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl_text"},
      {"qwen2_vl", "Qwen2VLForConditionalGeneration", "qwen2_vl_text"},
      {"qwen3_5", "Qwen3_5ForConditionalGeneration", "qwen3_5_text"},
      {"qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe_text"},
      {"qwen3_vl", "Qwen3VLForConditionalGeneration", "qwen3_vl_text"},
      {"qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe_text"},
      {"voxtral", "VoxtralForConditionalGeneration", "llama"},
  };
  return kWrappers;
}

std::span<const std::string_view> OtherModalityTensors() {
  static constexpr std::string_view kBeginnings[] = {
      "audio_tower.",           "embed_audio.",
      "embed_vision.",          "image_newline",
      "mm_projector.",          "model.audio_tower.",
      "model.embed_audio.",     "model.embed_vision.",
      "model.image_newline",    "model.multi_modal_projector.",
      "model.patch_merge_mlp.", "model.vision_embedder.",
      "model.vision_model.",    "model.vision_tower.",
      "model.visual.",          "mtp.",
      "multi_modal_projector.", "patch_merge_mlp.",
      "vision_embedder.",       "vision_model.",
      "vision_tower.",          "visual."};
  return kBeginnings;
}

bool IsOtherModalityField(std::string_view name) {
  static constexpr std::string_view kPieces[] = {"vision",
                                                 "image",
                                                 "img_",
                                                 "video",
                                                 "audio",
                                                 "mm_",
                                                 "boi_",
                                                 "eoi_",
                                                 "boa_",
                                                 "eoa_",
                                                 "spatial_merge_size",
                                                 "projector",
                                                 "projection_",
                                                 "downsample_",
                                                 "alignment_intermediate_size",
                                                 "adapter_layer_norm_eps"};
  return std::ranges::any_of(
      kPieces, [&](std::string_view piece) { return name.find(piece) != std::string_view::npos; });
}

}  // namespace oscar
