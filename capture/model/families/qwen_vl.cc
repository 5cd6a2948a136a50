// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The text parts of Qwen2-VL, Qwen2.5-VL and Qwen3-VL, and the thinkers of Qwen2.5-Omni
// and Qwen3-Omni: Qwen 2, Qwen 3 and Qwen 3 with experts, whose multimodal rope is
// plain rope on text. Releases of the first two have the fields of the text part beside
// vision_config instead of in a text_config, and Qwen3-VL stores its experts
// transposed.
#include "capture/model/families/experts_config.h"
#include "capture/model/families/families.h"
#include "capture/model/families/qwen_windows.h"

namespace oscar {

namespace {

DenseDecoderOptions Qwen2Options() {
  DenseDecoderOptions options;
  options.qkv_bias = true;
  options.rope.default_theta = 1e6;
  options.rope.text_of_mrope = true;
  return options;
}

DenseDecoderOptions Qwen3Options(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.qk_norm = true;
  options.default_head_dim = 128;
  options.rope.default_theta = 500000.0;
  options.rope.text_of_mrope = true;
  return options;
}

}  // namespace

ModelSpec ReadQwen25Omni(ConfigReader& config) {
  DenseDecoderOptions options = Qwen2Options();
  options.tied_by_default = true;
  options.windows = ReadQwenWindows(config, /*first_sliding=*/28, /*missing=*/32768);
  return ReadDenseDecoder(config, options);
}

ModelSpec ReadQwen2Vl(ConfigReader& config) {
  DenseDecoderOptions options = Qwen2Options();
  options.windows = ReadQwenWindows(config, /*first_sliding=*/80);
  ModelSpec spec = ReadDenseDecoder(config, options);
  if (config.Find("vision_config") == nullptr) return spec;
  for (const char* key : {"image_token_id", "video_token_id", "vision_end_token_id",
                          "vision_start_token_id", "vision_token_id"}) {
    (void)config.Find(key);
  }
  for (const std::string_view begin : OtherModalityTensors())
    spec.skipped_prefixes.emplace_back(begin);
  return spec;
}

// Its window, null in releases, is never read (modeling_qwen3_omni_moe.py).
ModelSpec ReadQwen3OmniMoe(ConfigReader& config) {
  DenseDecoderOptions options = Qwen3Options(config);
  options.default_head_dim.reset();
  options.rope.default_theta = 1e6;
  for (const char* key : {"max_window_layers", "sliding_window", "use_sliding_window"})
    (void)config.Find(key);
  config.Require("shared_expert_intermediate_size", 0);
  ModelSpec spec = ReadDenseDecoder(config, options);
  ExpertsSpec experts =
      ReadExperts(config, spec.hidden_size, config.Size("moe_intermediate_size"), "mlp.gate");
  experts.router.normalize = config.Bool("norm_topk_prob", true);
  PutNamedExperts(config, {}, ReadQwenSparseLayers(config), experts, spec);
  return spec;
}

ModelSpec ReadQwen3Vl(ConfigReader& config) {
  return ReadDenseDecoder(config, Qwen3Options(config));
}

ModelSpec ReadQwen3VlMoe(ConfigReader& config) {
  ModelSpec spec = ReadDenseDecoder(config, Qwen3Options(config));
  ExpertsSpec experts =
      ReadExperts(config, spec.hidden_size, config.Size("moe_intermediate_size"), "mlp.gate");
  config.Require("norm_topk_prob", true);
  experts.router.normalize = true;
  const std::vector<bool> sparse = ReadQwenSparseLayers(config);
  NameExperts(config, FirstSparse(sparse), {.usually_fused = true}, experts);
  // Releases store [.., in, out]; transformers 5 writes [.., out, in].
  const std::vector<int64_t> shape =
      config.StoredShape(config.LayerPrefix(FirstSparse(sparse)) + experts.gate_up);
  const bool as_written = shape.size() == 3 && shape[1] != spec.hidden_size;
  experts.transposed = experts.fused && !as_written;
  PutExperts(config, experts, sparse, spec);
  return spec;
}

}  // namespace oscar
