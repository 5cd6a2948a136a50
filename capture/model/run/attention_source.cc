// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/attention_source.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "capture/checkpoint/weight_storage.h"
#include "capture/model/run/attention.h"
#include "capture/model/run/device.h"
#include "capture/model/run/latent_attention.h"
#include "capture/model/run/layer_weights.h"
#include "capture/model/spec/rope_json.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

std::vector<int64_t> LengthsOf(const std::vector<std::vector<int32_t>>& sequences) {
  std::vector<int64_t> lengths;
  for (const auto& sequence : sequences) lengths.push_back(static_cast<int64_t>(sequence.size()));
  return lengths;
}

LayerSpec SpecOf(const DumpLayer& layer, const std::string& dump) {
  LayerSpec spec;
  spec.layer_id = layer.layer_id;
  AttentionSpec& attention = spec.attention;
  attention.num_q_heads = layer.num_q_heads;
  attention.num_kv_heads = layer.num_kv_heads;
  attention.head_dim = layer.head_dim;
  attention.v_head_dim = layer.v_head_dim;
  attention.scale = layer.scale;
  attention.window = layer.window;
  attention.softcap = layer.softcap;
  attention.sink_logits = layer.sinks;
  if (!layer.sinks.empty()) attention.sinks = "sinks";  // name in the dump
  if (layer.facts) {
    attention.rope = RopeFromText(layer.facts->rope, layer.head_dim,
                                  fmt::format("{}: rope of layer {}", dump, layer.layer_id));
    attention.qk_norm = layer.facts->qk_norm;
    attention.not_foldable = layer.facts->not_foldable;
  }
  if (layer.latent()) {
    attention.latent = LatentSpec();
    attention.latent->rank = layer.latent_rank;
    attention.latent->nope_dim = layer.head_dim - layer.rope_dim;
    attention.latent->rope_dim = layer.rope_dim;
    attention = InLatentSpace(attention);
  }
  return spec;
}

std::span<std::byte> WritableBytes(const at::Tensor& host) {
  return {static_cast<std::byte*>(host.mutable_data_ptr()), host.nbytes()};
}

}  // namespace

ModelSource::ModelSource(const Checkpoint& checkpoint, const ModelSpec& spec,
                         std::vector<std::vector<int32_t>> sequences, at::Device device,
                         at::ScalarType dtype, const LoopOptions& options)
    : sequences_(std::move(sequences)),
      lengths_(LengthsOf(sequences_)),
      loop_(checkpoint, spec, device, dtype, [&] {
        LoopOptions with_ids = options;
        with_ids.token_ids = &sequences_;
        return with_ids;
      }()) {}

int64_t ModelSource::num_tokens() const {
  return std::accumulate(lengths_.begin(), lengths_.end(), int64_t{0});
}

size_t ModelSource::first_shared_layer() const {
  const ModelSpec& spec = loop_.spec();
  size_t first = spec.layers.size();
  if (!loop_.options().shared_queries) return first;
  for (const LayerSpec& reader : spec.uncached) {
    if (reader.attention.shared_kv)
      first = std::min(first, IndexOfLayer(spec, *reader.attention.shared_kv));
  }
  return first;
}

// Includes the layers without a cache that run with this layer.
uint64_t ModelSource::BytesRead(size_t layer_index) const {
  const bool attention_alone = !loop_.options().need_final_hidden;  // only concerns the last layer
  const std::vector<const LayerSpec*> run =
      LayersToRun(loop_.spec(), {.first_layer = layer_index,
                                 .last_attention_only = attention_alone,
                                 .shared_queries = loop_.options().shared_queries});
  const int own = layers()[layer_index].layer_id;
  uint64_t bytes = 0;
  for (const LayerSpec* layer : run) {
    if (layer->has_cache() && layer->layer_id > own) break;
    for (const TensorNeed& need : LayerTensors(*layer, attention_alone && layer == run.back()))
      bytes += FindWeightStorage(loop_.checkpoint(), need.name).bytes();
  }
  return bytes;
}

void ModelSource::Restore(const at::Tensor& hidden) {
  OSCAR_CHECK_EQ(hidden.size(0), num_tokens());
  OSCAR_CHECK_EQ(hidden.size(1), loop_.spec().hidden_size);
  OSCAR_CHECK(hidden.scalar_type() == loop_.dtype());
  hidden_ = hidden.to(loop_.device());
}

void ModelSource::Run(size_t first_layer, LayerObserver& observer,
                      const std::function<bool(size_t)>& after_layer) {
  if (first_layer == 0) {
    hidden_.reset();  // frees memory before allocating again
    hidden_ = loop_.Embed(sequences_);
  }
  OSCAR_CHECK(hidden_.defined());
  loop_.Run(hidden_, lengths_, first_layer, observer, after_layer);
}

DumpSource::DumpSource(std::shared_ptr<const AttentionDump> dump, at::Device device,
                       at::ScalarType dtype, std::optional<at::ScalarType> cache_dtype)
    : dump_(std::move(dump)), device_(device), dtype_(dtype), cache_dtype_(cache_dtype) {
  UseExactArithmetic();
  if (cache_dtype_ == dtype_) cache_dtype_.reset();  // no rounding is needed
  int64_t tokens = 0;
  for (const int64_t length : dump_->sequence_lengths()) {
    first_tokens_.push_back(tokens);
    tokens += length;
  }
  for (const DumpLayer& layer : dump_->layers()) layers_.push_back(SpecOf(layer, dump_->name()));
}

at::Tensor DumpSource::OnDevice(const at::Tensor& stored) const {
  return stored.to(device_).to(dtype_);
}

at::Tensor DumpSource::Rounded(const at::Tensor& x) const {
  return cache_dtype_ ? x.to(*cache_dtype_).to(dtype_) : x;
}

at::Tensor DumpSource::Read(size_t layer_index, DumpTensor tensor, size_t sequence) const {
  const DumpLayer& layer = dump_->layers()[layer_index];
  const at::Tensor stored =
      at::empty({sequence_lengths()[sequence], layer.heads(tensor), layer.dim(tensor)},
                ToScalarType(layer.dtype, dump_->name()));
  dump_->ReadRows(layer_index, tensor, first_tokens_[sequence], WritableBytes(stored));
  return OnDevice(stored);
}

at::Tensor DumpSource::ReadOfReader(size_t layer_index, size_t reader, DumpTensor tensor,
                                    size_t sequence) const {
  const DumpLayer& source = dump_->layers()[layer_index];
  const DumpLayer layer = source.Reader(source.readers[reader]);
  const at::Tensor stored =
      at::empty({sequence_lengths()[sequence], layer.heads(tensor), layer.dim(tensor)},
                ToScalarType(layer.dtype, dump_->name()));
  dump_->ReadReaderRows(layer_index, reader, tensor, first_tokens_[sequence],
                        WritableBytes(stored));
  return OnDevice(stored);
}

at::Tensor DumpSource::ReadKvB(size_t layer_index) const {
  const DumpLayer& layer = dump_->layers()[layer_index];
  const at::Tensor stored = at::empty(layer.kv_b_shape(), ToScalarType(layer.dtype, dump_->name()));
  dump_->ReadKvB(layer_index, WritableBytes(stored));
  return OnDevice(stored);
}

at::Tensor DumpSource::Output(const LayerSpec& layer, const at::Tensor& q, const at::Tensor& k,
                              const at::Tensor& v,
                              const std::function<at::Tensor()>& dumped) const {
  if (dump_->has(DumpTensor::kAttnOut) && !cache_dtype_) return dumped();
  at::Tensor out = at::empty({q.size(0), q.size(1), v.size(2)}, q.options());
  CausalAttention(layer.attention, q, k, v, {}, out);
  return out;
}

// Computes attention outputs before W_UV, because the dump only has them after W_UV.
void DumpSource::RunLatent(size_t layer_index, LayerObserver& observer) const {
  const LayerSpec& layer = layers_[layer_index];
  const LatentSpec& latent = *layer.attention.latent;
  const at::Tensor kv_b = ReadKvB(layer_index);
  for (size_t sequence = 0; sequence < first_tokens_.size(); ++sequence) {
    const auto read = [&](DumpTensor tensor) {
      return Rounded(Read(layer_index, tensor, sequence));
    };
    const auto [unrounded, q_pe] = QueriesInLatentSpace(latent, kv_b, read(DumpTensor::kQ));
    const at::Tensor q = Rounded(unrounded);
    const at::Tensor k = read(DumpTensor::kCKv), k_pe = read(DumpTensor::kKPe).squeeze(1);
    at::Tensor out = at::empty(q.sizes(), q.options());
    CausalAttention(layer.attention, WithPosition(q, q_pe), WithPosition(k, k_pe), k, {}, out);
    observer.OnAttention({.layer = layer,
                          .layer_index = layer_index,
                          .sequence = static_cast<int64_t>(sequence),
                          .first_token = first_tokens_[sequence],
                          .q = q,
                          .k = k,
                          .v = k,
                          .attn_out = out,
                          .c_kv = k.squeeze(1),
                          .k_pe = k_pe,
                          .q_pe = q_pe,
                          .kv_b = kv_b});
  }
}

void DumpSource::RunHeads(size_t layer_index, LayerObserver& observer) const {
  const LayerSpec& layer = layers_[layer_index];
  for (size_t sequence = 0; sequence < first_tokens_.size(); ++sequence) {
    const auto read = [&](DumpTensor tensor) {
      return Rounded(Read(layer_index, tensor, sequence));
    };
    const at::Tensor q = read(DumpTensor::kQ), k = read(DumpTensor::kK), v = read(DumpTensor::kV);
    const at::Tensor attn_out =
        Output(layer, q, k, v, [&] { return Read(layer_index, DumpTensor::kAttnOut, sequence); });
    observer.OnAttention({layer, layer_index, static_cast<int64_t>(sequence),
                          first_tokens_[sequence], q, k, v, attn_out});
  }
}

void DumpSource::RunReader(size_t layer_index, size_t reader, LayerObserver& observer) const {
  const CacheReader& own = dump_->layers()[layer_index].readers[reader];
  LayerSpec layer = layers_[layer_index];
  layer.attention.shared_kv = layer.layer_id;
  layer.layer_id = own.layer_id;
  layer.attention.num_q_heads = own.num_q_heads;
  for (size_t sequence = 0; sequence < first_tokens_.size(); ++sequence) {
    const at::Tensor q = Rounded(ReadOfReader(layer_index, reader, DumpTensor::kQ, sequence));
    const at::Tensor k = Rounded(Read(layer_index, DumpTensor::kK, sequence)),
                     v = Rounded(Read(layer_index, DumpTensor::kV, sequence));
    const at::Tensor attn_out = Output(layer, q, k, v, [&] {
      return ReadOfReader(layer_index, reader, DumpTensor::kAttnOut, sequence);
    });
    observer.OnSharedAttention({layer, layer_index, static_cast<int64_t>(sequence),
                                first_tokens_[sequence], q, k, v, attn_out});
  }
}

uint64_t DumpSource::BytesRead(size_t layer_index) const {
  const std::vector<int64_t>& lengths = sequence_lengths();
  const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  const DumpLayer& layer = dump_->layers()[layer_index];
  int64_t row = 0;
  for (const DumpTensor tensor : kDumpTensors) {
    if (dump_->has(tensor)) row += layer.row_bytes(tensor);
  }
  for (const CacheReader& reader : layer.readers) {
    for (const DumpTensor tensor : kDumpTensors) row += layer.Reader(reader).row_bytes(tensor);
  }
  return static_cast<uint64_t>(tokens * row);
}

void DumpSource::Run(size_t first_layer, LayerObserver& observer,
                     const std::function<bool(size_t)>& after_layer) {
  for (size_t index = first_layer; index < layers_.size(); ++index) {
    observer.OnLayerBegin(layers_[index]);
    if (layers_[index].attention.latent) {
      RunLatent(index, observer);
    } else {
      RunHeads(index, observer);
    }
    observer.OnLayerEnd(layers_[index]);
    for (size_t reader = 0; reader < dump_->layers()[index].readers.size(); ++reader)
      RunReader(index, reader, observer);
    if (!after_layer(index)) return;
  }
}

}  // namespace oscar
