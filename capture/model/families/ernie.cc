// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// ERNIE 4.5 (transformers 5, modeling_ernie4_5.py). Rope is interleaved and covers the whole head.
// use_bias says whether projections have biases.
#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

DenseDecoderOptions ErnieOptions(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = options.mlp_bias = config.Bool("use_bias", false);
  options.tied_by_default = true;
  options.rope.default_theta = 500000.0;
  options.rope.layout = RopeLayout::kInterleaved;
  return options;
}

// ERNIE 4.5 dense: like Llama in everything else.
ModelSpec ReadErnie45(ConfigReader& config) {
  DenseDecoderOptions options = ErnieOptions(config);
  options.default_head_dim = 128;
  options.windows = ReadWindows(config, std::nullopt, 0);
  return ReadDenseDecoder(config, options);
}

ModelSpec ReadErnieMoeLayers(ConfigReader& config, bool mrope) {
  DenseDecoderOptions options = ErnieOptions(config);
  options.rope.text_of_mrope = mrope;
  if (options.mlp_bias)
    config.Fail("use_bias", "is not implemented: biases of experts. Supported: false");
  return ReadDenseDecoder(config, options);
}

// Reads ERNIE's experts, whose fields have other names in the config. The choice of experts has a
// bias, although their scores are a softmax.
ExpertsSpec ReadErnieExperts(ConfigReader& config, int64_t hidden_size, int64_t size) {
  config.Require("moe_gate", "topk");
  config.Ignore({"moe_capacity"});  // for training; here experts take any number of tokens
  config.Default("num_experts", config.Size("moe_num_experts"));
  config.Default("num_experts_per_tok", config.Size("moe_k"));
  ExpertsSpec experts = ReadExperts(config, hidden_size, size, "mlp.gate");
  experts.router.float32_logits = true;
  experts.router.choice_bias = "mlp.moe_statics.e_score_correction_bias";
  experts.router.choice_bias_rows = 1;
  experts.router.normalize = true;
  experts.router.smallest_weight_sum = config.OptionalPositive("moe_norm_min").value_or(1e-12);
  NameSharedExpert("mlp.shared_experts.",
                   config.OptionalCount("moe_num_shared_experts").value_or(2) * size, experts);
  return experts;
}

// Parses [size for text, size for images].
int64_t ReadTextExpertSize(ConfigReader& config) {
  constexpr const char* kField = "moe_intermediate_size";
  const Json* sizes = config.Find(kField);
  if (sizes == nullptr) return 1536;
  if (!sizes->is_array() || sizes->size() != 2) config.Fail(kField, "must be a list of two sizes");
  const Json text = {{kField, sizes->front()}};
  return ConfigReader(text, config.what()).Size(kField);
}

// ERNIE 4.5 VL. Image tokens have their own experts, which are stored after those for text.
ModelSpec ReadErnie45VlMoe(ConfigReader& config) {
  ModelSpec spec = ReadErnieMoeLayers(config, /*mrope=*/true);
  ExpertsSpec experts = ReadErnieExperts(config, spec.hidden_size, ReadTextExpertSize(config));
  experts.router.logits.transposed = true;
  experts.router.choice_bias_rows = 2;
  PutNamedExperts(config, {}, ReadDeepSeekSparseLayers(config, 1), experts, spec);
  spec.skipped_suffixes.push_back(".mlp.gate.weight_1");
  for (const LayerSpec& layer : spec.layers) {
    if (!layer.experts) continue;
    for (int64_t i = 0; i < experts.num_experts; ++i)
      spec.skipped_prefixes.push_back(ExpertTensor(*layer.experts, experts.num_experts + i, ""));
  }
  return spec;
}

// ERNIE 4.5 with experts (21B-A3B, 300B-A47B).
ModelSpec ReadErnie45Moe(ConfigReader& config) {
  ModelSpec spec = ReadErnieMoeLayers(config, /*mrope=*/false);
  const ExpertsSpec experts =
      ReadErnieExperts(config, spec.hidden_size, config.Size("moe_intermediate_size"));
  const auto num_layers = static_cast<int64_t>(spec.layers.size());
  const int64_t start = config.OptionalCount("moe_layer_start_index").value_or(1);
  const int64_t step = config.OptionalSize("moe_layer_interval").value_or(1);
  int64_t end = num_layers - 1;
  if (const Json* last = config.Find("moe_layer_end_index"); last != nullptr && *last != -1)
    end = config.OptionalCount("moe_layer_end_index").value_or(end);
  std::vector<bool> sparse;
  for (int64_t i = 0; i < num_layers; ++i)
    sparse.push_back((i + 1) % step == 0 && i >= start && i <= end);
  PutNamedExperts(config, {}, sparse, experts, spec);
  spec.skipped_prefixes.push_back(config.prefix() + "mtp_");  // multi-token prediction
  return spec;
}

}  // namespace

std::span<const Family> ErnieFamilies() {
  static constexpr Family kRows[] = {
      {"ernie4_5", "Ernie4_5ForCausalLM", ReadErnie45},
      {"ernie4_5_moe", "Ernie4_5_MoeForCausalLM", ReadErnie45Moe},
      {"ernie4_5_vl_moe_text", "Ernie4_5_VLMoeForConditionalGeneration", ReadErnie45VlMoe},
  };
  return kRows;
}

}  // namespace oscar
