// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Gemma 1 to 4. Embeddings are multiplied by sqrt(hidden_size), which is first rounded to the
// compute dtype; in bf16 this changes it by up to 0.3 %. The activation is read from
// hidden_activation, not from the hidden_act of old releases.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

DenseDecoderOptions GemmaOptions(ConfigReader& config) {
  DenseDecoderOptions options = LlamaOptions(config, 10000.0);
  options.norms = {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                   "post_feedforward_layernorm"};
  options.activation_field = "hidden_activation";
  options.default_activation = "gelu_pytorch_tanh";
  options.tied_by_default = true;
  config.Ignore({"hidden_act"});
  config.Default("rms_norm_eps", 1e-6);
  return options;
}

ModelSpec ReadGemmaLayers(ConfigReader& config, const DenseDecoderOptions& options) {
  ModelSpec spec = ReadDenseDecoder(config, options);
  spec.embedding_multiplier = std::sqrt(static_cast<double>(spec.hidden_size));
  spec.round_embedding_multiplier = true;
  return spec;
}

void ReadSoftcap(ConfigReader& config, ModelSpec& spec) {
  spec.logit_softcap = config.OptionalPositive("final_logit_softcapping").value_or(0.0);
}

// Gemma 1 and CodeGemma: norms (1 + w). Releases name the activation twice. They were trained with
// hidden_activation; hidden_act is used only if that field is missing.
ModelSpec ReadGemma(ConfigReader& config) {
  DenseDecoderOptions options = GemmaOptions(config);
  options.norm = NormKind::kOnePlus;
  options.norms = {};
  if (config.Find("hidden_activation") == nullptr) options.activation_field = "hidden_act";
  config.Default("head_dim", 256);
  return ReadGemmaLayers(config, options);
}

// Gemma 2 and VaultGemma: norms (1 + w), and soft caps on attention logits and on output logits.
// The softmax scale is 1 / sqrt(query_pre_attn_scalar). Every other layer has a sliding window,
// starting with the first.
ModelSpec ReadSoftcappedGemma(ConfigReader& config, DenseDecoderOptions options) {
  options.norm = NormKind::kOnePlus;
  config.Default("head_dim", 256);
  config.Default("query_pre_attn_scalar", 256);
  config.Default("attn_logit_softcapping", 50.0);
  config.Default("final_logit_softcapping", 30.0);
  options.scale = 1 / std::sqrt(config.Positive("query_pre_attn_scalar"));
  options.windows = ReadPatternWindows(config, ReadWindow(config, 4096), 2);
  ModelSpec spec = ReadGemmaLayers(config, options);
  ReadSoftcap(config, spec);
  const double softcap = config.OptionalPositive("attn_logit_softcapping").value_or(0.0);
  for (LayerSpec& layer : spec.layers) layer.attention.softcap = softcap;
  return spec;
}

// Gemma 2: norms before and after attention and MLP.
ModelSpec ReadGemma2(ConfigReader& config) {
  ModelSpec spec = ReadSoftcappedGemma(config, GemmaOptions(config));
  if (const auto window = config.OptionalSize("sliding_window"))
    config.Require("sliding_window_size", *window);
  return spec;
}

// VaultGemma: Gemma 2 without the norms after attention and MLP (transformers 5,
// modeling_vaultgemma.py). The norm before the MLP keeps Gemma 2's name,
// pre_feedforward_layernorm.
ModelSpec ReadVaultGemma(ConfigReader& config) {
  DenseDecoderOptions options = GemmaOptions(config);
  options.norms = {"input_layernorm", "", "pre_feedforward_layernorm", ""};
  return ReadSoftcappedGemma(config, options);
}

// Gemma 3 (text part): Gemma 2 with QK norms (1 + w) and without a soft cap on attention logits.
// There are five sliding-window layers per full-attention layer, and each kind has its own rope
// base. Traps: the old rope_scaling applies only to full-attention layers; attn_logit_softcapping
// is left over from Gemma 2 and never applied (modeling_gemma3.py).
ModelSpec ReadGemma3(ConfigReader& config) {
  DenseDecoderOptions options = GemmaOptions(config);
  // Released text_config objects only list differences from these defaults (transformers,
  // Gemma3TextConfig).
  const std::pair<const char*, Json> defaults[] = {
      {"vocab_size", 262208},     {"num_attention_heads", 8},
      {"num_key_value_heads", 4}, {"head_dim", 256},
      {"sliding_window", 4096},   {"query_pre_attn_scalar", 256},
      {"hidden_size", 2304},      {"max_position_embeddings", 131072},
      {"num_hidden_layers", 26},  {"intermediate_size", 9216},
  };
  for (const auto& [key, value] : defaults) config.Default(key, value);
  options.norm = NormKind::kOnePlus;
  options.qk_norm = true;
  options.scale = 1 / std::sqrt(config.Positive("query_pre_attn_scalar"));
  config.Ignore({"_sliding_window_pattern", "attn_logit_softcapping"});
  const int64_t pattern = config.OptionalSize("sliding_window_pattern").value_or(6);
  options.windows = ReadPatternWindows(config, ReadWindow(config), pattern);
  options.rope.layer_type = "full_attention";
  options.rope.default_theta = 1e6;
  options.sliding_rope = {.default_theta = 1e4,
                          .layer_type = "sliding_attention",
                          .theta_field = "rope_local_base_freq",
                          .scaled = false};
  ModelSpec spec = ReadGemmaLayers(config, options);
  ReadSoftcap(config, spec);
  return spec;
}

constexpr const char *kFullKind = "full_attention", *kSlidingKind = "sliding_attention";

// The geometry of full-attention layers. transformers 5 writes it to per_layer_config, keyed by
// layer; releases have separate fields for it.
struct FullGeometry {
  int64_t head_dim = 0, num_kv_heads = 0;
};

// Returns the members of per_layer_config by layer. With ten or more layers, transformers writes
// the keys with leading zeros ("05").
std::map<size_t, const Json*> ByLayer(const ConfigReader& config, const Json& layers,
                                      size_t num_layers) {
  if (!layers.is_object()) config.Fail("per_layer_config", "must be an object");
  std::map<size_t, const Json*> by_layer;
  for (const auto& [key, value] : layers.items()) {
    const bool is_layer = !key.empty() && key.size() < 6 &&
                          key.find_first_not_of("0123456789") == std::string::npos &&
                          std::stoul(key) < num_layers;
    if (!is_layer)
      config.Fail("per_layer_config", fmt::format("has {}, which is not a layer", key));
    if (!by_layer.emplace(std::stoul(key), &value).second)
      config.Fail("per_layer_config", fmt::format("has layer {} twice", std::stoul(key)));
  }
  return by_layer;
}

FullGeometry ReadFullGeometry(ConfigReader& config, const std::vector<std::string>& types,
                              const AttentionSpec& sliding, bool k_eq_v) {
  FullGeometry full{sliding.head_dim, sliding.num_kv_heads};
  const Json* layers = config.Find("per_layer_config");
  const std::optional<int64_t> dim = config.OptionalSize("global_head_dim");
  const std::optional<int64_t> heads = config.OptionalSize("num_global_key_value_heads");
  if (layers == nullptr) {
    full.head_dim = dim.value_or(512);
    if (k_eq_v && heads) full.num_kv_heads = *heads;
    return full;
  }
  const std::map<size_t, const Json*> by_layer = ByLayer(config, *layers, types.size());
  bool first = true;
  for (size_t i = 0; i < types.size(); ++i) {
    const auto found = by_layer.find(i);
    if (found == by_layer.end()) {
      if (types[i] == kFullKind && !by_layer.empty())
        config.Fail("per_layer_config", fmt::format("lacks layer {}, which has full attention", i));
      continue;
    }
    if (types[i] != kFullKind)
      config.Fail("per_layer_config",
                  fmt::format("changes layer {}, which has a sliding window", i));
    ConfigReader one(*found->second, fmt::format("{}: per_layer_config: {}", config.what(), i),
                     {.unknown_config = config.unknown_config()});
    const FullGeometry own{one.OptionalSize("head_dim").value_or(sliding.head_dim),
                           one.OptionalSize("num_key_value_heads").value_or(sliding.num_kv_heads)};
    config.AddNotes(one.Finish(""), fmt::format("per_layer_config.{}.", i));
    if (!first && (own.head_dim != full.head_dim || own.num_kv_heads != full.num_kv_heads))
      config.Fail("per_layer_config", "has full-attention layers with different geometries");
    full = own;
    first = false;
  }
  if ((dim && *dim != full.head_dim) || (k_eq_v && heads && *heads != full.num_kv_heads))
    config.Fail("per_layer_config", "contradicts global_head_dim or num_global_key_value_heads");
  return full;
}

void MakeFull(const ConfigReader& config, const FullGeometry& full, const RopeSpec& rope,
              bool k_eq_v, int64_t hidden_size, LayerSpec& layer) {
  AttentionSpec& a = layer.attention;
  if (a.num_q_heads % full.num_kv_heads != 0)
    config.Fail("num_attention_heads",
                fmt::format("must be a multiple of the {} KV heads of full-attention layers",
                            full.num_kv_heads));
  a.head_dim = a.v_head_dim = full.head_dim;
  a.num_kv_heads = full.num_kv_heads;
  a.rope = rope;
  a.q.out_features = a.o.in_features = a.num_q_heads * full.head_dim;
  a.k.out_features = a.v.out_features = full.num_kv_heads * full.head_dim;
  a.q_norm.size = a.k_norm.size = full.head_dim;
  a.o.out_features = hidden_size;
  a.v_from_k = k_eq_v;
  if (k_eq_v) a.v = {};
}

void ReadPerLayerInputs(ConfigReader& config, ModelSpec& spec) {
  const int64_t dim = config.OptionalCount("hidden_size_per_layer_input").value_or(0);
  const auto vocab_size = config.OptionalSize("vocab_size_per_layer_input");
  if (dim == 0) return;
  const auto num_layers = static_cast<int64_t>(spec.layers.size());
  if (vocab_size.value_or(262144) < spec.vocab_size) {
    config.Fail("vocab_size_per_layer_input",
                fmt::format("must be at least vocab_size {}", spec.vocab_size));
  }
  PerLayerInputsSpec inputs;
  inputs.table = config.prefix() + "embed_tokens_per_layer.weight";
  inputs.vocab_size = vocab_size.value_or(262144);
  inputs.dim = dim;
  inputs.num_layers = num_layers;
  inputs.table_scale = std::sqrt(static_cast<double>(dim));
  inputs.projection_scale = 1 / std::sqrt(static_cast<double>(spec.hidden_size));
  inputs.sum_scale = 1 / std::sqrt(2.0);
  inputs.projection =
      Linear(config.prefix() + "per_layer_model_projection", spec.hidden_size, num_layers * dim);
  inputs.norm = {config.prefix() + "per_layer_projection_norm.weight", dim};
  spec.per_layer_inputs = inputs;
  for (LayerSpec& layer : spec.layers) {
    const std::string prefix = config.LayerPrefix(layer.layer_id);
    layer.per_layer_input = {
        .gate = Linear(prefix + "per_layer_input_gate", spec.hidden_size, dim),
        .projection = Linear(prefix + "per_layer_projection", dim, spec.hidden_size),
        .post_norm = {prefix + "post_per_layer_input_norm.weight", spec.hidden_size},
        .activation = layer.mlp.activation};
  }
}

// Lets each of the last num_kv_shared_layers layers read the cache of another layer: of the last
// layer of its kind that has its own keys and values.
void ShareKv(ConfigReader& config, const std::vector<std::string>& types, ModelSpec& spec) {
  const auto num_layers = static_cast<int64_t>(spec.layers.size());
  const int64_t num_shared = config.OptionalCount("num_kv_shared_layers").value_or(0);
  const bool wide = config.Bool("use_double_wide_mlp", false);
  if (num_shared == 0) return;
  const int64_t first = num_layers - num_shared;
  if (first <= 0) config.Fail("num_kv_shared_layers", "leaves no layer with its own keys");
  for (int64_t i = first; i < num_layers; ++i) {
    LayerSpec& layer = spec.layers[static_cast<size_t>(i)];
    int64_t source = first - 1;
    while (source >= 0 && types[static_cast<size_t>(source)] != types[static_cast<size_t>(i)])
      --source;
    if (source < 0) {
      config.Fail("num_kv_shared_layers",
                  fmt::format("makes layer {} read a {} layer, but there is none before it", i,
                              types[static_cast<size_t>(i)]));
    }
    layer.attention.shared_kv = static_cast<int>(source);
    layer.attention.v_from_k = false;
    const std::string self_attn = config.LayerPrefix(i) + "self_attn.";
    for (const char* unused : {"k_proj.", "v_proj.", "k_norm.", "v_norm."})
      spec.skipped_prefixes.push_back(self_attn + unused);
    if (!wide) continue;
    layer.mlp.intermediate_size *= 2;
    layer.mlp.gate.out_features = layer.mlp.up.out_features = layer.mlp.down.in_features =
        layer.mlp.intermediate_size;
  }
}

void ReadExpertsBeside(ConfigReader& config, ModelSpec& spec) {
  const bool enabled = config.Bool("enable_moe_block", false);
  config.Ignore({"num_experts", "top_k_experts", "moe_intermediate_size"});
  if (!enabled) return;
  for (LayerSpec& layer : spec.layers) {
    const std::string prefix = config.LayerPrefix(layer.layer_id);
    ExpertsSpec experts;
    experts.num_experts = config.Size("num_experts");
    experts.hidden_size = spec.hidden_size;
    experts.intermediate_size = config.Size("moe_intermediate_size");
    experts.activation = layer.mlp.activation;
    experts.router.logits = Linear(prefix + "router.proj", spec.hidden_size, experts.num_experts);
    experts.router.top_k = config.Size("top_k_experts");
    if (experts.router.top_k > experts.num_experts)
      config.Fail("top_k_experts", "must be at most num_experts");
    experts.router.normalize = true;
    experts.router.normed_input = true;
    experts.router.input_scale = prefix + "router.scale";
    experts.router.per_expert_scale = prefix + "router.per_expert_scale";
    experts.fused = true;
    experts.gate_up = prefix + "experts.gate_up_proj";
    experts.down = prefix + "experts.down_proj";
    layer.experts = experts;
    layer.mlp_out_norm = {prefix + "post_feedforward_layernorm_1.weight", spec.hidden_size};
    layer.experts_in_norm = {prefix + "pre_feedforward_layernorm_2.weight", spec.hidden_size};
    layer.experts_out_norm = {prefix + "post_feedforward_layernorm_2.weight", spec.hidden_size};
  }
}

// Gemma 4 (text part; transformers 5, modeling_gemma4.py). Sliding-window and full-attention layers
// have different head sizes and ropes. Norms are plain, not 1 + w as in Gemma 2 and 3. Values are
// normalized without a weight. With attention_k_eq_v, full-attention layers take values from the
// key projection. Experts run in parallel with the MLP. In small models, layers have per-layer
// embeddings, and late layers read the keys and values of earlier ones.
ModelSpec ReadGemma4(ConfigReader& config) {
  RequireRopeSettings(config);
  DenseDecoderOptions options = GemmaOptions(config);
  config.Default("hidden_size_per_layer_input", 256);
  options.qk_norm = true;
  options.default_head_dim = 256;
  options.scale = 1.0;
  options.rope = {
      .default_theta = 1e4, .layer_type = kSlidingKind, .theta_field = "rope_local_base_freq"};
  std::vector<std::string> types = ReadLayerTypes(config, {kFullKind, kSlidingKind}, [](int64_t i) {
    return (i + 1) % 6 == 0 ? kFullKind : kSlidingKind;
  });
  types.back() = kFullKind;  // transformers does this whatever the config says
  options.windows = WindowsOf(config, types, ReadWindow(config, 512));
  // With "vision", only image tokens attend in both directions, so text is causal.
  if (config.Find("use_bidirectional_attention") != nullptr &&
      config.String("use_bidirectional_attention") == "all")
    config.Fail("use_bidirectional_attention", "is not implemented. Supported: null, \"vision\"");
  const bool k_eq_v = config.Bool("attention_k_eq_v", false);

  ModelSpec spec = ReadGemmaLayers(config, options);
  ReadSoftcap(config, spec);
  const FullGeometry full = ReadFullGeometry(config, types, spec.layers[0].attention, k_eq_v);
  const RopeOptions proportional{.default_theta = 1e6,
                                 .default_partial = 1.0,
                                 .layer_type = kFullKind,
                                 .theta_field = "rope_theta",
                                 .default_type = "proportional"};
  const RopeSpec full_rope = ReadRope(config, full.head_dim, proportional).rope;
  for (LayerSpec& layer : spec.layers) {
    if (!layer.attention.window) MakeFull(config, full, full_rope, k_eq_v, spec.hidden_size, layer);
    layer.attention.v_norm = {"", layer.attention.v_head_dim, NormKind::kUnscaled};
    layer.scalar = config.LayerPrefix(layer.layer_id) + "layer_scalar";
  }
  ShareKv(config, types, spec);
  ReadPerLayerInputs(config, spec);
  ReadExpertsBeside(config, spec);
  return spec;
}

}  // namespace

std::span<const Family> GemmaFamilies() {
  static constexpr Family kRows[] = {
      {"gemma", "GemmaForCausalLM", ReadGemma},
      {"gemma2", "Gemma2ForCausalLM", ReadGemma2},
      {"gemma3_text", "Gemma3ForCausalLM", ReadGemma3},
      {"gemma4_text", "Gemma4ForCausalLM", ReadGemma4},
      {"gemma4_unified_text", "Gemma4UnifiedForCausalLM", ReadGemma4},
      {"vaultgemma", "VaultGemmaForCausalLM", ReadVaultGemma},
  };
  return kRows;
}

}  // namespace oscar
