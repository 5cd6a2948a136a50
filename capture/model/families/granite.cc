// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// IBM's Granite 3 and 4: Llama with four multipliers. Some families also have experts, a shared
// expert, or sliding-window layers.
#include <fmt/format.h>

#include "capture/model/families/experts_config.h"

namespace oscar {
namespace {

// embedding_multiplier applies to embeddings, residual_multiplier to the outputs of attention and
// MLP. attention_multiplier is the softmax scale, or 1 if it is missing. logits_scaling divides
// logits.
ModelSpec ReadGraniteLayers(ConfigReader& config, DenseDecoderOptions options) {
  options.qkv_bias = options.o_bias = config.Bool("attention_bias", false);
  options.rope.default_theta = 10000.0;
  options.scale = config.OptionalPositive("attention_multiplier").value_or(1.0);
  ModelSpec spec = ReadDenseDecoder(config, options);
  spec.embedding_multiplier = config.OptionalPositive("embedding_multiplier").value_or(1.0);
  spec.logit_multiplier = 1 / config.OptionalPositive("logits_scaling").value_or(1.0);
  const double residual = config.OptionalPositive("residual_multiplier").value_or(1.0);
  for (LayerSpec& layer : spec.layers) layer.residual_multiplier = residual;
  return spec;
}

// Granite 3 dense.
ModelSpec ReadGranite(ConfigReader& config) {
  DenseDecoderOptions options;
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.windows = ReadWindows(config, std::nullopt, 0);
  return ReadGraniteLayers(config, options);
}

// Granite 3 with experts in every layer instead of an MLP. The softmax covers only the chosen
// experts. All experts of a layer are stored in one tensor, under Granite's own names.
ModelSpec ReadGraniteMoe(ConfigReader& config) {
  DenseDecoderOptions options;
  options.dense_mlp = false;
  ModelSpec spec = ReadGraniteLayers(config, options);
  // transformers 5 saves some of these models with tensor names that no release uses.
  const std::string block = "block_sparse_moe.";
  const bool written = config.StoresPrefix(config.LayerPrefix(0) + block + "experts.");
  ExpertsSpec experts = ReadExperts(config, spec.hidden_size, config.Size("intermediate_size"),
                                    block + (written ? "router" : "router.layer"));
  experts.router.score = RouterScore::kChosenSoftmax;
  experts.fused = true;
  experts.gate_up = block + (written ? "experts.gate_up_proj" : "input_linear.weight");
  experts.down = block + (written ? "experts.down_proj" : "output_linear.weight");
  PutExperts(config, experts, {}, spec);
  return spec;
}

// An MLP that stores gate and up as one tensor: prefix + "input_linear", "output_linear".
MlpSpec FusedMlp(const std::string& prefix, int64_t hidden_size, int64_t size,
                 Activation activation) {
  const std::string both = prefix + "input_linear";
  return {size, activation, Rows(both, hidden_size, 0, size, 2 * size),
          Rows(both, hidden_size, size, size, 2 * size),
          Linear(prefix + "output_linear", size, hidden_size)};
}

// Describes a shared expert that is stored like FusedMlp.
void NameFusedSharedExpert(const std::string& prefix, int64_t size, ExpertsSpec& experts) {
  const MlpSpec mlp = FusedMlp(prefix, experts.hidden_size, size, experts.activation);
  experts.shared_size = size;
  experts.shared_gate_proj = mlp.gate;
  experts.shared_up_proj = mlp.up;
  experts.shared_down_proj = mlp.down;
}

// Granite 3 with experts and a shared expert. The shared expert stores gate and up as one tensor;
// the residual multiplier also scales its output.
ModelSpec ReadGraniteMoeShared(ConfigReader& config) {
  ModelSpec spec = ReadGraniteMoe(config);
  const int64_t size = config.OptionalCount("shared_intermediate_size").value_or(0);
  if (size == 0) return spec;
  for (LayerSpec& layer : spec.layers) {
    NameFusedSharedExpert(config.LayerPrefix(layer.layer_id) + "shared_mlp.", size, *layer.experts);
  }
  return spec;
}

void CheckGraniteLayerTypes(ConfigReader& config) {
  const char* const spelled = config.Has("layer_types") ? "layer_types" : "layers_block_type";
  const Json* types = config.Find(spelled);
  for (const char* other : {"layer_types", "layers_block_type"}) (void)config.Find(other);
  if (types != nullptr &&
      (!types->is_array() || static_cast<int64_t>(types->size()) != ReadNumLayers(config))) {
    config.Fail(spelled, fmt::format("must be a list of num_hidden_layers = {} names",
                                     ReadNumLayers(config)));
  }
  for (size_t i = 0; i < (types == nullptr ? 1 : types->size()); ++i) {
    if (types != nullptr && ((*types)[i] == "attention" || (*types)[i] == "full_attention"))
      continue;
    config.Fail(spelled, fmt::format("makes layer {} a state-space layer (Mamba), which is not "
                                     "implemented. Supported: attention",
                                     i));
  }
  // Fields of Mamba layers, which do not exist here.
  config.Ignore({"mamba_n_heads", "mamba_n_groups", "mamba_d_state", "mamba_d_head", "mamba_d_conv",
                 "mamba_expand", "mamba_chunk_size", "mamba_conv_bias", "mamba_proj_bias",
                 "time_step_limit", "time_step_min", "time_step_max", "time_step_floor"});
}

// Granite 4 without Mamba layers (micro, 1B and 350M). Gate and up are stored as one tensor under
// shared_mlp; some sizes also have experts, in parallel. Most sizes have Mamba layers and are
// refused. position_embedding_type "nope" means no rope.
ModelSpec ReadGraniteHybrid(ConfigReader& config) {
  CheckGraniteLayerTypes(config);
  DenseDecoderOptions dense;
  dense.dense_mlp = false;  // stored under another name, see below
  const bool experts = config.OptionalCount("num_local_experts").value_or(8) > 0;
  const int64_t size = config.OptionalSize("shared_intermediate_size").value_or(1024);
  ModelSpec spec = experts ? ReadGraniteMoe(config) : ReadGraniteLayers(config, dense);
  config.Ignore({"intermediate_size", "num_experts_per_tok"});
  const std::string position = config.String("position_embedding_type", "nope");
  if (position != "rope" && position != "nope")
    config.Fail("position_embedding_type", "is not implemented. Supported: rope, nope");
  const Activation activation = ReadActivation(config, "hidden_act", "silu");
  for (LayerSpec& layer : spec.layers) {
    if (position == "nope") layer.attention.rope = {RopeKind::kNone};
    const std::string prefix = config.LayerPrefix(layer.layer_id) + "shared_mlp.";
    if (layer.experts) {
      NameFusedSharedExpert(prefix, size, *layer.experts);
    } else {
      layer.mlp = FusedMlp(prefix, spec.hidden_size, size, activation);
    }
  }
  return spec;
}

// Granite SWA (transformers 5, modeling_granite_swa.py): three sliding-window layers per
// full-attention layer, starting with a full-attention layer, and a sink for each head.
// layer_rope_theta gives each layer its own base; 0 means no rope.
void PutSlidingLayers(ConfigReader& config, ModelSpec& spec) {
  const Windows windows =
      ReadWindows(config, ReadWindow(config, 128), [](int64_t layer) { return layer % 4 != 0; });
  const Json* thetas = config.Find("layer_rope_theta");
  if (thetas != nullptr && (!thetas->is_array() || thetas->size() != spec.layers.size())) {
    config.Fail("layer_rope_theta",
                fmt::format("must be a list of {} numbers", spec.layers.size()));
  }
  for (LayerSpec& layer : spec.layers) {
    const auto i = static_cast<size_t>(layer.layer_id);
    layer.attention.window = windows[i];
    layer.attention.sinks = config.LayerPrefix(layer.layer_id) + "self_attn.sinks";
    if (thetas == nullptr) continue;
    const Json& theta = (*thetas)[i];
    if (!theta.is_null() && (!theta.is_number() || theta < 0))
      config.Fail("layer_rope_theta", "must be a list of numbers of at least 0");
    if (theta.is_null() || theta == 0) {
      layer.attention.rope = {RopeKind::kNone};
    } else {
      layer.attention.rope.theta = theta.get<double>();
    }
  }
}

ModelSpec ReadGraniteSwa(ConfigReader& config) {
  DenseDecoderOptions options;
  options.mlp_bias = config.Bool("mlp_bias", false);
  options.tied_by_default = true;
  ModelSpec spec = ReadGraniteLayers(config, options);
  PutSlidingLayers(config, spec);
  return spec;
}

ModelSpec ReadGraniteMoeSwa(ConfigReader& config) {
  ModelSpec spec = ReadGraniteMoeShared(config);
  PutSlidingLayers(config, spec);
  return spec;
}

}  // namespace

std::span<const Family> GraniteFamilies() {
  static constexpr Family kRows[] = {
      {"granite", "GraniteForCausalLM", ReadGranite},
      {"granite_swa", "GraniteSWAForCausalLM", ReadGraniteSwa},
      {"granitemoe", "GraniteMoeForCausalLM", ReadGraniteMoe},
      {"granitemoe_swa", "GraniteMoeSWAForCausalLM", ReadGraniteMoeSwa},
      {"granitemoehybrid", "GraniteMoeHybridForCausalLM", ReadGraniteHybrid},
      {"granitemoeshared", "GraniteMoeSharedForCausalLM", ReadGraniteMoeShared},
  };
  return kRows;
}

}  // namespace oscar
