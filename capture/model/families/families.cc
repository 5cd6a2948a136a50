// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/families/families.h"

#include <algorithm>
#include <vector>

namespace oscar {

std::span<const Family> Families() {
  static const std::vector<Family> families = [] {
    std::vector<Family> all;
    for (Lineage* lineage :
         {ArceeFamilies, CohereFamilies, DbrxFamilies, DeepSeekFamilies, ErnieFamilies,
          ExaoneFamilies, GemmaFamilies, GlmFamilies, GptFamilies, GraniteFamilies, HunYuanFamilies,
          LagunaFamilies, LlamaFamilies, MiMoFamilies, MiniMaxFamilies, MistralFamilies,
          OlmoFamilies, PhiFamilies, QwenFamilies})
      all.insert(all.end(), lineage().begin(), lineage().end());
    std::ranges::sort(all, {}, &Family::model_type);
    return all;
  }();
  return families;
}

std::span<const Wrapper> Wrappers() {
  static constexpr Wrapper kWrappers[] = {
      {"aya_vision", "AyaVisionForConditionalGeneration", "cohere2"},
      {"cohere2_vision", "Cohere2VisionForConditionalGeneration", "cohere2"},
      {"ernie4_5_vl_moe", "Ernie4_5_VLMoeForConditionalGeneration", "ernie4_5_vl_moe_text"},
      {"gemma3", "Gemma3ForConditionalGeneration", "gemma3_text"},
      {"gemma4", "Gemma4ForConditionalGeneration", "gemma4_text"},
      {"gemma4_unified", "Gemma4UnifiedForConditionalGeneration", "gemma4_unified_text"},
      {"glm46v", "Glm46VForConditionalGeneration", "glm4v_text"},
      {"glm4v", "Glm4vForConditionalGeneration", "glm4v_text"},
      {"glm4v_moe", "Glm4vMoeForConditionalGeneration", "glm4v_moe_text"},
      {"idefics3", "Idefics3ForConditionalGeneration", "llama"},
      {"internvl", "InternVLForConditionalGeneration", "qwen2"},
      {"kimi_k25", "KimiK25ForConditionalGeneration", "kimi_k2"},
      {"llama4", "Llama4ForConditionalGeneration", "llama4_text"},
      {"llava", "LlavaForConditionalGeneration", "llama"},
      {"llava_next", "LlavaNextForConditionalGeneration", "llama"},
      {"llava_onevision", "LlavaOnevisionForConditionalGeneration", "qwen2"},
      {"minimax_m3_vl", "MiniMaxM3SparseForConditionalGeneration", "minimax_m3_vl_text"},
      {"mistral3", "Mistral3ForConditionalGeneration", "mistral"},
      {"paligemma", "PaliGemmaForConditionalGeneration", "gemma", {}, 1},
      {"qwen2_5_omni", "Qwen2_5OmniForConditionalGeneration", "qwen2_5_omni_text", "thinker_config",
       0, "Qwen2_5OmniModel"},
      {"qwen2_5_omni_thinker", "Qwen2_5OmniThinkerForConditionalGeneration", "qwen2_5_omni_text"},
      {"qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl_text"},
      {"qwen2_audio", "Qwen2AudioForConditionalGeneration", "qwen2"},
      {"qwen2_vl", "Qwen2VLForConditionalGeneration", "qwen2_vl_text"},
      {"qwen3_5", "Qwen3_5ForConditionalGeneration", "qwen3_5_text"},
      {"qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe_text"},
      {"qwen3_omni_moe", "Qwen3OmniMoeForConditionalGeneration", "qwen3_omni_moe_text",
       "thinker_config"},
      {"qwen3_omni_moe_thinker", "Qwen3OmniMoeThinkerForConditionalGeneration",
       "qwen3_omni_moe_text"},
      {"qwen3_vl", "Qwen3VLForConditionalGeneration", "qwen3_vl_text"},
      {"qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe_text"},
      {"smolvlm", "SmolVLMForConditionalGeneration", "llama"},
      {"voxtral", "VoxtralForConditionalGeneration", "llama"},
  };
  return kWrappers;
}

std::span<const std::string_view> OtherModalityTensors() {
  static constexpr std::string_view kBeginnings[] = {"audio_tower.",
                                                     "code2wav.",
                                                     "embed_audio.",
                                                     "embed_vision.",
                                                     "image_newline",
                                                     "mm_projector.",
                                                     "model.audio_tower.",
                                                     "model.connector.",
                                                     "model.embed_audio.",
                                                     "model.embed_vision.",
                                                     "model.image_newline",
                                                     "model.multi_modal_projector.",
                                                     "model.patch_merge_mlp.",
                                                     "model.resampler_model.",
                                                     "model.vision_embedder.",
                                                     "model.vision_model.",
                                                     "model.vision_tower.",
                                                     "model.visual.",
                                                     "mtp.",
                                                     "multi_modal_projector.",
                                                     "patch_merge_mlp.",
                                                     "talker.",
                                                     "thinker.audio_tower.",
                                                     "thinker.visual.",
                                                     "token2wav.",
                                                     "vision_embedder.",
                                                     "vision_model.",
                                                     "vision_tower.",
                                                     "visual."};
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
                                                 "_token_id",
                                                 "talker",
                                                 "2wav",
                                                 "position_id_per_seconds",
                                                 "seconds_per_chunk",
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
