// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/families/dense_decoder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace oscar {
namespace {

constexpr int64_t kMostLayers = 4096;
constexpr std::string_view kFull = "full_attention", kSliding = "sliding_attention";

void ReadHeads(ConfigReader& config, int64_t hidden_size, const DenseDecoderOptions& options,
               AttentionSpec& attention) {
  attention.num_q_heads = config.Size("num_attention_heads");
  attention.num_kv_heads =
      config.OptionalSize("num_key_value_heads").value_or(attention.num_q_heads);
  if (attention.num_q_heads % attention.num_kv_heads != 0) {
    config.Fail("num_key_value_heads",
                fmt::format("must divide num_attention_heads {}", attention.num_q_heads));
  }
  std::optional<int64_t> head_dim = config.OptionalSize("head_dim");
  if (!head_dim) head_dim = options.default_head_dim;
  if (!head_dim) {
    if (hidden_size % attention.num_q_heads != 0) {
      config.Fail("num_attention_heads",
                  fmt::format("must divide hidden_size {} if there is no head_dim", hidden_size));
    }
    head_dim = hidden_size / attention.num_q_heads;
  }
  attention.head_dim = attention.v_head_dim = *head_dim;
  attention.scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(*head_dim)));
  const RopeConfig rope = ReadRope(config, *head_dim, options.rope);
  attention.rope = rope.rope;
  attention.position_beta = rope.position_beta;
  attention.position_period = rope.rope.original_max_positions;
}

NormSpec Norm(const std::string& name, int64_t size, const DenseDecoderOptions& options) {
  return {options.norm_weight ? name + ".weight" : "", size, options.norm,
          options.norm_bias ? name + ".bias" : ""};
}

void NameProjections(const std::string& self_attn, int64_t hidden_size,
                     const DenseDecoderOptions& options, AttentionSpec& attention) {
  const int64_t q = attention.num_q_heads * attention.head_dim;
  const int64_t k = attention.num_kv_heads * attention.head_dim;
  const int64_t v = attention.num_kv_heads * attention.v_head_dim;
  const int64_t o = attention.num_q_heads * attention.v_head_dim;
  const bool bias = options.qkv_bias;
  if (options.fused_qkv) {
    const std::string name = self_attn + "qkv_proj";
    attention.q = Rows(name, hidden_size, 0, q, q + k + v, bias);
    attention.k = Rows(name, hidden_size, q, k, q + k + v, bias);
    attention.v = Rows(name, hidden_size, q + k, v, q + k + v, bias);
  } else {
    attention.q = Linear(self_attn + "q_proj", hidden_size, q, bias);
    attention.k = Linear(self_attn + "k_proj", hidden_size, k, bias);
    attention.v = Linear(self_attn + "v_proj", hidden_size, v, bias);
  }
  attention.o = Linear(self_attn + "o_proj", o, hidden_size, options.o_bias);
  attention.qk_norm = options.qk_norm;
  if (!options.qk_norm) return;
  const bool all = options.qk_norm_of_all_heads;
  attention.q_norm = Norm(self_attn + options.q_norm_name, all ? q : attention.head_dim, options);
  attention.k_norm = Norm(self_attn + options.k_norm_name, all ? k : attention.head_dim, options);
}

LayerSpec MakeLayer(const ConfigReader& config, int64_t layer_id, int64_t hidden_size,
                    const AttentionSpec& geometry, const DenseDecoderOptions& options) {
  const std::string prefix = config.LayerPrefix(layer_id);
  const auto norm = [&](const std::string& name) {
    return name.empty() ? NormSpec{} : Norm(prefix + name, hidden_size, options);
  };
  LayerSpec layer;
  layer.layer_id = static_cast<int>(layer_id);
  layer.attention_norm = norm(options.norms.attention);
  layer.post_attention_norm = norm(options.norms.post_attention);
  layer.mlp_norm = norm(options.norms.mlp);
  layer.post_mlp_norm = norm(options.norms.post_mlp);
  layer.attention = geometry;
  NameProjections(prefix + "self_attn.", hidden_size, options, layer.attention);
  if (!options.windows.empty())
    layer.attention.window = options.windows[static_cast<size_t>(layer_id)];
  return layer;
}

}  // namespace

LayerNormNames PostNorms() {
  return {"", "post_attention_layernorm", "", "post_feedforward_layernorm"};
}

LinearSpec Linear(const std::string& name, int64_t in_features, int64_t out_features, bool bias) {
  return {name + ".weight", bias ? name + ".bias" : "", in_features, out_features};
}

LinearSpec Rows(const std::string& name, int64_t in_features, int64_t first, int64_t part,
                int64_t all, bool bias) {
  LinearSpec linear = Linear(name, in_features, part, bias);
  linear.first_row = first;
  linear.stored_rows = all;
  return linear;
}

Activation ReadActivation(ConfigReader& config, std::string_view field,
                          std::string_view default_name) {
  const std::string name = config.String(field, default_name);
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new" || name == "gelu_fast")
    return Activation::kGeluTanh;
  if (name == "gelu") return Activation::kGelu;
  if (name == "relu") return Activation::kRelu;
  if (name == "relu2") return Activation::kReluSquared;
  config.Fail(field,
              "is not implemented. Supported: silu, gelu_pytorch_tanh, gelu_new, gelu_fast, gelu, "
              "relu, relu2");
}

MlpSpec DenseMlp(const std::string& prefix, int64_t hidden_size, int64_t intermediate_size,
                 const DenseDecoderOptions& options, Activation activation) {
  MlpSpec mlp;
  mlp.intermediate_size = intermediate_size;
  mlp.activation = activation;
  const bool bias = options.mlp_bias;
  if (options.fused_gate_up) {
    const int64_t both = 2 * intermediate_size;
    mlp.gate = Rows(prefix + "gate_up_proj", hidden_size, 0, intermediate_size, both, bias);
    mlp.up = Rows(prefix + "gate_up_proj", hidden_size, intermediate_size, intermediate_size, both,
                  bias);
  } else {
    if (options.gated_mlp)
      mlp.gate = Linear(prefix + "gate_proj", hidden_size, intermediate_size, bias);
    mlp.up = Linear(prefix + "up_proj", hidden_size, intermediate_size, bias);
  }
  mlp.down = Linear(prefix + "down_proj", intermediate_size, hidden_size, bias);
  return mlp;
}

void NameEnds(const std::string& embedding, const std::string& final_norm, ModelSpec& spec,
              const std::string& head) {
  spec.embedding = embedding + ".weight";
  spec.final_norm.weight = final_norm + ".weight";
  if (!spec.final_norm.bias.empty()) spec.final_norm.bias = final_norm + ".bias";
  spec.head.weight = spec.tied_head ? spec.embedding : head + ".weight";
  if (spec.tied_head) spec.skipped_suffixes.push_back(head + ".weight");
}

int64_t ReadNumLayers(ConfigReader& config) {
  const int64_t num_layers = config.Size("num_hidden_layers");
  if (num_layers > kMostLayers)
    config.Fail("num_hidden_layers", fmt::format("must be from 1 to {}", kMostLayers));
  return num_layers;
}

DenseDecoderOptions LlamaOptions(ConfigReader& config, std::optional<double> default_theta) {
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.rope.default_theta = default_theta;
  return options;
}

void RequireRopeSettings(ConfigReader& config) {
  if (config.Find("rope_parameters") == nullptr && config.Find("rope_scaling") == nullptr)
    config.Fail("rope_parameters", "is missing, and this family has no plain embedding");
}

ModelSpec ReadDenseDecoder(ConfigReader& config, const DenseDecoderOptions& options) {
  ModelSpec spec;
  spec.hidden_size = config.Size("hidden_size");
  spec.vocab_size = config.Size("vocab_size");
  spec.max_positions = config.Positions("max_position_embeddings");
  spec.rms_norm_eps = config.Positive(options.eps_field);
  if (spec.rms_norm_eps >= 1) config.Fail(options.eps_field, "must be below 1");
  const Activation activation =
      ReadActivation(config, options.activation_field, options.default_activation);

  if (options.qk_norm) config.Require("use_qk_norm", true);
  AttentionSpec geometry;
  ReadHeads(config, spec.hidden_size, options, geometry);
  if (geometry.rope.kind == RopeKind::kDynamic) {
    spec.max_positions = static_cast<int64_t>(static_cast<double>(spec.max_positions) *
                                              std::min(geometry.rope.factor, 1024.0));
  }
  const int64_t intermediate_size = options.dense_mlp ? config.Size("intermediate_size") : 0;
  const int64_t num_layers = ReadNumLayers(config);
  for (int64_t i = 0; i < num_layers; ++i) {
    spec.layers.push_back(MakeLayer(config, i, spec.hidden_size, geometry, options));
    if (!options.dense_mlp) continue;
    spec.layers.back().mlp = DenseMlp(config.LayerPrefix(i) + "mlp.", spec.hidden_size,
                                      intermediate_size, options, activation);
  }
  if (options.sliding_rope) {
    const RopeSpec rope = ReadRope(config, geometry.head_dim, *options.sliding_rope).rope;
    for (LayerSpec& layer : spec.layers)
      if (layer.attention.window) layer.attention.rope = rope;
  }

  spec.embedding = config.prefix() + "embed_tokens.weight";
  spec.final_norm = Norm(config.prefix() + "norm", spec.hidden_size, options);
  spec.tied_head = config.Bool("tie_word_embeddings", options.tied_by_default);
  spec.head = {spec.tied_head ? spec.embedding : config.HeadName(), "", spec.hidden_size,
               spec.vocab_size};
  spec.skipped_suffixes = {
      "rotary_emb.inv_freq"};  // buffer in old releases; rope_spec.h computes it
  if (spec.tied_head)
    spec.skipped_suffixes.push_back("lm_head.weight");  // a second copy of the embedding
  return spec;
}

std::vector<std::string> ReadLayerTypes(
    ConfigReader& config, std::initializer_list<std::string_view> supported,
    const std::function<std::string_view(int64_t layer)>& otherwise) {
  const int64_t num_layers = ReadNumLayers(config);
  const Json* types = config.Find("layer_types");
  if (types != nullptr &&
      (!types->is_array() || types->size() != static_cast<size_t>(num_layers))) {
    config.Fail("layer_types",
                fmt::format("must be a list of num_hidden_layers = {} names", num_layers));
  }
  std::vector<std::string> result;
  for (int64_t i = 0; i < num_layers; ++i) {
    if (types == nullptr) {
      result.emplace_back(otherwise(i));
      continue;
    }
    const Json& type = (*types)[static_cast<size_t>(i)];
    if (std::ranges::none_of(supported, [&](std::string_view name) { return type == name; })) {
      config.Fail("layer_types", fmt::format("of layer {} is not implemented: {}. Supported: {}", i,
                                             type.dump(), fmt::join(supported, ", ")));
    }
    result.push_back(type.get<std::string>());
  }
  return result;
}

Windows WindowsOf(const ConfigReader& config, const std::vector<std::string>& types,
                  std::optional<int64_t> window) {
  Windows windows(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != kSliding) continue;
    if (!window)
      config.Fail(
          "layer_types",
          fmt::format("gives layer {} a sliding window, but no sliding_window is in use", i));
    windows[i] = window;
  }
  return windows;
}

bool AnySlides(const Windows& windows) {
  return std::ranges::any_of(windows, [](const auto& window) { return window.has_value(); });
}

std::optional<int64_t> ReadWindow(ConfigReader& config, std::optional<int64_t> missing) {
  if (missing) config.Default("sliding_window", *missing);
  return config.OptionalSize("sliding_window");
}

Windows ReadUniformWindows(ConfigReader& config, std::optional<int64_t> window) {
  const std::string_view all = window ? kSliding : kFull;
  const auto types = ReadLayerTypes(config, {kFull, kSliding}, [&](int64_t) { return all; });
  for (const std::string& type : types) {
    if (type == all) continue;
    config.Fail("layer_types", fmt::format("has {}, but transformers ignores it in this family; "
                                           "there, sliding_window alone makes all layers {}",
                                           type, all));
  }
  return Windows(types.size(), window);
}

Windows ReadWindows(ConfigReader& config, std::optional<int64_t> window,
                    const std::function<bool(int64_t layer)>& slides) {
  const auto otherwise = [&](int64_t layer) { return slides(layer) ? kSliding : kFull; };
  return WindowsOf(config, ReadLayerTypes(config, {kFull, kSliding}, otherwise), window);
}

Windows ReadWindows(ConfigReader& config, std::optional<int64_t> window, int64_t first_sliding) {
  return ReadWindows(config, window,
                     [&](int64_t layer) { return window && layer >= first_sliding; });
}

Windows ReadPatternWindows(ConfigReader& config, std::optional<int64_t> window, int64_t pattern) {
  return ReadWindows(config, window,
                     [&](int64_t layer) { return window && (layer + 1) % pattern != 0; });
}

}  // namespace oscar
