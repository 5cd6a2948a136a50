// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/layer_weights.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "capture/checkpoint/weight_storage.h"
#include "capture/checkpoint/weights_sample.h"
#include "capture/model/run/product.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// Returns a projection's rows within a stored tensor, without reading them. Pieces stay a separate
// dimension until the tensor has been read.  // [rows, ..] or [pieces, piece_rows, ..]
at::Tensor RowsOf(const LinearSpec& linear, const at::Tensor& stored) {
  if (linear.whole()) return stored;
  if (linear.piece_rows == 0) return stored.narrow(0, linear.first_row, linear.out_features);
  std::vector<int64_t> pieces = {-1, linear.piece_step};
  if (stored.dim() > 1) pieces.push_back(stored.size(1));
  return stored.view(pieces).narrow(1, linear.first_row, linear.piece_rows);
}

// Loads the tensors of one layer. Tensors that several parts share are requested once.
class LayerLoader {
 public:
  explicit LayerLoader(WeightLoader& loader) : loader_(loader) {}

  at::Tensor Load(const std::string& name) {
    return name.empty() ? at::Tensor() : loader_.Load(name);
  }

  LinearWeights Load(const LinearSpec& linear) {
    if (!linear.exists()) return {};
    if (linear.whole()) return {Load(linear.weight), Load(linear.bias)};
    return {Part(linear, linear.weight), Part(linear, linear.bias)};
  }

 private:
  at::Tensor Part(const LinearSpec& linear, const std::string& name) {
    if (name.empty()) return {};
    const auto found = shared_.find(name);
    const at::Tensor whole =
        found != shared_.end() ? found->second : shared_.emplace(name, Load(name)).first->second;
    return RowsOf(linear, whole);
  }

  WeightLoader& loader_;
  std::map<std::string, at::Tensor> shared_;
};

XieluWeights LoadXielu(LayerLoader& parts, const MlpSpec& mlp) {
  const XieluSpec& xielu = mlp.xielu;
  return {parts.Load(xielu.alpha_p), parts.Load(xielu.alpha_n), parts.Load(xielu.beta),
          parts.Load(xielu.eps)};
}

// Returns the position of a layer's first tensor in the files (Checkpoint::Place).
double FirstOf(const Checkpoint& checkpoint, const LayerSpec& layer) {
  double first = 1;
  for (const TensorNeed& need : LayerTensors(layer))
    first = std::min(first, PlaceOf(checkpoint, FindWeightStorage(checkpoint, need.name)));
  return first;
}

}  // namespace

void LoadLinears(WeightLoader& loader, std::initializer_list<LinearLoad> linears) {
  for (const auto& [to, from] : linears) *to = LoadLinear(loader, *from);
}

LinearWeights LoadLinear(WeightLoader& loader, const LinearSpec& linear) {
  if (!linear.exists()) return {};
  const auto load = [&](const std::string& name) {
    return name.empty() ? at::Tensor() : RowsOf(linear, loader.Load(name));
  };
  const at::Tensor weight = load(linear.weight);
  return {linear.transposed ? weight.t() : weight, load(linear.bias)};
}

at::Tensor ApplyLinear(const LinearWeights& linear, const at::Tensor& x) {
  return LinearProduct(x, linear.weight, linear.bias);
}

NormWeights LoadNorm(WeightLoader& loader, const NormSpec& norm) {
  if (!norm.exists() || norm.weight.empty()) return {};
  NormWeights weights;
  if (!norm.bias.empty()) weights.bias = loader.Load(norm.bias);
  if (!norm.stored_by_head()) {
    weights.weight = loader.Load(norm.weight);
    return weights;
  }
  for (int64_t head = 0; head < norm.heads; ++head)
    weights.of_heads.push_back(loader.Load(norm.HeadWeight(head)));
  return weights;
}

LayerWeights LoadLayer(WeightLoader& loader, const LayerSpec& layer, bool attention_only) {
  LayerLoader parts(loader);
  const AttentionSpec& attention = layer.attention;
  LayerWeights weights;
  weights.attention_only = attention_only;
  weights.attention_norm = LoadNorm(loader, layer.attention_norm);
  weights.q = parts.Load(attention.q);
  if (!attention.shared_kv) {
    weights.k = parts.Load(attention.k);
    if (!attention.v_from_k) weights.v = parts.Load(attention.v);
    weights.v_norm = LoadNorm(loader, attention.v_norm);
  }
  if (attention.qk_norm) {
    weights.q_norm = LoadNorm(loader, attention.q_norm);
    if (!attention.shared_kv) weights.k_norm = LoadNorm(loader, attention.k_norm);
  }
  weights.sinks = parts.Load(attention.sinks);
  if (attention.latent) weights.latent = LoadLatent(loader, *attention.latent);
  if (layer.delta_net) weights.delta_net = LoadGatedDeltaNet(loader, *layer.delta_net);
  if (!attention_only) {
    weights.o = parts.Load(attention.o);
    weights.attention_gate = parts.Load(attention.gate);
    weights.attention_out_norm = LoadNorm(loader, attention.out_norm);
    weights.post_attention_norm = LoadNorm(loader, layer.post_attention_norm);
    weights.mlp_norm = LoadNorm(loader, layer.mlp_norm);
    weights.gate = parts.Load(layer.mlp.gate);
    weights.up = parts.Load(layer.mlp.up);
    weights.down = parts.Load(layer.mlp.down);
    weights.mlp_inner_norm = LoadNorm(loader, layer.mlp.inner_norm);
    if (layer.mlp.activation == Activation::kXielu) weights.xielu = LoadXielu(parts, layer.mlp);
    weights.post_mlp_norm = LoadNorm(loader, layer.post_mlp_norm);
    if (const auto& input = layer.per_layer_input) {
      weights.per_layer_gate = parts.Load(input->gate);
      weights.per_layer_projection = parts.Load(input->projection);
      weights.per_layer_norm = LoadNorm(loader, input->post_norm);
    }
    weights.scalar = parts.Load(layer.scalar);
    if (layer.experts) weights.router = LoadRouter(loader, *layer.experts);
    weights.mlp_out_norm = LoadNorm(loader, layer.mlp_out_norm);
    weights.experts_in_norm = LoadNorm(loader, layer.experts_in_norm);
    weights.experts_out_norm = LoadNorm(loader, layer.experts_out_norm);
  }
  loader.Finish();
  return weights;
}

void LayerWeights::JoinPieces() {
  for (LinearWeights* linear : {&q, &k, &v}) {
    if (!linear->weight.defined() || linear->weight.dim() == 2) continue;
    linear->weight = linear->weight.flatten(0, 1);
    if (linear->bias.defined()) linear->bias = linear->bias.flatten();
  }
}

void LayerWeights::DropMixer() {
  q = k = v = o = attention_gate = {};
  delta_net = {};
  latent = {};
}

std::vector<const LayerSpec*> LayersToRun(const ModelSpec& spec,
                                          const WeightStreamOptions& options) {
  std::vector<const LayerSpec*> layers;
  for (size_t index = options.first_layer; index < spec.layers.size(); ++index) {
    const std::vector<const LayerSpec*> step = StepLayers(spec, index);
    layers.insert(layers.end(), step.begin(), step.end());
  }
  const auto observed = [&](const LayerSpec* layer) {
    return layer->has_cache() || (options.shared_queries && layer->attention.shared_kv);
  };
  while (options.last_attention_only && !layers.empty() && !observed(layers.back()))
    layers.pop_back();
  return layers;
}

WeightStream::WeightStream(const Checkpoint& checkpoint, const ModelSpec& spec,
                           const WeightTarget& target, const WeightStreamOptions& options)
    : target_(target), options_(options), loader_(checkpoint, target, options.read) {
  const std::vector<const LayerSpec*> layers = LayersToRun(spec, options);
  for (const LayerSpec* layer : layers) {
    const bool attention_only = options.last_attention_only && layer == layers.back();
    parts_.push_back({layer, attention_only, std::nullopt});
    if (!layer->experts || attention_only) continue;
    for (const ExpertRun& run : Runs(*layer))
      parts_.push_back(
          {layer, false, SliceOfRun(run, options.group->rank(), options.group->size())});
  }
  if (options_.group->size() > 1) {
    loader_.RememberIn(&loaded_);
    readers_ = options_.group->ReadersOf(OpenedFiles(checkpoint.directory(), checkpoint.files()));
  }
  if (options_.prefetch) Start();
}

WeightStream::~WeightStream() {
  if (loading_.valid()) loading_.wait();
}

ExpertRun SliceOfRun(const ExpertRun& run, int rank, int ranks) {
  const int64_t begin = run.count * rank / ranks, end = run.count * (rank + 1) / ranks;
  return {run.first + begin, end - begin};
}

std::vector<ExpertRun> WeightStream::Runs(const LayerSpec& layer) const {
  return SplitExperts(*layer.experts, static_cast<int64_t>(c10::elementSize(target_.dtype)),
                      options_.expert_bytes * options_.group->size());
}

WeightStream::Loaded WeightStream::Take() {
  if (!options_.prefetch) Start();
  Loaded part = loading_.get();
  if (const auto shared = loader_.TakeShared(); !shared.empty())
    options_.group->Share(shared, readers_);
  part.layer.loaded = std::exchange(loaded_, {});
  part.layer.JoinPieces();
  ++next_;
  if (options_.prefetch) Start();
  return part;
}

LayerWeights WeightStream::Next() {
  OSCAR_CHECK(!parts_[next_].run);
  return Take().layer;
}

ExpertWeights WeightStream::NextExperts() {
  OSCAR_CHECK(parts_[next_].run.has_value());
  return Take().experts;
}

void WeightStream::Start() {
  if (next_ >= parts_.size()) return;
  const Part& part = parts_[next_];
  // The device may lag far behind the host. It uses the previous part until all work that is queued
  // now is done. Waiting for that work avoids having a third part in memory.
  std::shared_ptr<c10::Event> previous_done;
  if (!target_.device.is_cpu()) {
    previous_done = std::make_shared<c10::Event>(target_.device.type());
    previous_done->record(
        c10::impl::VirtualGuardImpl(target_.device.type()).getStream(target_.device));
  }
  loading_ = std::async(std::launch::async, [this, &part, previous_done]() -> Loaded {
    const Checkpoint& checkpoint = loader_.checkpoint();
    if (!part.run) checkpoint.turns()->Reach(FirstOf(checkpoint, *part.layer));
    if (previous_done) previous_done->synchronize();
    loader_.ShareReading(options_.group->rank(), part.run ? std::vector<int>() : readers_);
    loader_.LoadInOrder(part.run.has_value());
    if (!part.run) return {LoadLayer(loader_, *part.layer, part.attention_only), {}};
    if (part.run->count == 0) return {{}, {*part.run, {}, {}, {}}};
    Loaded loaded{{}, LoadExperts(loader_, *part.layer->experts, *part.run)};
    loader_.Finish();
    return loaded;
  });
}

}  // namespace oscar
