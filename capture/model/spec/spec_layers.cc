// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Functions on a ModelSpec, declared in model_spec.h: its layers in order, the tensors they need,
// and what can be folded into them. A stored tensor that several parts share is listed once.
#include <algorithm>
#include <set>
#include <utility>

#include "capture/model/spec/model_spec.h"
#include "capture/model/spec/use_limits.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

void Add(const NormSpec& norm, std::vector<TensorNeed>& needs) {
  if (!norm.exists() || norm.weight.empty()) return;
  if (norm.stored_by_head()) {
    for (int64_t head = 0; head < norm.heads; ++head)
      needs.push_back({norm.HeadWeight(head), {norm.size}});
  } else if (norm.heads > 0) {
    needs.push_back({norm.weight, {norm.heads, norm.size}});
  } else {
    needs.push_back({norm.weight, {norm.size}});
  }
  if (!norm.bias.empty()) needs.push_back({norm.bias, {norm.size}});
}

std::vector<TensorNeed> Distinct(const std::vector<TensorNeed>& needs) {
  std::vector<TensorNeed> distinct;
  std::set<std::string_view> names;
  for (const TensorNeed& need : needs) {
    if (names.insert(need.name).second) distinct.push_back(need);
  }
  return distinct;
}

void AddAttention(const AttentionSpec& attention, std::vector<TensorNeed>& needs) {
  if (attention.latent) {
    AppendTensors(*attention.latent, needs);
  } else {
    attention.q.AddNeeds(needs);
    if (!attention.shared_kv) {
      attention.k.AddNeeds(needs);
      if (!attention.v_from_k) attention.v.AddNeeds(needs);
      Add(attention.v_norm, needs);
    }
    if (attention.qk_norm) {
      Add(attention.q_norm, needs);
      if (!attention.shared_kv) Add(attention.k_norm, needs);
    }
  }
  if (!attention.sinks.empty()) needs.push_back({attention.sinks, {attention.num_q_heads}});
}

}  // namespace

std::string WhyValuesNotFoldable(const AttentionSpec& a) {
  if (a.not_foldable) return *a.not_foldable;
  if (a.latent) return "its keys and values are computed from a latent";
  if (a.v_from_k) return "its values are computed by the projection of keys";
  if (a.v_norm.exists()) return "its values are normalized";
  // A gate with one number for a whole head does not depend on the head's rotation.
  if (a.gated || (a.gate.exists() && a.gate.out_features != a.num_q_heads))
    return "a gate multiplies its output channel by channel";
  if (a.out_norm.exists()) return "its output is normalized";
  if (a.clamp != 0) return "its keys and values are clamped";
  return "";
}

std::string WhyNotFoldable(const AttentionSpec& a) {
  if (a.not_foldable) return *a.not_foldable;  // a dump has no norms to examine
  if (std::string why = WhyValuesNotFoldable(a); !why.empty()) return why;
  for (const LinearSpec* linear : {&a.q, &a.k, &a.v}) {
    if (!linear->whole()) return "its projections are parts of one stored tensor";
  }
  if (!a.qk_norm) return "";
  if (a.norm_after_rope) return "its norms of queries and keys come after the rotary embedding";
  if (a.k_norm.kind != NormKind::kPlain || a.q_norm.kind != NormKind::kPlain)
    return "its norms of queries and keys are not plain products";
  if (a.k_norm.size != a.head_dim || a.k_norm.heads > 0)
    return "its norms of queries and keys span all heads";
  return "";
}

size_t IndexOfLayer(const ModelSpec& spec, int layer_id) {
  const auto found = std::ranges::find(spec.layers, layer_id, &LayerSpec::layer_id);
  OSCAR_CHECK(found != spec.layers.end());
  return static_cast<size_t>(found - spec.layers.begin());
}

std::vector<const LayerSpec*> AllLayers(const ModelSpec& spec) {
  std::vector<const LayerSpec*> all;
  auto uncached = spec.uncached.begin();
  for (const LayerSpec& layer : spec.layers) {
    while (uncached != spec.uncached.end() && uncached->layer_id < layer.layer_id)
      all.push_back(&*uncached++);
    all.push_back(&layer);
  }
  while (uncached != spec.uncached.end()) all.push_back(&*uncached++);
  return all;
}

std::vector<const LayerSpec*> StepLayers(const ModelSpec& spec, size_t layer_index) {
  const LayerSpec& own = spec.layers.at(layer_index);
  std::vector<const LayerSpec*> step = {&own};
  for (const LayerSpec& layer : spec.uncached) {
    if (layer_index == 0 && layer.layer_id < own.layer_id) step.insert(step.end() - 1, &layer);
    const bool last = layer_index + 1 == spec.layers.size();
    if (layer.layer_id > own.layer_id &&
        (last || layer.layer_id < spec.layers[layer_index + 1].layer_id))
      step.push_back(&layer);
  }
  return step;
}

std::vector<TensorNeed> LayerTensors(const LayerSpec& layer, bool attention_only) {
  std::vector<TensorNeed> needs;
  Add(layer.attention_norm, needs);
  if (layer.delta_net) {
    AppendTensors(*layer.delta_net, needs);
  } else {
    AddAttention(layer.attention, needs);
  }
  if (attention_only) return Distinct(needs);
  layer.attention.o.AddNeeds(needs);
  layer.attention.gate.AddNeeds(needs);
  Add(layer.attention.out_norm, needs);
  for (const NormSpec* norm :
       {&layer.post_attention_norm, &layer.mlp_norm, &layer.post_mlp_norm, &layer.mlp_out_norm,
        &layer.experts_in_norm, &layer.experts_out_norm})
    Add(*norm, needs);
  for (const LinearSpec* linear : {&layer.mlp.gate, &layer.mlp.up, &layer.mlp.down})
    linear->AddNeeds(needs);
  Add(layer.mlp.inner_norm, needs);
  if (layer.mlp.activation == Activation::kXielu) {
    const XieluSpec& xielu = layer.mlp.xielu;
    for (const std::string& name : {xielu.alpha_p, xielu.alpha_n}) needs.push_back({name, {1}});
    for (const std::string& name : {xielu.beta, xielu.eps}) {
      if (!name.empty()) needs.push_back({name, {}});
    }
  }
  if (layer.experts) AppendTensors(*layer.experts, needs);
  if (layer.per_layer_input) {
    layer.per_layer_input->gate.AddNeeds(needs);
    layer.per_layer_input->projection.AddNeeds(needs);
    Add(layer.per_layer_input->post_norm, needs);
  }
  if (!layer.scalar.empty()) needs.push_back({layer.scalar, {1}});
  return Distinct(needs);
}

std::vector<TensorNeed> AllTensors(const ModelSpec& spec) {
  std::vector<TensorNeed> needs = {{spec.embedding, {spec.vocab_size, spec.hidden_size}}};
  if (!spec.position_embedding.empty())
    needs.push_back({spec.position_embedding, {spec.max_positions, spec.hidden_size}});
  if (const auto& inputs = spec.per_layer_inputs) {
    needs.push_back({inputs->table, {inputs->vocab_size, inputs->num_layers * inputs->dim}});
    inputs->projection.AddNeeds(needs);
    Add(inputs->norm, needs);
  }
  for (const LayerSpec* layer : AllLayers(spec)) {
    for (TensorNeed& need : LayerTensors(*layer)) needs.push_back(std::move(need));
  }
  Add(spec.final_norm, needs);
  if (!spec.tied_head) spec.head.AddNeeds(needs);
  return needs;
}

}  // namespace oscar
