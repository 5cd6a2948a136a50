// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Llama and families that only differ from it in biases, norms, the MLP's activation, and which
// layers have a sliding window or rope.
#include <fmt/format.h>

#include <algorithm>

#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

// Llama 1 to 3.x and models of the same type. attention_bias says whether the four attention
// projections have biases, mlp_bias whether the three MLP projections do. Releases before Llama 3
// have no rope_theta; it was 10000.
ModelSpec ReadLlama(ConfigReader& config) {
  DenseDecoderOptions options = LlamaOptions(config, 10000.0);
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.windows = ReadWindows(config, std::nullopt, 0);
  return ReadDenseDecoder(config, options);
}

// InternLM 3: Llama with other names for its biases.
ModelSpec ReadInternLm3(ConfigReader& config) {
  config.SecondName("attention_bias", "qkv_bias");
  config.SecondName("mlp_bias", "bias");
  // The release's code uses `bias` for the output projection, transformers uses `qkv_bias`.
  if (config.Bool("mlp_bias", false) != config.Bool("attention_bias", false))
    config.Fail("mlp_bias", "is not implemented. Supported: the value of attention_bias");
  config.Default("head_dim", 128);
  config.Default("rms_norm_eps", 1e-5);
  return ReadLlama(config);
}

// Seed-OSS: Llama with biases on q, k, v by default and a separate field for the bias of o
// (transformers 5, modeling_seed_oss.py). A missing attention_bias means true.
ModelSpec ReadSeedOss(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("attention_bias", true);
  options.o_bias = config.Bool("attention_out_bias", false);
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.default_head_dim = 128;
  options.rope.default_theta = 10000.0;
  options.windows = ReadWindows(config, std::nullopt, 0);
  return ReadDenseDecoder(config, options);
}

// Helium: Llama with interleaved rope. Its epsilon is 1e-8, which float16 would round to zero.
ModelSpec ReadHelium(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("attention_bias", false);
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.default_head_dim = 128;
  options.rope.default_theta = 100000.0;
  options.rope.layout = RopeLayout::kInterleaved;
  return ReadDenseDecoder(config, options);
}

// BitNet b1.58 with plain weights. Two norms are added: one across all heads before the output
// projection of attention, and one before the last projection of the MLP. Weights that are ternary,
// or become ternary at run time (quantization_config), are refused as a weight format.
ModelSpec ReadBitNet(ConfigReader& config) {
  DenseDecoderOptions options = LlamaOptions(config, 500000.0);
  options.default_activation = "relu2";
  options.tied_by_default = true;
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) {
    const std::string prefix = config.LayerPrefix(layer.layer_id);
    layer.attention.out_norm = {prefix + "self_attn.attn_sub_norm.weight",
                                layer.attention.o.in_features};
    layer.mlp.inner_norm = {prefix + "mlp.ffn_sub_norm.weight", layer.mlp.intermediate_size};
  }
  return spec;
}

// In the next two families, a config without rope settings means llama3 scaling.
void DefaultToLlama3Rope(ConfigReader& config, double factor) {
  if (config.Has("rope_scaling")) return;
  config.Default("rope_parameters", {{"rope_type", "llama3"},
                                     {"factor", factor},
                                     {"original_max_position_embeddings", 8192},
                                     {"low_freq_factor", 1.0},
                                     {"high_freq_factor", 4.0}});
}

// Apertus (transformers 5, ApertusConfig): QK norms, and an MLP without a gate. Its activation,
// xIELU, has trained parameters in each layer.
ModelSpec ReadApertus(ConfigReader& config) {
  DenseDecoderOptions options = LlamaOptions(config, 12e6);
  options.qk_norm = true;
  options.norms = {"attention_layernorm", "", "feedforward_layernorm", ""};
  options.gated_mlp = false;
  DefaultToLlama3Rope(config, 8.0);
  config.Require("qk_norm", true);
  for (const char* key : {"post_norm", "mlp_bias"}) config.Require(key, false);
  const bool xielu = config.String("hidden_act", "xielu") == "xielu";
  if (xielu) config.Override("hidden_act", "silu");  // replaced below
  ModelSpec spec = ReadDenseDecoder(config, options);
  if (!xielu) return spec;
  for (LayerSpec& layer : spec.layers) {
    const std::string prefix = config.LayerPrefix(layer.layer_id) + "mlp.act_fn.";
    const auto stored = [&](const char* name) {
      return !config.knows_names() || config.Stores(prefix + name) ? prefix + name : std::string();
    };
    layer.mlp.activation = Activation::kXielu;
    layer.mlp.xielu = {prefix + "alpha_p", prefix + "alpha_n", stored("beta"), stored("eps")};
  }
  return spec;
}

// Code World Model (transformers 5, CwmConfig): Llama with three sliding-window layers per
// full-attention layer, starting with a full-attention layer.
ModelSpec ReadCwm(ConfigReader& config) {
  DenseDecoderOptions options;
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.default_head_dim = 128;
  options.rope.default_theta = 1e6;
  DefaultToLlama3Rope(config, 16.0);
  options.windows =
      ReadWindows(config, ReadWindow(config, 8192), [](int64_t layer) { return layer % 4 != 0; });
  return ReadDenseDecoder(config, options);
}

// Returns which layers have rope; by default, every fourth layer has none. Trap: no_rope_layers[i]
// is 1 if layer i HAS rope.
std::vector<bool> ReadTurningLayers(ConfigReader& config) {
  const int64_t num_layers = ReadNumLayers(config);
  const int64_t interval = config.OptionalSize("no_rope_layer_interval").value_or(4);
  std::vector<bool> turns;
  for (int64_t i = 0; i < num_layers; ++i) turns.push_back((i + 1) % interval != 0);
  const Json* listed = config.Find("no_rope_layers");
  if (listed == nullptr) return turns;
  if (!listed->is_array() || listed->size() != turns.size() ||
      std::ranges::any_of(*listed, [](const Json& x) { return x != 0 && x != 1; })) {
    config.Fail(
        "no_rope_layers",
        fmt::format("must be a list of num_hidden_layers = {} numbers 0 and 1", num_layers));
  }
  for (size_t i = 0; i < turns.size(); ++i) turns[i] = (*listed)[i] == 1;
  return turns;
}

// SmolLM3: Llama with some layers without position embedding.
ModelSpec ReadSmolLm3(ConfigReader& config) {
  DenseDecoderOptions options = LlamaOptions(config, 2000000.0);
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.tied_by_default = true;
  const std::vector<bool> turns = ReadTurningLayers(config);
  config.Ignore({"max_window_layers"});  // left over from Qwen; layer_types decides
  // A sliding window, if the config sets one, applies to the layers without rope.
  std::optional<int64_t> window = ReadWindow(config);
  if (!config.Bool("use_sliding_window", false)) window = std::nullopt;
  options.windows = ReadWindows(
      config, window, [&](int64_t layer) { return window && !turns[static_cast<size_t>(layer)]; });
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) {
    if (!turns[static_cast<size_t>(layer.layer_id)]) layer.attention.rope = {RopeKind::kNone};
  }
  return spec;
}

// Solar Open: Llama's attention, DeepSeek's experts in every layer. Releases have intermediate_size
// and first_k_dense_replace, but no layer is dense.
ModelSpec ReadSolarOpen(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("attention_bias", false);
  options.default_head_dim = 128;
  options.rope.default_theta = 1e6;
  options.rope.default_partial = 1.0;
  options.dense_mlp = false;
  config.Require("use_qk_norm", false);
  config.Require("first_k_dense_replace", 0);
  config.Ignore({"intermediate_size"});
  ModelSpec spec = ReadDenseDecoder(config, options);
  const ExpertsSpec experts = ReadSigmoidExperts(config, spec.hidden_size);
  PutNamedExperts(config, {}, {}, experts, spec);
  return spec;
}

std::vector<bool> ReadLlama4SparseLayers(ConfigReader& config) {
  const int64_t num_layers = ReadNumLayers(config);
  const int64_t step = config.OptionalSize("interleave_moe_layer_step").value_or(1);
  std::vector<bool> sparse;
  for (int64_t i = 0; i < num_layers; ++i) sparse.push_back((i + 1) % step == 0);
  const Json* listed = config.Find("moe_layers");
  if (listed == nullptr) return sparse;
  if (!listed->is_array()) config.Fail("moe_layers", "must be a list of layer numbers");
  sparse.assign(sparse.size(), false);
  for (const Json& layer : *listed) {
    if (!layer.is_number_integer() || layer < 0 || layer >= num_layers)
      config.Fail("moe_layers", fmt::format("must hold layer numbers below {}", num_layers));
    sparse[layer.get<size_t>()] = true;
  }
  return sparse;
}

// Limits sequences to one chunk, within which chunked attention equals full attention.
void LimitToOneChunk(ConfigReader& config, const std::vector<bool>& turns, ModelSpec& spec) {
  const std::vector<std::string> types =
      ReadLayerTypes(config, {"full_attention", "chunked_attention"}, [&](int64_t layer) {
        return turns[static_cast<size_t>(layer)] ? "chunked_attention" : "full_attention";
      });
  config.Default("attention_chunk_size", 8192);
  const auto chunk = config.OptionalSize("attention_chunk_size");
  if (!chunk || std::ranges::find(types, "chunked_attention") == types.end()) return;
  if (*chunk >= spec.max_positions) return;
  spec.max_positions = *chunk;
  spec.positions_limit =
      "attention_chunk_size; attention to more tokens is split into chunks, which is not "
      "implemented";
}

// Llama 4 Scout and Maverick (text part). An expert's input is multiplied by the token's router
// weight. There are three layers with interleaved rope per layer without rope. Layers with rope
// also have QK norms, without weights and after rope. Their queries only see keys in the same chunk
// of attention_chunk_size tokens, so longer sequences are refused. In layers without rope, queries
// are scaled by position.
ModelSpec ReadLlama4(ConfigReader& config) {
  DenseDecoderOptions options = LlamaOptions(config, 500000.0);
  options.default_head_dim = 128;
  options.rope.layout = RopeLayout::kInterleaved;
  options.dense_mlp = false;
  const bool head_norms = config.Bool("use_qk_norm", true);
  ModelSpec spec = ReadDenseDecoder(config, options);
  const std::vector<bool> turns = ReadTurningLayers(config),
                          sparse = ReadLlama4SparseLayers(config);
  config.Require("nope_layer_interval",  // second name of the same field
                 config.OptionalSize("no_rope_layer_interval").value_or(4));
  LimitToOneChunk(config, turns, spec);
  const bool scaled = config.Bool("attn_temperature_tuning", true);
  const double beta = config.OptionalPositive("attn_scale").value_or(0.1);
  const int64_t period = config.OptionalSize("floor_scale").value_or(8192);
  config.Ignore({"for_llm_compressor"});
  for (LayerSpec& layer : spec.layers) {
    AttentionSpec& attention = layer.attention;
    if (!turns[static_cast<size_t>(layer.layer_id)]) {
      attention.rope = {RopeKind::kNone};
      attention.position_beta = scaled ? beta : 0;
      attention.position_period = period;
      attention.position_offset = 1;
    } else if (head_norms) {
      attention.qk_norm = attention.norm_after_rope = true;
      attention.q_norm = attention.k_norm = {"", attention.head_dim, NormKind::kUnscaled};
    }
    if (sparse[static_cast<size_t>(layer.layer_id)]) continue;
    layer.mlp = DenseMlp(config.LayerPrefix(layer.layer_id) + "feed_forward.", spec.hidden_size,
                         config.Size("intermediate_size_mlp"), options,
                         ReadActivation(config, "hidden_act", "silu"));
  }
  config.Ignore({"intermediate_size_mlp"});
  const int64_t size = config.Size("intermediate_size");
  ExpertsSpec experts = ReadExperts(config, spec.hidden_size, size, "feed_forward.router");
  experts.router.score = RouterScore::kSigmoid;
  experts.router.weigh_input = true;
  NameSharedExpert("feed_forward.shared_expert.", size, experts);
  NameExperts(config, FirstSparse(sparse),
              {.separate = "feed_forward.experts.",
               .fused_gate_up = "feed_forward.experts.gate_up_proj",
               .fused_down = "feed_forward.experts.down_proj",
               .usually_fused = true},
              experts);
  experts.transposed = experts.fused;
  PutExperts(config, experts, sparse, spec);
  return spec;
}

}  // namespace

std::span<const Family> LlamaFamilies() {
  static constexpr Family kRows[] = {
      {"apertus", "ApertusForCausalLM", ReadApertus},
      {"bitnet", "BitNetForCausalLM", ReadBitNet},
      {"cwm", "CwmForCausalLM", ReadCwm},
      {"helium", "HeliumForCausalLM", ReadHelium},
      {"internlm3", "InternLM3ForCausalLM", ReadInternLm3, "LlamaForCausalLM"},
      {"llama", "LlamaForCausalLM", ReadLlama},
      {"llama4_text", "Llama4ForCausalLM", ReadLlama4},
      {"seed_oss", "SeedOssForCausalLM", ReadSeedOss},
      {"smollm3", "SmolLM3ForCausalLM", ReadSmolLm3},
      {"solar_open", "SolarOpenForCausalLM", ReadSolarOpen},
  };
  return kRows;
}

}  // namespace oscar
