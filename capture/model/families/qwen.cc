// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Qwen 2 to 3.6 and two relatives of Qwen 3, Mellum and dots.llm1.
#include <fmt/format.h>

#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

// Returns the window of sliding-window layers, or nothing unless use_sliding_window is set. A
// missing sliding_window means `missing` (transformers, Qwen2Config and others).
std::optional<int64_t> ReadQwenWindow(ConfigReader& config, int64_t missing = 4096) {
  const std::optional<int64_t> window = ReadWindow(config, missing);
  return config.Bool("use_sliding_window", false) ? window : std::nullopt;
}

// Returns the window of each layer. The layers with a window are those in layer_types or, without
// that field, all from max_window_layers (default `first_sliding`) on.
Windows ReadQwenWindows(ConfigReader& config, int64_t first_sliding = 28, int64_t missing = 4096) {
  return ReadWindows(config, ReadQwenWindow(config, missing),
                     config.OptionalCount("max_window_layers").value_or(first_sliding));
}

// Every decoder_sparse_step-th layer has experts, except mlp_only_layers.
std::vector<bool> ReadQwenSparseLayers(ConfigReader& config) {
  const int64_t num_layers = ReadNumLayers(config);
  const int64_t step = config.OptionalSize("decoder_sparse_step").value_or(1);
  std::vector<bool> sparse;
  for (int64_t i = 0; i < num_layers; ++i) sparse.push_back((i + 1) % step == 0);
  const Json* dense = config.Find("mlp_only_layers");
  if (dense == nullptr) return sparse;
  if (!dense->is_array()) config.Fail("mlp_only_layers", "must be a list of layer numbers");
  for (const Json& layer : *dense) {
    if (!layer.is_number_integer() || layer < 0 || layer >= num_layers)
      config.Fail("mlp_only_layers", fmt::format("must hold layer numbers below {}", num_layers));
    sparse[layer.get<size_t>()] = false;
  }
  return sparse;
}

// `normalize`: the value that a missing norm_topk_prob means.
ExpertsSpec ReadQwenExperts(ConfigReader& config, int64_t hidden_size, bool normalize) {
  ExpertsSpec experts =
      ReadExperts(config, hidden_size, config.Size("moe_intermediate_size"), "mlp.gate");
  experts.router.normalize = config.Bool("norm_topk_prob", normalize);
  return experts;
}

// Adds a shared expert with a gate on its output.
ExpertsSpec ReadSharedQwenExperts(ConfigReader& config, int64_t hidden_size, bool normalize) {
  ExpertsSpec experts = ReadQwenExperts(config, hidden_size, normalize);
  NameSharedExpert("mlp.shared_expert.", config.Size("shared_expert_intermediate_size"), experts);
  experts.shared_gate = Linear("mlp.shared_expert_gate", hidden_size, 1);
  return experts;
}

// Qwen2, Qwen2.5 and their distillations: biases on q, k, v but not o. Every release has
// sliding_window and max_window_layers, which have no effect unless use_sliding_window is set.
ModelSpec ReadQwen2(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = true;
  options.windows = ReadQwenWindows(config);
  return ReadDenseDecoder(config, options);
}

// Qwen1.5-MoE and Qwen2-57B-A14B: biases on q, k, v, and a gated shared expert. Unlike in other
// Qwen families, the sliding-window layers are every second layer below max_window_layers.
ModelSpec ReadQwen2Moe(ConfigReader& config) {
  DenseDecoderOptions options;
  options.qkv_bias = config.Bool("qkv_bias", true);
  if (config.Bool("use_sliding_window", false)) {
    const int64_t below = config.OptionalCount("max_window_layers").value_or(28);
    options.windows = ReadWindows(config, ReadWindow(config),
                                  [=](int64_t layer) { return layer % 2 == 0 && layer < below; });
  } else {  // transformers then sets the window to 0
    config.Ignore({"sliding_window", "max_window_layers", "layer_types"});
  }
  ModelSpec spec = ReadDenseDecoder(config, options);
  const ExpertsSpec experts = ReadSharedQwenExperts(config, spec.hidden_size, false);
  PutNamedExperts(config, {}, ReadQwenSparseLayers(config), experts, spec);
  return spec;
}

// Queries and keys are normalized per head before the rotary embedding.
DenseDecoderOptions Qwen3Options(ConfigReader& config, std::optional<double> default_theta = {}) {
  DenseDecoderOptions options = LlamaOptions(config, default_theta);
  options.qk_norm = true;
  return options;
}

// Qwen3 dense. num_heads * head_dim need not be hidden_size, and a missing head_dim means 128
// (transformers' Qwen3Config).
ModelSpec ReadQwen3(ConfigReader& config) {
  DenseDecoderOptions options = Qwen3Options(config);
  options.default_head_dim = 128;
  options.windows = ReadQwenWindows(config);
  return ReadDenseDecoder(config, options);
}

// Qwen3 with experts (30B-A3B, 235B-A22B). Traps: a missing norm_topk_prob means false
// (transformers' Qwen3MoeConfig), although every release sets it. If use_sliding_window is set,
// every layer has a window: unlike in other Qwen families, max_window_layers is ignored.
ModelSpec ReadQwen3Moe(ConfigReader& config) {
  DenseDecoderOptions options = Qwen3Options(config);
  options.windows = ReadUniformWindows(config, ReadQwenWindow(config));
  config.Ignore({"max_window_layers"});
  ModelSpec spec = ReadDenseDecoder(config, options);
  const ExpertsSpec experts = ReadQwenExperts(config, spec.hidden_size, false);
  PutNamedExperts(config, {}, ReadQwenSparseLayers(config), experts, spec);
  return spec;
}

// Qwen 2 with multimodal rope, which on text equals plain rope: the text parts of Qwen2-VL and
// Qwen2.5-VL, and the text model (thinker) of Qwen2.5-Omni.
DenseDecoderOptions Qwen2VlOptions() {
  DenseDecoderOptions options;
  options.qkv_bias = true;
  options.rope.default_theta = 1e6;
  options.rope.text_of_mrope = true;
  return options;
}

ModelSpec ReadQwen25Omni(ConfigReader& config) {
  DenseDecoderOptions options = Qwen2VlOptions();
  options.tied_by_default = true;
  options.windows = ReadQwenWindows(config, /*first_sliding=*/28, /*missing=*/32768);
  return ReadDenseDecoder(config, options);
}

// Releases have the fields of the text part next to vision_config, not in a text_config.
ModelSpec ReadQwen2Vl(ConfigReader& config) {
  DenseDecoderOptions options = Qwen2VlOptions();
  options.windows = ReadQwenWindows(config, /*first_sliding=*/80);
  ModelSpec spec = ReadDenseDecoder(config, options);
  if (config.Find("vision_config") == nullptr) return spec;
  config.Ignore({"image_token_id", "video_token_id", "vision_end_token_id", "vision_start_token_id",
                 "vision_token_id"});
  for (const std::string_view begin : OtherModalityTensors())
    spec.skipped_prefixes.emplace_back(begin);
  return spec;
}

// The text parts of Qwen3-VL: Qwen 3 and Qwen 3 with experts.
DenseDecoderOptions Qwen3VlOptions(ConfigReader& config) {
  DenseDecoderOptions options = Qwen3Options(config, 500000.0);
  options.default_head_dim = 128;
  options.rope.text_of_mrope = true;
  return options;
}

ModelSpec ReadQwen3Vl(ConfigReader& config) {
  return ReadDenseDecoder(config, Qwen3VlOptions(config));
}

// Qwen3-VL stores its experts transposed.
ModelSpec ReadQwen3VlMoe(ConfigReader& config) {
  ModelSpec spec = ReadDenseDecoder(config, Qwen3VlOptions(config));
  ExpertsSpec experts = ReadQwenExperts(config, spec.hidden_size, true);
  config.Require("norm_topk_prob", true);
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

// The text model (thinker) of Qwen3-Omni. Its window is null in releases and never read
// (modeling_qwen3_omni_moe.py).
ModelSpec ReadQwen3OmniMoe(ConfigReader& config) {
  DenseDecoderOptions options = Qwen3Options(config, 1e6);
  options.rope.text_of_mrope = true;
  config.Ignore({"max_window_layers", "sliding_window", "use_sliding_window"});
  config.Require("shared_expert_intermediate_size", 0);
  ModelSpec spec = ReadDenseDecoder(config, options);
  const ExpertsSpec experts = ReadQwenExperts(config, spec.hidden_size, true);
  PutNamedExperts(config, {}, ReadQwenSparseLayers(config), experts, spec);
  return spec;
}

GatedDeltaNetSpec ReadDeltaNet(ConfigReader& config, bool fused) {
  GatedDeltaNetSpec net;
  net.fused = fused;
  net.num_k_heads = config.Size("linear_num_key_heads");
  net.num_v_heads = config.Size("linear_num_value_heads");
  net.k_head_dim = config.Size("linear_key_head_dim");
  net.v_head_dim = config.Size("linear_value_head_dim");
  net.conv_kernel = config.Size("linear_conv_kernel_dim");
  if (net.num_v_heads % net.num_k_heads != 0) {
    config.Fail("linear_num_value_heads",
                fmt::format("must be a multiple of linear_num_key_heads {}", net.num_k_heads));
  }
  return net;
}

GatedDeltaNetSpec NamedDeltaNet(GatedDeltaNetSpec net, const std::string& prefix,
                                int64_t hidden_size) {
  const auto in = [&](const char* name, int64_t out_features) {
    return Linear(prefix + name, hidden_size, out_features);
  };
  if (net.fused) {
    net.qkvz = in("in_proj_qkvz", net.conv_width() + net.value_width());
    net.ba = in("in_proj_ba", 2 * net.num_v_heads);
  } else {
    net.qkv = in("in_proj_qkv", net.conv_width());
    net.z = in("in_proj_z", net.value_width());
    net.b = in("in_proj_b", net.num_v_heads);
    net.a = in("in_proj_a", net.num_v_heads);
  }
  net.conv = prefix + "conv1d.weight";
  net.a_log = prefix + "A_log";
  net.dt_bias = prefix + "dt_bias";
  net.out_norm = {prefix + "norm.weight", net.v_head_dim};
  net.out = Linear(prefix + "out_proj", net.value_width(), hidden_size);
  return net;
}

// Qwen3-Next and Qwen3.5: three layers of linear attention per layer of softmax attention, whose
// output has a gate. Traps: all norms are (1 + w), except the one in linear attention; q_proj gives
// [query | gate] for each head. `fused`: linear attention is stored as in Qwen3-Next. `dense_mlp`:
// layers without experts have an MLP.
ModelSpec ReadQwenHybrid(ConfigReader& config, bool fused, bool dense_mlp) {
  DenseDecoderOptions options = Qwen3Options(config);
  options.norm = NormKind::kOnePlus;
  options.default_head_dim = 256;
  options.rope.default_partial = 0.25;
  options.rope.text_of_mrope = true;
  options.dense_mlp = dense_mlp;
  ModelSpec spec = ReadDenseDecoder(config, options);
  config.Require("attn_output_gate", true);
  config.Require("output_gate_type", "swish");  // for the norm after the delta rule
  // Fields without effect: the data type of a kernel's state, and multi-token prediction.
  config.Ignore({"mamba_ssm_dtype", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings"});

  constexpr std::string_view kFullLayer = "full_attention", kLinearLayer = "linear_attention";
  const int64_t interval = config.OptionalSize("full_attention_interval").value_or(4);
  const std::vector<std::string> types = ReadLayerTypes(
      config, {kFullLayer, kLinearLayer},
      [=](int64_t layer) { return (layer + 1) % interval == 0 ? kFullLayer : kLinearLayer; });
  const GatedDeltaNetSpec net = ReadDeltaNet(config, fused);
  for (LayerSpec& layer : spec.layers) {
    if (types[static_cast<size_t>(layer.layer_id)] == kFullLayer) {
      layer.attention.gated = true;
      layer.attention.q.out_features *= 2;
      continue;
    }
    layer.attention = {};
    layer.delta_net =
        NamedDeltaNet(net, config.LayerPrefix(layer.layer_id) + "linear_attn.", spec.hidden_size);
  }
  spec.skipped_prefixes.push_back("mtp.");
  return spec;
}

// Qwen3-Next 80B-A3B. The projections of linear attention are fused, ordered by key head.
ModelSpec ReadQwen3Next(ConfigReader& config) {
  ModelSpec spec = ReadQwenHybrid(config, /*fused=*/true, /*dense_mlp=*/true);
  const ExpertsSpec experts = ReadSharedQwenExperts(config, spec.hidden_size, true);
  PutNamedExperts(config, {}, ReadQwenSparseLayers(config), experts, spec);
  return spec;
}

// The text models of Qwen3.5 and 3.6, dense and with experts. Releases store all experts of a layer
// as one tensor without ".weight"; transformers writes them separately.
ModelSpec ReadQwen35(ConfigReader& config) {
  return ReadQwenHybrid(config, /*fused=*/false, /*dense_mlp=*/true);
}

ModelSpec ReadQwen35Moe(ConfigReader& config) {
  ModelSpec spec = ReadQwenHybrid(config, /*fused=*/false, /*dense_mlp=*/false);
  const ExpertsSpec experts = ReadSharedQwenExperts(config, spec.hidden_size, true);
  config.Require("norm_topk_prob", true);
  config.Ignore({"intermediate_size"});  // no layer has a dense MLP
  PutNamedExperts(config, {.usually_fused = true}, {}, experts, spec);
  return spec;
}

// Mellum 2: Qwen 3 with experts, and some sliding-window layers with their own rope. Without
// layer_types no layer has a window, even if sliding_window is set.
ModelSpec ReadMellum(ConfigReader& config) {
  DenseDecoderOptions options = Qwen3Options(config, 500000.0);
  options.default_head_dim = 128;
  options.rope.layer_type = "full_attention";
  options.windows = ReadWindows(config, ReadWindow(config, 1024), ReadNumLayers(config));
  if (AnySlides(options.windows)) {
    options.sliding_rope = {
        .default_theta = 10000.0, .layer_type = "sliding_attention", .scaled = false};
  }
  ModelSpec spec = ReadDenseDecoder(config, options);
  const ExpertsSpec experts = ReadQwenExperts(config, spec.hidden_size, true);
  PutNamedExperts(config, {}, ReadDeepSeekSparseLayers(config, 0), experts, spec);
  return spec;
}

// dots.llm1: Qwen 3's attention, DeepSeek's experts. Layers from max_window_layers on have a window
// unless sliding_window is null; a missing sliding_window means 4096.
ModelSpec ReadDots1(ConfigReader& config) {
  DenseDecoderOptions options = Qwen3Options(config, 10000.0);
  options.windows = ReadWindows(config, ReadWindow(config, 4096),
                                config.OptionalCount("max_window_layers").value_or(62));
  const Json* scores = config.Find("scoring_func");
  if (scores != nullptr && *scores == "noaux_tc")  // spelling of releases
    config.Override("scoring_func", "sigmoid");
  ModelSpec spec = ReadDenseDecoder(config, options);
  config.Default("norm_topk_prob", false);
  const ExpertsSpec experts = ReadSigmoidExperts(config, spec.hidden_size);
  PutNamedExperts(config, {}, ReadDeepSeekSparseLayers(config, 0), experts, spec);
  return spec;
}

}  // namespace

std::span<const Family> QwenFamilies() {
  static constexpr Family kRows[] = {
      {"dots1", "Dots1ForCausalLM", ReadDots1},
      {"mellum", "MellumForCausalLM", ReadMellum},
      {"qwen2", "Qwen2ForCausalLM", ReadQwen2},
      {"qwen2_5_omni_text", "Qwen2_5OmniThinkerForConditionalGeneration", ReadQwen25Omni},
      {"qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", ReadQwen2Vl},
      {"qwen2_5_vl_text", "Qwen2_5_VLForConditionalGeneration", ReadQwen2Vl},
      {"qwen2_moe", "Qwen2MoeForCausalLM", ReadQwen2Moe},
      {"qwen2_vl", "Qwen2VLForConditionalGeneration", ReadQwen2Vl},
      {"qwen2_vl_text", "Qwen2VLForConditionalGeneration", ReadQwen2Vl},
      {"qwen3", "Qwen3ForCausalLM", ReadQwen3},
      {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", ReadQwen35Moe},
      {"qwen3_5_text", "Qwen3_5ForCausalLM", ReadQwen35},
      {"qwen3_moe", "Qwen3MoeForCausalLM", ReadQwen3Moe},
      {"qwen3_next", "Qwen3NextForCausalLM", ReadQwen3Next},
      {"qwen3_omni_moe_text", "Qwen3OmniMoeThinkerForConditionalGeneration", ReadQwen3OmniMoe},
      {"qwen3_vl_moe_text", "Qwen3VLMoeForConditionalGeneration", ReadQwen3VlMoe},
      {"qwen3_vl_text", "Qwen3VLForConditionalGeneration", ReadQwen3Vl},
  };
  return kRows;
}

}  // namespace oscar
