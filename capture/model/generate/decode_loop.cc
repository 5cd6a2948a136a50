// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/generate/decode_loop.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "capture/model/experts/experts_pass.h"
#include "capture/model/run/attention.h"
#include "capture/model/run/decoder_layer.h"
#include "capture/model/run/projection.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

constexpr int64_t kKeysAtOnce = 256;

// Options for running the whole model, up to the logits.
WeightStreamOptions AllOfIt(const LoopOptions& options) {
  return {.prefetch = options.prefetch, .read = options.read, .expert_bytes = options.expert_bytes};
}

at::Tensor PartOf(const at::Tensor& x, int64_t begin, int64_t count) {
  return x.defined() ? x.narrow(0, begin, count) : x;
}

}  // namespace

DecodeLoop::DecodeLoop(const Checkpoint& checkpoint, const ModelSpec& spec, at::Device device,
                       at::ScalarType dtype, bool resident, const LoopOptions& options)
    : checkpoint_(checkpoint),
      spec_(spec),
      target_{device, dtype},
      options_(options),
      loop_(checkpoint, spec, device, dtype),
      head_(checkpoint, spec, target_),
      layers_(LayersToRun(spec, AllOfIt(options))) {
  if (resident) LoadLayers();
  if (spec.per_layer_inputs) per_layer_ = LoadPerLayerWeights(checkpoint, spec, target_);
}

void DecodeLoop::LoadLayers() {
  WeightStream stream(checkpoint_, spec_, target_, AllOfIt(options_));
  for (const LayerSpec* layer : layers_) {
    ResidentLayer& loaded = resident_.emplace_back(ResidentLayer{stream.Next(), {}});
    if (!layer->experts) continue;
    for (size_t run = 0; run < stream.Runs(*layer).size(); ++run)
      loaded.experts.push_back(stream.NextExperts());
  }
}

uint64_t DecodeLoop::WeightBytes(const ModelSpec& spec, at::ScalarType dtype) {
  int64_t values = 0;
  for (const TensorNeed& need : AllTensors(spec)) {
    const bool table = (need.name == spec.embedding && !spec.tied_head) ||
                       need.name == spec.position_embedding ||
                       (spec.per_layer_inputs && need.name == spec.per_layer_inputs->table);
    if (!table) {
      values +=
          std::accumulate(need.shape.begin(), need.shape.end(), int64_t{1}, std::multiplies<>());
    }
  }
  return static_cast<uint64_t>(values) * c10::elementSize(dtype);
}

uint64_t DecodeLoop::CacheBytes(const ModelSpec& spec, int64_t capacity, at::ScalarType dtype) {
  int64_t bytes = 0;
  for (const LayerSpec* layer : AllLayers(spec))
    bytes += DecodeCache::Bytes(*layer, capacity, static_cast<int64_t>(c10::elementSize(dtype)));
  return static_cast<uint64_t>(bytes);
}

at::Tensor DecodeLoop::Begin(std::vector<std::vector<int32_t>> sequences, int64_t capacity) {
  OSCAR_CHECK(!sequences.empty());
  sequences_ = std::move(sequences);
  capacity_ = capacity;
  positions_.emplace(spec_, capacity, target_);
  caches_.clear();
  const auto options = at::TensorOptions().dtype(target_.dtype).device(target_.device);
  for (const LayerSpec* layer : layers_) {
    if (layer->has_cache()) {
      caches_[layer->layer_id] =
          DecodeCache::Make(layer->attention, std::ssize(sequences_), capacity, options);
    }
  }
  return Run(std::vector<int64_t>(sequences_.size(), 0));
}

at::Tensor DecodeLoop::Append(std::span<const int32_t> ids) {
  OSCAR_CHECK_EQ(ids.size(), sequences_.size());
  std::vector<int64_t> first;
  bool again = false;
  for (size_t s = 0; s < ids.size(); ++s) {
    first.push_back(std::ssize(sequences_[s]));
    sequences_[s].push_back(ids[s]);
    again |= TurnsEarlierTokens(spec_, std::ssize(sequences_[s]));
  }
  if (again) std::ranges::fill(first, 0);
  return Run(std::move(first));
}

void DecodeLoop::Keep(const std::vector<size_t>& kept) {
  std::vector<int64_t> rows;
  std::vector<std::vector<int32_t>> sequences;
  for (const size_t s : kept) {
    rows.push_back(static_cast<int64_t>(s));
    sequences.push_back(std::move(sequences_[s]));
  }
  sequences_ = std::move(sequences);
  step_.Reset();
  const at::Tensor on_device =
      at::from_blob(rows.data(), {std::ssize(rows)}, at::kLong).clone().to(target_.device);
  for (auto& [id, cache] : caches_) cache.Keep(on_device);
}

// Runs the tokens of every sequence, from position first[s] on, through all layers.
at::Tensor DecodeLoop::Run(std::vector<int64_t> first) {
  std::vector<std::vector<int32_t>> ids;
  std::vector<int64_t> lengths, last_rows;
  int64_t num_rows = 0;
  for (size_t s = 0; s < sequences_.size(); ++s) {
    ids.emplace_back(sequences_[s].begin() + first[s], sequences_[s].end());
    lengths.push_back(std::ssize(sequences_[s]));
    num_rows += std::ssize(ids.back());
    last_rows.push_back(num_rows - 1);
  }
  positions_->Set(first, lengths);
  const bool whole = std::ranges::all_of(first, [](int64_t f) { return f == 0; });
  at::Tensor embedded = loop_.Embed(ids, first);
  Rows rows{std::move(first), whole, std::move(embedded)};
  std::optional<PerLayerInputs> inputs;
  if (per_layer_)
    inputs.emplace(checkpoint_, spec_, ids, rows.hidden.clone(), target_, *per_layer_);
  if (!rows.whole && StepsAreAlike()) {
    RunStep(rows);
  } else {
    step_.Reset();  // a recorded step would read the old positions' memory
    RunLayers(rows, inputs);
  }
  const at::Tensor last =
      at::from_blob(last_rows.data(), {std::ssize(last_rows)}, at::kLong).clone();
  return head_.Logits(rows.hidden.index_select(0, last.to(target_.device)));
}

// Whether all steps launch the same kernels on the same memory, so that a step can be recorded.
// They do not if weights are read again, if experts wait for their routing, if linear attention
// puts its state into new tensors, or if per-layer inputs are recomputed.
bool DecodeLoop::StepsAreAlike() const {
  return !resident_.empty() && !per_layer_ && std::ranges::none_of(layers_, [](const auto* layer) {
    return layer->experts || layer->delta_net;
  });
}

void DecodeLoop::RunStep(Rows& rows) {
  if (!step_hidden_.defined() || step_hidden_.sizes() != rows.hidden.sizes()) {
    step_.Reset();
    step_hidden_ = at::empty_like(rows.hidden);
  }
  rows.hidden = step_hidden_.copy_(rows.hidden);
  std::vector<int64_t> shape = {rows.hidden.size(0)};
  for (const LayerSpec* layer : layers_) {
    const KeyRange keys = KeysOf(layer->attention);
    shape.insert(shape.end(), {keys.first, keys.count});
  }
  step_.Run(target_.device, shape, [&] { RunLayers(rows, std::nullopt); });
}

void DecodeLoop::RunLayers(Rows& rows, const std::optional<PerLayerInputs>& inputs) {
  std::optional<WeightStream> stream;
  if (resident_.empty()) stream.emplace(checkpoint_, spec_, target_, AllOfIt(options_));
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerSpec& layer = *layers_[i];
    LayerWeights weights = stream ? stream->Next() : resident_[i].weights;
    const at::Tensor own = layer.per_layer_input ? inputs.value().Of(layer.layer_id) : at::Tensor();
    RunMixer(layer, weights, own, rows);
    if (!layer.experts) continue;
    weights.DropMixer();
    ExpertsPass pass(layer, weights, spec_.rms_norm_eps, options_.token_chunk,
                     std::span(&rows.hidden, 1),
                     {{ChunksOf({{0, rows.hidden.size(0)}}, options_.token_chunk)}});
    if (stream) {
      for (const ExpertRun& run : stream->Runs(layer)) pass.Add(run, stream->NextExperts());
    } else {
      for (const ExpertWeights& experts : resident_[i].experts) pass.Add(experts.run, experts);
    }
    pass.Finish([&](size_t, int64_t begin, int64_t count) { return PartOf(own, begin, count); });
  }
}

// Runs a layer except for its experts.
void DecodeLoop::RunMixer(const LayerSpec& layer, const LayerWeights& weights,
                          const at::Tensor& inputs, Rows& rows) {
  if (!layer.delta_net) {
    RunAttention(layer, weights, inputs, rows);
    return;
  }
  RunDeltaNet(layer, weights, rows);
  if (layer.experts) return;
  for (int64_t begin = 0; begin < rows.hidden.size(0); begin += options_.token_chunk) {
    const int64_t count = std::min(options_.token_chunk, rows.hidden.size(0) - begin);
    at::Tensor hidden = rows.hidden.narrow(0, begin, count);
    AddMlp(layer, weights, spec_.rms_norm_eps, PartOf(inputs, begin, count), hidden);
  }
}

void DecodeLoop::RunDeltaNet(const LayerSpec& layer, const LayerWeights& weights, Rows& rows) {
  const double eps = spec_.rms_norm_eps;
  const at::Tensor x = Norm(layer.attention_norm, weights.attention_norm, eps, rows.hidden);
  DeltaNetState& state = caches_[layer.layer_id].delta_net;
  if (!rows.whole) {
    rows.hidden.add_(GatedDeltaNetStep(*layer.delta_net, weights.delta_net, eps, x, state));
    return;
  }
  std::vector<at::Tensor> inputs, rules;
  int64_t begin = 0;
  for (const auto& sequence : sequences_) {
    const int64_t length = std::ssize(sequence);
    DeltaNetState end;
    rows.hidden.narrow(0, begin, length)
        .add_(GatedDeltaNet(*layer.delta_net, weights.delta_net, eps, options_.token_chunk,
                            x.narrow(0, begin, length), &end));
    inputs.push_back(end.inputs);
    rules.push_back(end.rule);
    begin += length;
  }
  state = {at::cat(inputs), at::cat(rules)};
}

void DecodeLoop::RunAttention(const LayerSpec& layer, const LayerWeights& weights,
                              const at::Tensor& inputs, Rows& rows) {
  const AttentionSpec& attention = layer.attention;
  const double eps = spec_.rms_norm_eps;
  const int64_t n = rows.hidden.size(0), chunk = options_.token_chunk;
  const auto empty = [&](at::IntArrayRef shape) { return at::empty(shape, rows.hidden.options()); };
  const at::Tensor q = empty({n, attention.num_q_heads, attention.head_dim});
  at::Tensor k, v;
  if (!attention.shared_kv) {
    k = empty({n, attention.num_kv_heads, attention.head_dim});
    v = empty({n, attention.num_kv_heads, attention.v_head_dim});
  }
  Latents latents;
  if (attention.latent)
    latents = {empty({n, attention.latent->rank}), empty({n, attention.latent->rope_dim})};
  std::vector<at::Tensor> gates;  // per chunk
  for (int64_t begin = 0; begin < n; begin += chunk) {
    const int64_t count = std::min(chunk, n - begin);
    const RopeRows rope = positions_->Rows(attention, begin, count);
    const auto part = [&](const at::Tensor& x) { return PartOf(x, begin, count); };
    gates.push_back(ProjectTokens(layer, weights, eps, part(rows.hidden), rope, std::nullopt,
                                  part(q), part(k), part(v),
                                  {part(latents.c_kv), part(latents.k_pe)}));
  }
  if (attention.latent) {
    caches_.at(layer.layer_id)
        .Store(positions_->slots(), at::cat({latents.c_kv, latents.k_pe}, 1).unsqueeze(1), {});
  } else if (!attention.shared_kv) {
    caches_.at(layer.layer_id).Store(positions_->slots(), k, v);
  }
  const at::Tensor out = Attend(layer, weights, rows, q, k, v);
  for (int64_t begin = 0, i = 0; begin < n; begin += chunk, ++i) {
    const int64_t count = std::min(chunk, n - begin);
    at::Tensor hidden = rows.hidden.narrow(0, begin, count);
    FinishLayer(layer, weights, eps, out.narrow(0, begin, count), gates[static_cast<size_t>(i)],
                PartOf(inputs, begin, count), hidden);
  }
}

at::Tensor DecodeLoop::Attend(const LayerSpec& layer, const LayerWeights& weights, const Rows& rows,
                              const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  if (!rows.whole) return AttendInCache(layer, weights, q);
  const AttentionSpec& attention = layer.attention;
  const at::Tensor out =
      at::empty({q.size(0), attention.num_q_heads, attention.v_head_dim}, q.options());
  const DecodeCache* shared = attention.shared_kv ? &caches_.at(*attention.shared_kv) : nullptr;
  int64_t begin = 0;
  for (size_t s = 0; s < sequences_.size(); ++s) {
    const int64_t length = std::ssize(sequences_[s]);
    const auto own = [&](const at::Tensor& x, const at::Tensor DecodeCache::*of_shared) {
      return shared == nullptr ? x.narrow(0, begin, length)
                               : (shared->*of_shared)[static_cast<int64_t>(s)].narrow(0, 0, length);
    };
    at::Tensor own_out = out.narrow(0, begin, length);
    CausalAttention(attention, q.narrow(0, begin, length), own(k, &DecodeCache::k),
                    own(v, &DecodeCache::v), {options_.query_chunk, options_.whole_attention},
                    own_out, weights.sinks);
    begin += length;
  }
  return out;
}

DecodeLoop::KeyRange DecodeLoop::KeysOf(const AttentionSpec& attention) const {
  int64_t shortest = capacity_, longest = 0;
  for (const auto& sequence : sequences_) {
    shortest = std::min<int64_t>(shortest, std::ssize(sequence));
    longest = std::max<int64_t>(longest, std::ssize(sequence));
  }
  const int64_t seen = std::max<int64_t>(0, shortest - attention.window.value_or(shortest));
  const int64_t first = seen / kKeysAtOnce * kKeysAtOnce;
  const int64_t end = (longest + kKeysAtOnce - 1) / kKeysAtOnce * kKeysAtOnce;
  return {first, std::min(end, capacity_) - first};
}

// Computes the attention of one new token per sequence.
at::Tensor DecodeLoop::AttendInCache(const LayerSpec& layer, const LayerWeights& weights,
                                     const at::Tensor& q) const {
  const AttentionSpec& attention = layer.attention;
  const DecodeCache& cache = caches_.at(attention.shared_kv.value_or(layer.layer_id));
  const auto [first_key, num_keys] = KeysOf(attention);
  const at::Tensor keys = cache.k.narrow(1, first_key, num_keys);
  const at::Tensor& lengths = positions_->lengths();
  if (!attention.latent) {
    return AttendOneToken(attention, q, keys, cache.v.narrow(1, first_key, num_keys), lengths,
                          first_key, weights.sinks);
  }
  const LatentSpec& latent = *attention.latent;
  const at::Tensor kv_b = ExpansionOf(attention, weights.latent);
  const LatentQueries queries = QueriesInLatentSpace(latent, kv_b, q);
  const at::Tensor out =
      AttendOneToken(InLatentSpace(attention), WithPosition(queries.q, queries.q_pe), keys,
                     keys.narrow(3, 0, latent.rank), lengths, first_key, weights.sinks);
  return OutputsFromLatentSpace(latent, kv_b, out).contiguous();
}

}  // namespace oscar
