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

// OLMo 1: norms without weights, which subtract the mean. Their epsilon is 1e-5 and not in the
// configuration (transformers 5, OlmoLayerNorm).
ModelSpec ReadOlmo(ConfigReader& config) {
  DenseDecoderOptions options = LlamaOptions(config, 10000.0);
  options.norm = NormKind::kLayerNorm;
  options.norm_weight = false;
  config.Override("rms_norm_eps", 1e-5);
  return ReadClampedLayers(config, options);
}

// OLMo 2: norms on the outputs of attention and MLP, none on their inputs, and one norm over all
// heads of the queries, one over all of the keys. A norm over 64 heads at once is not 64 norms.
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

// OLMo 3: OLMo 2 with three sliding layers per full one (transformers 5, modeling_olmo3.py). The
// old rope_scaling applies only to the full layers.
ModelSpec ReadOlmo3(ConfigReader& config) {
  DenseDecoderOptions options = Olmo2Options(config, 500000.0);
  options.rope.layer_type = "full_attention";
  options.windows = ReadPatternWindows(config, ReadWindow(config, 4096), 4);
  options.sliding_rope = {
      .default_theta = 500000.0, .layer_type = "sliding_attention", .scaled = false};
  return ReadDenseDecoder(config, options);
}

// OLMoE: experts in every layer, queries and keys normalized over all heads together.
// intermediate_size is that of an expert, and the weights of the chosen experts only sum to 1 if
// norm_topk_prob is set.
ModelSpec ReadOlmoe(ConfigReader& config) {
  DenseDecoderOptions options = LlamaOptions(config, 10000.0);
  options.qk_norm = options.qk_norm_of_all_heads = true;
  options.dense_mlp = false;
  ModelSpec spec = ReadClampedLayers(config, options);
  PutOlmoExperts(config, spec);
  return spec;
}

// FlexOlmo: OLMo 2 with experts in every layer (transformers 5, modeling_flex_olmo.py). The norms
// are after attention and experts; there are none before them.
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
