// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/layer_weights.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace oscar {

LayerWeights LoadLayer(WeightLoader& loader, const LayerSpec& layer, bool attention_only) {
  const auto load = [&](const LinearSpec& linear) -> LinearWeights {
    return {loader.Load(linear.weight),
            linear.bias.empty() ? at::Tensor() : loader.Load(linear.bias)};
  };
  const AttentionSpec& attention = layer.attention;
  LayerWeights weights;
  weights.attention_norm = loader.Load(layer.attention_norm.weight);
  weights.q = load(attention.q);
  weights.k = load(attention.k);
  weights.v = load(attention.v);
  if (attention.qk_norm) {
    weights.q_norm = loader.Load(attention.q_norm.weight);
    weights.k_norm = loader.Load(attention.k_norm.weight);
  }
  if (!attention_only) {
    weights.o = load(attention.o);
    weights.mlp_norm = loader.Load(layer.mlp_norm.weight);
    weights.gate = load(layer.mlp.gate);
    weights.up = load(layer.mlp.up);
    weights.down = load(layer.mlp.down);
  }
  loader.Finish();
  return weights;
}

WeightStream::WeightStream(const Checkpoint& checkpoint, const ModelSpec& spec,
                           const WeightTarget& target, const WeightStreamOptions& options)
    : spec_(spec),
      target_(target),
      options_(options),
      next_(options.first_layer),
      loader_(checkpoint, target, options.read) {
  if (options_.prefetch) Start();
}

WeightStream::~WeightStream() {
  if (loading_.valid()) loading_.wait();
}

LayerWeights WeightStream::Next() {
  if (!options_.prefetch) Start();
  LayerWeights weights = loading_.get();
  ++next_;
  if (options_.prefetch) Start();
  return weights;
}

void WeightStream::Start() {
  if (next_ >= spec_.layers.size()) return;
  const LayerSpec& layer = spec_.layers[next_];
  const bool attention_only = options_.last_attention_only && next_ + 1 == spec_.layers.size();
  // The device may be far behind. What it has been told so far ends the use of the layer before;
  // waiting for that keeps a third layer from being allocated.
  std::shared_ptr<c10::Event> previous_done;
  if (!target_.device.is_cpu()) {
    previous_done = std::make_shared<c10::Event>(target_.device.type());
    previous_done->record(
        c10::impl::VirtualGuardImpl(target_.device.type()).getStream(target_.device));
  }
  loading_ = std::async(std::launch::async, [this, &layer, attention_only, previous_done] {
    if (previous_done) previous_done->synchronize();
    return LoadLayer(loader_, layer, attention_only);
  });
}

}  // namespace oscar
