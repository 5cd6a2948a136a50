// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Ai2's OLMo.
#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

ModelSpec ReadClampedLayers(ConfigReader& config, const DenseDecoderOptions& options) {
  const double clamp = config.OptionalPositive("clip_qkv").value_or(0.0);
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) layer.attention.clamp = clamp;
  return spec;
}

void PutOlmoExperts(ConfigReader& config, ModelSpec& spec) {
  ExpertsSpec experts =
      ReadExperts(config, spec.hidden_size, config.Size("intermediate_size"), "mlp.gate");
  experts.router.normalize = config.Bool("norm_topk_prob", false);
  PutNamedExperts(config, {}, {}, experts, spec);
}

// OLMo 1: norms subtract the mean and have no weights. Their epsilon, 1e-5, is not in the config
// (transformers 5, OlmoLayerNorm).
ModelSpec ReadOlmo(ConfigReader& config) {
  DenseDecoderOptions options = LlamaOptions(config, 10000.0);
  options.norm = NormKind::kLayerNorm;
  options.norm_weight = false;
  config.Override("rms_norm_eps", 1e-5);
  return ReadClampedLayers(config, options);
}

// OLMo 2: norms are on the outputs of attention and MLP, not on their inputs. One norm spans all
// query heads and another all key heads, which differs from norms per head.
DenseDecoderOptions Olmo2Options(ConfigReader& config, double default_theta) {
  DenseDecoderOptions options = LlamaOptions(config, default_theta);
  options.qk_norm = options.qk_norm_of_all_heads = true;
  options.norms = PostNorms();
  return options;
}

ModelSpec ReadOlmo2(ConfigReader& config) {
  DenseDecoderOptions options = Olmo2Options(config, 10000.0);
  options.windows = ReadWindows(config, std::nullopt, 0);
  return ReadDenseDecoder(config, options);
}

// OLMo 3: OLMo 2 with three sliding-window layers per full-attention layer (transformers 5,
// modeling_olmo3.py). The old rope_scaling only applies to full-attention layers.
ModelSpec ReadOlmo3(ConfigReader& config) {
  DenseDecoderOptions options = Olmo2Options(config, 500000.0);
  options.rope.layer_type = "full_attention";
  options.windows = ReadPatternWindows(config, ReadWindow(config, 4096), 4);
  options.sliding_rope = {
      .default_theta = 500000.0, .layer_type = "sliding_attention", .scaled = false};
  return ReadDenseDecoder(config, options);
}

// OLMoE: experts in every layer, QK norms across all heads. intermediate_size is the size of one
// expert. The weights of the chosen experts sum to 1 only if norm_topk_prob is set.
ModelSpec ReadOlmoe(ConfigReader& config) {
  DenseDecoderOptions options = LlamaOptions(config, 10000.0);
  options.qk_norm = options.qk_norm_of_all_heads = true;
  options.dense_mlp = false;
  ModelSpec spec = ReadClampedLayers(config, options);
  PutOlmoExperts(config, spec);
  return spec;
}

// FlexOlmo: OLMo 2 with experts in every layer (transformers 5, modeling_flex_olmo.py). Norms come
// after attention and experts, not before.
ModelSpec ReadFlexOlmo(ConfigReader& config) {
  DenseDecoderOptions options = Olmo2Options(config, 500000.0);
  options.dense_mlp = false;
  ModelSpec spec = ReadDenseDecoder(config, options);
  PutOlmoExperts(config, spec);
  return spec;
}

}  // namespace

std::span<const Family> OlmoFamilies() {
  static constexpr Family kRows[] = {
      {"flex_olmo", "FlexOlmoForCausalLM", ReadFlexOlmo},  // OLMo 2 with experts
      {"olmo", "OlmoForCausalLM", ReadOlmo},
      {"olmo2", "Olmo2ForCausalLM", ReadOlmo2},
      {"olmo3", "Olmo3ForCausalLM", ReadOlmo3},
      {"olmoe", "OlmoeForCausalLM", ReadOlmoe},
  };
  return kRows;
}

}  // namespace oscar
