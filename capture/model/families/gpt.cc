// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Descendants of GPT-2 and GPT-3, and gpt-oss. The descendants' norms subtract the mean and have a
// bias; most of their MLPs have two projections and no gate.
#include <fmt/format.h>

#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

DenseDecoderOptions GptOptions(const char* eps_field, const char* activation_field) {
  DenseDecoderOptions options;
  options.norm = NormKind::kLayerNorm;
  options.norm_bias = true;
  options.eps_field = eps_field;
  options.activation_field = activation_field;
  options.default_activation = "gelu";
  options.gated_mlp = false;
  options.rope.default_theta = 10000.0;
  return options;
}

// Names of a layer's four projections. Trap: the rows of `qkv` are ordered by KV head, with the
// queries, keys and values of one head after another. With a single KV head this is the usual order
// (transformers 5, modeling_{gpt_neox,falcon,gpt_bigcode}.py).
struct GptNames {
  const char *qkv, *o, *up, *down;
};

void NameGptLayers(const ConfigReader& config, const GptNames& names, bool attention_bias,
                   bool mlp_bias, ModelSpec& spec) {
  for (LayerSpec& layer : spec.layers) {
    const std::string prefix = config.LayerPrefix(layer.layer_id);
    AttentionSpec& a = layer.attention;
    const int64_t hidden = spec.hidden_size, heads = a.num_kv_heads, dim = a.head_dim;
    const int64_t queries = a.gqa_ratio() * dim, step = queries + 2 * dim;
    const auto part = [&](int64_t first, int64_t rows) {
      LinearSpec linear =
          Rows(prefix + names.qkv, hidden, first, heads * rows, heads * step, attention_bias);
      if (heads > 1) linear.piece_rows = rows, linear.piece_step = step;
      return linear;
    };
    a.q = part(0, queries);
    a.k = part(queries, dim);
    a.v = part(queries + dim, dim);
    a.o = Linear(prefix + names.o, a.o.in_features, hidden, attention_bias);
    const int64_t size = layer.mlp.intermediate_size;
    layer.mlp.up = Linear(prefix + names.up, hidden, size, mlp_bias);
    layer.mlp.down = Linear(prefix + names.down, size, hidden, mlp_bias);
  }
}

// GPT-NeoX and Pythia.
ModelSpec ReadGptNeoX(ConfigReader& config) {
  DenseDecoderOptions options = GptOptions("layer_norm_eps", "hidden_act");
  options.rope.theta_field = "rotary_emb_base";
  options.rope.default_partial = config.OptionalPositive("rotary_pct").value_or(0.25);
  config.Default("layer_norm_eps", 1e-5);
  config.NameLayers("gpt_neox.", "layers.");
  const bool bias = config.Bool("attention_bias", true);
  const bool parallel = config.Bool("use_parallel_residual", true);
  ModelSpec spec = ReadDenseDecoder(config, options);
  NameGptLayers(
      config,
      {"attention.query_key_value", "attention.dense", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"},
      bias, /*mlp_bias=*/true, spec);
  for (LayerSpec& layer : spec.layers) layer.parallel = parallel;
  NameEnds("gpt_neox.embed_in", "gpt_neox.final_layer_norm", spec,
           config.Stores("lm_head.weight") ? "lm_head" : "embed_out");
  // Skips the masks that old releases store.
  for (const char* mask : {".attention.bias", ".attention.masked_bias"})
    spec.skipped_suffixes.emplace_back(mask);
  return spec;
}

// Falcon 7B to 180B and Falcon 2.
ModelSpec ReadFalcon(ConfigReader& config) {
  config.Require("alibi", false);
  DenseDecoderOptions options = GptOptions("layer_norm_epsilon", "activation");
  options.tied_by_default = true;
  config.Default("layer_norm_epsilon", 1e-5);
  config.Default("max_position_embeddings", 2048);
  config.NameLayers("transformer.", "h.");
  const int64_t heads = config.Size("num_attention_heads");
  const bool grouped = config.Bool("new_decoder_architecture", false);
  const bool one_head = config.Bool("multi_query", true);
  const int64_t kv_heads = config.OptionalSize("num_kv_heads").value_or(heads);
  if (!grouped && !one_head && kv_heads != heads)
    config.Fail("num_kv_heads", fmt::format("must equal num_attention_heads {} here", heads));
  config.Override("num_key_value_heads", grouped || !one_head ? kv_heads : 1);
  config.Override("intermediate_size",
                  config.OptionalSize("ffn_hidden_size").value_or(4 * config.Size("hidden_size")));
  // Other fields that releases have but the model's code never reads.
  config.Ignore({"apply_residual_connection_post_layernorm", "ff_factor"});
  const bool parallel = config.Bool("parallel_attn", true);
  const int64_t norms = config.OptionalSize("num_ln_in_parallel_attn").value_or(grouped ? 2 : 1);
  if (norms > 2 || (norms == 2 && !grouped))
    config.Fail("num_ln_in_parallel_attn", "must be 1, or, with new_decoder_architecture, 1 or 2");
  if (grouped && !parallel)
    config.Fail("parallel_attn", "must be true with new_decoder_architecture");
  if (parallel && norms == 2) options.norms = {"ln_attn", "", "ln_mlp", ""};
  if (parallel && norms == 1) options.norms.mlp = "";
  const bool bias = config.Bool("bias", false);
  ModelSpec spec = ReadDenseDecoder(config, options);
  NameGptLayers(config,
                {"self_attention.query_key_value", "self_attention.dense", "mlp.dense_h_to_4h",
                 "mlp.dense_4h_to_h"},
                bias, bias, spec);
  for (LayerSpec& layer : spec.layers) layer.parallel = parallel;
  NameEnds("transformer.word_embeddings", "transformer.ln_f", spec);
  return spec;
}

// GPT-BigCode (SantaCoder, StarCoder), with learned positions instead of rope.
ModelSpec ReadGptBigCode(ConfigReader& config) {
  DenseDecoderOptions options = GptOptions("layer_norm_epsilon", "activation_function");
  options.default_activation = "gelu_pytorch_tanh";
  options.norms = {"ln_1", "", "ln_2", ""};
  options.tied_by_default = true;
  for (const auto& [key, own] : {std::pair("hidden_size", "n_embd"),
                                 {"max_position_embeddings", "n_positions"},
                                 {"num_hidden_layers", "n_layer"},
                                 {"num_attention_heads", "n_head"}}) {
    config.SecondName(key, own);
  }
  config.Default("layer_norm_epsilon", 1e-5);
  config.NameLayers("transformer.", "h.");
  config.Override("intermediate_size",
                  config.OptionalSize("n_inner").value_or(4 * config.Size("hidden_size")));
  config.Override("num_key_value_heads",
                  config.Bool("multi_query", true) ? 1 : config.Size("num_attention_heads"));
  if (!config.Bool("scale_attn_weights", true)) options.scale = 1.0;
  // Fields for generation and classification in StarCoder's releases.
  config.Ignore({"attn_pdrop", "inference_runner", "max_batch_size", "max_sequence_length",
                 "pad_key_length", "pre_allocate_kv_cache", "summary_activation",
                 "summary_first_dropout", "summary_proj_to_labels", "summary_type",
                 "summary_use_proj", "validate_runner_input"});
  ModelSpec spec = ReadDenseDecoder(config, options);
  NameGptLayers(config, {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}, true, true, spec);
  for (LayerSpec& layer : spec.layers) layer.attention.rope = {RopeKind::kNone};
  NameEnds("transformer.wte", "transformer.ln_f", spec);
  spec.position_embedding = "transformer.wpe.weight";
  for (const char* mask : {".attn.bias", ".attn.masked_bias"})  // stored by old releases
    spec.skipped_suffixes.emplace_back(mask);
  return spec;
}

// StarCoder 2: biases everywhere (transformers 5, modeling_starcoder2.py). use_bias covers all
// projections and defaults to true; norms always have a bias.
ModelSpec ReadStarcoder2(ConfigReader& config) {
  DenseDecoderOptions options = GptOptions("norm_epsilon", "hidden_act");
  const bool bias = config.Bool("use_bias", true);
  options.qkv_bias = options.o_bias = options.mlp_bias = bias;
  options.default_activation = "gelu_pytorch_tanh";
  options.tied_by_default = true;
  config.Default("norm_epsilon", 1e-5);
  config.Require("norm_type", "layer_norm");
  config.Require("mlp_type", "default");
  config.Require("scale_attn_weights", true);
  config.Ignore({"layer_norm_epsilon"});  // left over from GPT-2; norm_epsilon is used
  options.windows = ReadUniformWindows(config, ReadWindow(config));
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) {
    const std::string mlp = config.LayerPrefix(layer.layer_id) + "mlp.";
    const int64_t size = layer.mlp.intermediate_size;
    layer.mlp.up = Linear(mlp + "c_fc", spec.hidden_size, size, bias);
    layer.mlp.down = Linear(mlp + "c_proj", size, spec.hidden_size, bias);
  }
  return spec;
}

// Nemotron-4 and Minitron (transformers 5, modeling_nemotron.py): norms that subtract the mean and
// multiply by 1 + w, a squared-ReLU MLP without a gate, rope on half of each head. Norms always
// have biases, whatever attention_bias and mlp_bias say.
ModelSpec ReadNemotron(ConfigReader& config) {
  DenseDecoderOptions options = GptOptions("norm_eps", "hidden_act");
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.norm = NormKind::kLayerNormOnePlus;
  options.default_activation = "relu2";
  options.rope.default_partial = 0.5;
  config.Default("norm_eps", 1e-5);
  return ReadDenseDecoder(config, options);
}

// Jais 2: a squared-ReLU MLP without a gate (transformers 5, modeling_jais2.py). A missing
// attention_bias or mlp_bias means true.
ModelSpec ReadJais2(ConfigReader& config) {
  DenseDecoderOptions options = GptOptions("layer_norm_eps", "hidden_act");
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", true);
  options.mlp_bias = config.Bool("mlp_bias", true);
  options.default_activation = "relu2";
  config.Default("layer_norm_eps", 1e-5);
  return ReadDenseDecoder(config, options);
}

// StableLM 2 and 3B (transformers 5, modeling_stablelm.py): rope on a quarter of each head, and an
// MLP with a gate. The 12B runs attention and MLP in parallel and normalizes queries and keys. Each
// head has its own norm, stored as a separate tensor without a bias.
ModelSpec ReadStableLm(ConfigReader& config) {
  DenseDecoderOptions options = GptOptions("layer_norm_eps", "hidden_act");
  options.default_activation = "silu";
  options.gated_mlp = true;
  options.qkv_bias = config.Bool("use_qkv_bias", false);
  options.rope.default_partial = 0.25;
  config.Default("layer_norm_eps", 1e-5);
  const bool parallel = config.Bool("use_parallel_residual", false);
  const bool head_norms = config.Bool("qk_layernorm", false);
  if (parallel) options.norms.mlp = "";
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) {
    layer.parallel = parallel;
    if (!head_norms) continue;
    AttentionSpec& attention = layer.attention;
    const std::string prefix = config.LayerPrefix(layer.layer_id) + "self_attn.";
    const auto norm = [&](const char* name, int64_t heads) {
      return NormSpec{prefix + name + ".norms.#.weight", attention.head_dim, NormKind::kLayerNorm,
                      "", heads};
    };
    attention.qk_norm = true;
    attention.q_norm = norm("q_layernorm", attention.num_q_heads);
    attention.k_norm = norm("k_layernorm", attention.num_kv_heads);
  }
  return spec;
}

// gpt-oss 20B and 120B: biases everywhere, a sliding window in every other layer, and a sink (an
// extra softmax logit) for each head. Experts are stored transposed, with gate and up interleaved.
// hidden_act says silu, but experts use a clamped gate (ClampedGate).
ModelSpec ReadGptOss(ConfigReader& config) {
  RequireRopeSettings(config);
  DenseDecoderOptions options;
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", true);
  options.default_head_dim = 64;
  options.rope.default_theta = 150000.0;
  options.dense_mlp = false;
  options.windows =
      ReadWindows(config, ReadWindow(config, 128), [](int64_t layer) { return layer % 2 == 0; });
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers)
    layer.attention.sinks = config.LayerPrefix(layer.layer_id) + "self_attn.sinks";

  ExpertsSpec experts =
      ReadExperts(config, spec.hidden_size, config.Size("intermediate_size"), "mlp.router");
  experts.router.logits.bias = "mlp.router.bias";
  experts.router.score = RouterScore::kChosenSoftmax;
  ClampedGate gate;
  gate.alpha = config.OptionalPositive("swiglu_alpha").value_or(gate.alpha);
  gate.limit = config.OptionalPositive("swiglu_limit").value_or(gate.limit);
  experts.clamped_gate = gate;
  experts.fused = experts.transposed = experts.interleaved = true;
  experts.gate_up = "mlp.experts.gate_up_proj";
  experts.gate_up_bias = "mlp.experts.gate_up_proj_bias";
  experts.down = "mlp.experts.down_proj";
  experts.down_bias = "mlp.experts.down_proj_bias";
  PutExperts(config, experts, {}, spec);
  config.Require("experts_per_token", experts.router.top_k);  // second name of the same field
  config.Ignore({"initial_context_length"});  // repeats the original context of rope_scaling
  return spec;
}

}  // namespace

std::span<const Family> GptFamilies() {
  static constexpr Family kRows[] = {
      {"falcon", "FalconForCausalLM", ReadFalcon},
      {"gpt_bigcode", "GPTBigCodeForCausalLM", ReadGptBigCode},
      {"gpt_neox", "GPTNeoXForCausalLM", ReadGptNeoX},
      {"gpt_oss", "GptOssForCausalLM", ReadGptOss},
      {"jais2", "Jais2ForCausalLM", ReadJais2},
      {"nemotron", "NemotronForCausalLM", ReadNemotron},
      {"stablelm", "StableLmForCausalLM", ReadStableLm},
      {"starcoder2", "Starcoder2ForCausalLM", ReadStarcoder2},
  };
  return kRows;
}

}  // namespace oscar
