// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Granite 4 without Mamba layers (micro and the 1B and 350M): Granite's multipliers, gate and up
// stored as one tensor under shared_mlp, and in some sizes experts in parallel to it. Most sizes
// have Mamba layers and are refused. position_embedding_type "nope" means no rope.
#include <fmt/format.h>

#include "capture/model/families/experts_config.h"
#include "capture/model/families/granite.h"

namespace oscar {

namespace {

void CheckLayerTypes(ConfigReader& config) {
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
  // Fields of layers that do not exist.
  for (const char* key :
       {"mamba_n_heads", "mamba_n_groups", "mamba_d_state", "mamba_d_head", "mamba_d_conv",
        "mamba_expand", "mamba_chunk_size", "mamba_conv_bias", "mamba_proj_bias", "time_step_limit",
        "time_step_min", "time_step_max", "time_step_floor"}) {
    (void)config.Find(key);
  }
}

}  // namespace

ModelSpec ReadGraniteHybrid(ConfigReader& config) {
  CheckLayerTypes(config);
  DenseDecoderOptions dense;
  dense.dense_mlp = false;  // it has another name, below
  const bool experts = config.OptionalCount("num_local_experts").value_or(8) > 0;
  const int64_t size = config.OptionalSize("shared_intermediate_size").value_or(1024);
  ModelSpec spec = experts ? ReadGraniteExperts(config) : ReadGraniteLayers(config, dense);
  for (const char* key : {"intermediate_size", "num_experts_per_tok"}) (void)config.Find(key);
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
      const FusedMlp mlp = NameFusedMlp(prefix, spec.hidden_size, size);
      layer.mlp = {size, activation, mlp.gate, mlp.up, mlp.down};
    }
  }
  return spec;
}

}  // namespace oscar
