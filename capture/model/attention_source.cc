// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/attention_source.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "capture/model/attention.h"
#include "capture/model/device.h"
#include "capture/model/latent_attention.h"
#include "linalg/check.h"
#include "linalg/error.h"

namespace oscar {
namespace {

std::vector<int64_t> LengthsOf(const std::vector<std::vector<int32_t>>& sequences) {
  std::vector<int64_t> lengths;
  for (const auto& sequence : sequences) lengths.push_back(static_cast<int64_t>(sequence.size()));
  return lengths;
}

LayerSpec SpecOf(const DumpLayer& layer) {
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
  if (!layer.sinks.empty()) attention.sinks = "sinks";  // of the dump
  if (layer.latent()) {
    attention.latent = LatentSpec();
    attention.latent->rank = layer.latent_rank;
    attention.latent->nope_dim = layer.head_dim - layer.rope_dim;
    attention.latent->rope_dim = layer.rope_dim;
    attention = InLatentSpace(attention);
  }
  return spec;
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

void ModelSource::Restore(const at::Tensor& hidden) {
  OSCAR_CHECK_EQ(hidden.size(0), num_tokens());
  OSCAR_CHECK_EQ(hidden.size(1), loop_.spec().hidden_size);
  OSCAR_CHECK(hidden.scalar_type() == loop_.dtype());
  hidden_ = hidden.to(loop_.device());
}

void ModelSource::Run(size_t first_layer, LayerObserver& observer,
                      const std::function<bool(size_t)>& after_layer) {
  if (first_layer == 0) {
    hidden_.reset();  // before the new ones are made
    hidden_ = loop_.Embed(sequences_);
  }
  OSCAR_CHECK(hidden_.defined());
  loop_.Run(hidden_, lengths_, first_layer, observer, after_layer);
}

DumpSource::DumpSource(std::shared_ptr<const AttentionDump> dump, at::Device device,
                       at::ScalarType dtype)
    : dump_(std::move(dump)), device_(device), dtype_(dtype) {
  UseExactArithmetic();
  for (const DumpLayer& layer : dump_->layers()) {
    if (layer.latent() && !dump_->has_kv_b()) {
      throw InputError(fmt::format(
          "{}: layer {} has latent attention, and the dump holds its expanded heads without the "
          "weights (kv_b) that lead to the latent a cache holds: capture it again with this "
          "program, or run the model itself",
          dump_->name(), layer.layer_id));
    }
    layers_.push_back(SpecOf(layer));
  }
}

at::Tensor DumpSource::Read(size_t layer_index, DumpTensor tensor, int64_t first_token,
                            int64_t num_tokens) const {
  const DumpLayer& layer = dump_->layers()[layer_index];
  const at::Tensor stored = at::empty({num_tokens, layer.heads(tensor), layer.dim(tensor)},
                                      ToScalarType(layer.dtype, dump_->name()));
  dump_->ReadRows(layer_index, tensor, first_token,
                  {static_cast<std::byte*>(stored.mutable_data_ptr()), stored.nbytes()});
  return stored.to(device_).to(dtype_);
}

at::Tensor DumpSource::ReadKvB(size_t layer_index) const {
  const DumpLayer& layer = dump_->layers()[layer_index];
  const at::Tensor stored = at::empty(layer.kv_b_shape(), ToScalarType(layer.dtype, dump_->name()));
  dump_->ReadKvB(layer_index,
                 {static_cast<std::byte*>(stored.mutable_data_ptr()), stored.nbytes()});
  return stored.to(device_).to(dtype_);
}

// Outputs before W_UV are computed: the dump has those behind it.
void DumpSource::RunLatent(size_t layer_index, LayerObserver& observer) const {
  const LayerSpec& layer = layers_[layer_index];
  const LatentSpec& latent = *layer.attention.latent;
  const at::Tensor kv_b = ReadKvB(layer_index);
  int64_t first_token = 0;
  for (size_t sequence = 0; sequence < sequence_lengths().size(); ++sequence) {
    const int64_t length = sequence_lengths()[sequence];
    const auto read = [&](DumpTensor tensor) {
      return Read(layer_index, tensor, first_token, length);
    };
    const auto [q, q_pe] = QueriesInLatentSpace(latent, kv_b, read(DumpTensor::kQ));
    const at::Tensor k = read(DumpTensor::kCKv), k_pe = read(DumpTensor::kKPe).squeeze(1);
    at::Tensor out = at::empty(q.sizes(), q.options());
    CausalAttention(layer.attention, WithPosition(q, q_pe), WithPosition(k, k_pe), k, {}, out);
    observer.OnAttention({.layer = layer,
                          .layer_index = layer_index,
                          .sequence = static_cast<int64_t>(sequence),
                          .first_token = first_token,
                          .q = q,
                          .k = k,
                          .v = k,
                          .attn_out = out,
                          .c_kv = k.squeeze(1),
                          .k_pe = k_pe,
                          .q_pe = q_pe,
                          .kv_b = kv_b});
    first_token += length;
  }
}

uint64_t DumpSource::BytesRead(size_t layer_index) const {
  const std::vector<int64_t>& lengths = sequence_lengths();
  const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  int64_t bytes = 0;
  for (const DumpTensor tensor : kDumpTensors) {
    if (dump_->has(tensor)) bytes += tokens * dump_->layers()[layer_index].row_bytes(tensor);
  }
  return static_cast<uint64_t>(bytes);
}

void DumpSource::Run(size_t first_layer, LayerObserver& observer,
                     const std::function<bool(size_t)>& after_layer) {
  const std::vector<int64_t>& lengths = sequence_lengths();
  for (size_t index = first_layer; index < layers_.size(); ++index) {
    const LayerSpec& layer = layers_[index];
    observer.OnLayerBegin(layer);
    if (layer.attention.latent) {
      RunLatent(index, observer);
      observer.OnLayerEnd(layer);
      if (!after_layer(index)) return;
      continue;
    }
    int64_t first_token = 0;
    for (size_t sequence = 0; sequence < lengths.size(); ++sequence) {
      const int64_t length = lengths[sequence];
      const at::Tensor q = Read(index, DumpTensor::kQ, first_token, length);
      const at::Tensor k = Read(index, DumpTensor::kK, first_token, length);
      const at::Tensor v = Read(index, DumpTensor::kV, first_token, length);
      at::Tensor attn_out;
      if (dump_->has(DumpTensor::kAttnOut)) {
        attn_out = Read(index, DumpTensor::kAttnOut, first_token, length);
      } else {
        attn_out = at::empty({length, layer.attention.num_q_heads, layer.attention.v_head_dim},
                             q.options());
        CausalAttention(layer.attention, q, k, v, {}, attn_out);
      }
      observer.OnAttention(
          {layer, index, static_cast<int64_t>(sequence), first_token, q, k, v, attn_out});
      first_token += length;
    }
    observer.OnLayerEnd(layer);
    if (!after_layer(index)) return;
  }
}

}  // namespace oscar
