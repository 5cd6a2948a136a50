// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// LG's EXAONE. Since EXAONE 4 it has QK norms per head and three sliding-window layers per full one
// (transformers 5, modeling_exaone4.py).
#include <fmt/format.h>

#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

// EXAONE 3: Llama with other field and tensor names (transformers 5 runs it as Llama).
ModelSpec ReadExaone(ConfigReader& config) {
  config.SecondName("num_hidden_layers", "num_layers");
  config.SecondName("rms_norm_eps", "layer_norm_epsilon");
  config.SecondName("hidden_act", "activation_function");
  config.Default("rms_norm_eps", 1e-5);
  config.Ignore({"embed_dropout"});  // used only in training
  DenseDecoderOptions options = LlamaOptions(config, 500000.0);
  options.mlp_bias = config.Bool("mlp_bias", false);
  if (config.StoresPrefix(config.prefix() + "embed_tokens."))
    return ReadDenseDecoder(config, options);
  config.NameLayers("transformer.", "h.");
  options.norms = {"ln_1", "", "ln_2", ""};
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers) {
    const auto rename = [&](LinearSpec& linear, const char* name) {
      linear = Linear(config.LayerPrefix(layer.layer_id) + name, linear.in_features,
                      linear.out_features, !linear.bias.empty());
    };
    rename(layer.attention.q, "attn.attention.q_proj");
    rename(layer.attention.k, "attn.attention.k_proj");
    rename(layer.attention.v, "attn.attention.v_proj");
    rename(layer.attention.o, "attn.attention.out_proj");
    rename(layer.mlp.gate, "mlp.c_fc_0");
    rename(layer.mlp.up, "mlp.c_fc_1");
    rename(layer.mlp.down, "mlp.c_proj");
  }
  NameEnds("transformer.wte", "transformer.ln_f", spec);
  return spec;
}

// Returns sliding_window_pattern as letters: L for a sliding-window layer, G for full attention.
// The field holds such letters ("LLLG") or a number n: every n-th layer has full attention.
std::string ReadExaonePattern(ConfigReader& config) {
  const Json* value = config.Find("sliding_window_pattern");
  if (value != nullptr && value->is_string()) {
    const std::string letters = value->get<std::string>();
    if (letters.empty() || letters.find_first_not_of("LG") != std::string::npos)
      config.Fail("sliding_window_pattern", "must consist of L and G");
    return letters;
  }
  const int64_t every = config.OptionalCount("sliding_window_pattern").value_or(4);
  if (every > 4096) config.Fail("sliding_window_pattern", "must be from 0 to 4096");
  if (every == 0) return "G";
  return std::string(static_cast<size_t>(every - 1), 'L') + "G";
}

// If the config has a window, full-attention layers have no rope, even if there are no other
// layers. Otherwise all layers have rope.
ModelSpec ReadExaone4Layers(ConfigReader& config, const LayerNormNames& norms) {
  DenseDecoderOptions options;
  options.qk_norm = true;
  options.norms = norms;
  options.rope.default_theta = 10000.0;
  const std::optional<int64_t> window = ReadWindow(config, 4096);
  const std::string pattern = ReadExaonePattern(config);
  options.windows = ReadWindows(config, window, [&](int64_t layer) {
    return window && pattern[static_cast<size_t>(layer) % pattern.size()] == 'L';
  });
  ModelSpec spec = ReadDenseDecoder(config, options);
  for (LayerSpec& layer : spec.layers)
    if (window && !layer.attention.window) layer.attention.rope = {RopeKind::kNone};
  return spec;
}

// EXAONE 4: norms on the outputs of attention and MLP.
ModelSpec ReadExaone4(ConfigReader& config) { return ReadExaone4Layers(config, PostNorms()); }

// K-EXAONE: EXAONE 4's attention, but with norms before it, and DeepSeek's experts.
ModelSpec ReadExaoneMoe(ConfigReader& config) {
  ModelSpec spec = ReadExaone4Layers(config, {});
  config.Default("n_shared_experts", config.OptionalCount("num_shared_experts").value_or(1));
  config.Default("routed_scaling_factor", 2.5);
  ExpertsSpec experts = ReadSigmoidExperts(config, spec.hidden_size);
  const std::vector<bool> sparse = ReadDeepSeekSparseLayers(config, 1);
  if (const Json* listed = config.Find("is_moe_layer"); listed != nullptr) {
    if (*listed != Json(sparse))
      config.Fail("is_moe_layer", "contradicts mlp_layer_types or first_k_dense_replace");
  }
  const std::string first = config.LayerPrefix(FirstSparse(sparse));
  if (!config.Stores(first + experts.router.choice_bias))
    experts.router.choice_bias = "mlp.e_score_correction_bias";
  PutDeepSeekExperts(config, 1, experts, spec);
  spec.skipped_prefixes.push_back("mtp.");  // multi-token prediction
  return spec;
}

}  // namespace

std::span<const Family> ExaoneFamilies() {
  static constexpr Family kRows[] = {
      {"exaone", "ExaoneForCausalLM", ReadExaone, "LlamaForCausalLM"},
      {"exaone4", "Exaone4ForCausalLM", ReadExaone4},
      {"exaone_moe", "ExaoneMoeForCausalLM", ReadExaoneMoe},
  };
  return kRows;
}

}  // namespace oscar
