// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// ERNIE 4.5 with experts (21B-A3B, 300B-A47B): pairs of neighbours rotate, and every field of the
// experts has its own name. The choice has a bias but its scores are a softmax. In ERNIE 4.5 VL the
// tokens of images have their own experts, which follow those of text.
#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

ModelSpec ReadLayers(ConfigReader& config, bool mrope) {
  DenseDecoderOptions options;
  options.rope.text_of_mrope = mrope;
  options.qkv_bias = options.o_bias = config.Bool("use_bias", false);
  options.mlp_bias = options.qkv_bias;
  if (options.mlp_bias)
    config.Fail("use_bias", "is not implemented: biases of experts. Supported: false");
  options.rope.default_theta = 500000.0;
  options.rope.layout = RopeLayout::kInterleaved;
  options.tied_by_default = true;
  return ReadDenseDecoder(config, options);
}

ExpertsSpec ReadErnieExperts(ConfigReader& config, int64_t hidden_size, int64_t size) {
  config.Require("moe_gate", "topk");
  (void)config.Find("moe_capacity");  // for training: no expert refuses tokens
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

}  // namespace

ModelSpec ReadErnie45VlMoe(ConfigReader& config) {
  ModelSpec spec = ReadLayers(config, /*mrope=*/true);
  ExpertsSpec experts = ReadErnieExperts(config, spec.hidden_size, ReadTextExpertSize(config));
  experts.router.logits.transposed = true;
  experts.router.choice_bias_rows = 2;
  const std::vector<bool> sparse = ReadDeepSeekSparseLayers(config, 1);
  PutNamedExperts(config, {}, sparse, experts, spec);
  spec.skipped_suffixes.push_back(".mlp.gate.weight_1");
  for (const LayerSpec& layer : spec.layers) {
    if (!layer.experts) continue;
    for (int64_t i = 0; i < experts.num_experts; ++i)
      spec.skipped_prefixes.push_back(ExpertTensor(*layer.experts, experts.num_experts + i, ""));
  }
  return spec;
}

ModelSpec ReadErnie45Moe(ConfigReader& config) {
  ModelSpec spec = ReadLayers(config, /*mrope=*/false);
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
  spec.skipped_prefixes.push_back(config.prefix() + "mtp_");  // predicts further tokens
  return spec;
}

}  // namespace oscar
