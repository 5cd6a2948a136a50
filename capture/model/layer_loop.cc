// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/layer_loop.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "capture/model/attention.h"
#include "capture/model/decoder_layer.h"
#include "capture/model/device.h"
#include "capture/model/embedding.h"
#include "capture/model/layer_weights.h"
#include "capture/model/output_head.h"
#include "capture/model/token_layout.h"
#include "linalg/check.h"
#include "linalg/error.h"

namespace oscar {
namespace {

void CheckLength(const ModelSpec& spec, size_t sequence, int64_t length) {
  if (length < 1) throw InputError(fmt::format("sequence {} has no tokens", sequence));
  if (length > spec.max_positions) {
    throw InputError(fmt::format(
        "sequence {} has {} tokens, but the model has {} positions (max_position_embeddings): "
        "shorten it",
        sequence, length, spec.max_positions));
  }
}

// What a cache in that type gives back.
void RoundInPlace(at::Tensor& x, at::ScalarType dtype) {
  if (x.scalar_type() != dtype) x.copy_(x.to(dtype));
}

// One span of one stream through one layer: projections of all its tokens, attention of each of its
// sequences, then the rest. `hidden` [span.num_tokens, hidden_size] is updated.
void RunSpan(const LayerLoop& loop, const Span& span, size_t layer_index, size_t stream,
             const LayerWeights& weights, const RopePositions& positions,
             const std::vector<int64_t>& sequence_lengths, LayerObserver& observer,
             const at::Tensor& hidden) {
  const LayerSpec& layer = loop.spec().layers[layer_index];
  const AttentionSpec& attention = layer.attention;
  const LoopOptions& options = loop.options();
  const double eps = loop.spec().rms_norm_eps;
  const auto make = [&](int64_t heads, int64_t dim) {
    return at::empty({span.num_tokens, heads, dim}, hidden.options());
  };
  at::Tensor q = make(attention.num_q_heads, attention.head_dim),
             k = make(attention.num_kv_heads, attention.head_dim);
  at::Tensor v = make(attention.num_kv_heads, attention.v_head_dim);
  at::Tensor attn_out = make(attention.num_q_heads, attention.v_head_dim);

  for (int64_t begin = 0; begin < span.num_tokens; begin += options.token_chunk) {
    const int64_t count = std::min(options.token_chunk, span.num_tokens - begin);
    const int64_t token = span.first_token + begin;
    at::Tensor q_part = q.narrow(0, begin, count), k_part = k.narrow(0, begin, count),
               v_part = v.narrow(0, begin, count);
    ProjectQkv(layer, weights, eps, hidden.narrow(0, begin, count),
               positions.Rows(attention.rope, token, count), q_part, k_part, v_part);
  }
  if (options.cache_dtype) {
    for (at::Tensor* x : {&q, &k, &v}) RoundInPlace(*x, *options.cache_dtype);
  }

  const AttentionChunking chunking{options.query_chunk, options.whole_attention};
  int64_t begin = 0;
  for (size_t i = 0; i < span.num_sequences; ++i) {
    const size_t sequence = span.first_sequence + i;
    const int64_t length = sequence_lengths[sequence];
    const at::Tensor own_q = q.narrow(0, begin, length), own_k = k.narrow(0, begin, length);
    const at::Tensor own_v = v.narrow(0, begin, length);
    at::Tensor own_out = attn_out.narrow(0, begin, length);
    const AttentionView view{layer,
                             layer_index,
                             static_cast<int64_t>(sequence),
                             span.first_token + begin,
                             own_q,
                             own_k,
                             own_v,
                             own_out,
                             stream};
    if (!observer.Attend(view)) CausalAttention(attention, own_q, own_k, own_v, chunking, own_out);
    observer.OnAttention(view);
    begin += length;
  }

  if (!weights.o.weight.defined()) return;  // the last layer, and nobody needs what comes out of it
  for (begin = 0; begin < span.num_tokens; begin += options.token_chunk) {
    const int64_t count = std::min(options.token_chunk, span.num_tokens - begin);
    at::Tensor hidden_part = hidden.narrow(0, begin, count);
    AddAttentionAndMlp(layer, weights, eps, attn_out.narrow(0, begin, count), hidden_part);
  }
}

// Spans of the sequences that begin before `lead_tokens`, then of the others.
std::vector<Span> MakeSpansInTwo(const std::vector<int64_t>& lengths, int64_t lead_tokens,
                                 int64_t token_chunk) {
  auto split = lengths.begin();
  for (int64_t left = lead_tokens; left > 0; left -= *split++) OSCAR_CHECK_LE(*split, left);
  std::vector<Span> spans = MakeSpans({lengths.begin(), split}, token_chunk);
  for (Span span : MakeSpans({split, lengths.end()}, token_chunk)) {
    span.first_sequence += static_cast<size_t>(split - lengths.begin());
    span.first_token += lead_tokens;
    spans.push_back(span);
  }
  return spans;
}

}  // namespace

LayerLoop::LayerLoop(const Checkpoint& checkpoint, const ModelSpec& spec, at::Device device,
                     at::ScalarType dtype, const LoopOptions& options)
    : checkpoint_(checkpoint), spec_(spec), device_(device), dtype_(dtype), options_(options) {
  OSCAR_CHECK(options.token_chunk > 0 && options.query_chunk > 0);
  UseExactArithmetic();
}

at::Tensor LayerLoop::Embed(const std::vector<std::vector<int32_t>>& sequences) const {
  for (size_t s = 0; s < sequences.size(); ++s) {
    CheckLength(spec_, s, static_cast<int64_t>(sequences[s].size()));
    const auto outside = std::ranges::find_if(
        sequences[s], [&](int32_t id) { return id < 0 || id >= spec_.vocab_size; });
    if (outside != sequences[s].end()) {
      throw InputError(fmt::format(
          "sequence {}, token {}: id {} is outside the model's vocabulary 0 .. {}. Does the "
          "tokenizer belong to this model?",
          s, outside - sequences[s].begin(), *outside, spec_.vocab_size - 1));
    }
  }
  return GatherRows(checkpoint_, spec_.embedding, sequences, {device_, dtype_});
}

void LayerLoop::Run(at::Tensor& hidden, const std::vector<int64_t>& sequence_lengths,
                    size_t first_layer, LayerObserver& observer,
                    const std::function<bool(size_t layer_index)>& after_layer) const {
  Run(std::span(&hidden, 1), sequence_lengths, first_layer, observer, after_layer);
}

void LayerLoop::Run(std::span<at::Tensor> streams, const std::vector<int64_t>& sequence_lengths,
                    size_t first_layer, LayerObserver& observer,
                    const std::function<bool(size_t layer_index)>& after_layer) const {
  if (first_layer >= spec_.layers.size() || sequence_lengths.empty()) return;
  for (size_t s = 0; s < sequence_lengths.size(); ++s) CheckLength(spec_, s, sequence_lengths[s]);
  const int64_t num_tokens =
      std::accumulate(sequence_lengths.begin(), sequence_lengths.end(), int64_t{0});
  const int64_t lead_tokens = num_tokens - streams.back().size(0);  // of the first stream alone
  const std::vector<Span> spans =
      MakeSpansInTwo(sequence_lengths, lead_tokens, options_.token_chunk);
  for (const at::Tensor& hidden : streams) {
    OSCAR_CHECK_EQ(hidden.size(0), num_tokens - (&hidden == &streams[0] ? 0 : lead_tokens));
    OSCAR_CHECK_EQ(hidden.size(1), spec_.hidden_size);
    OSCAR_CHECK(hidden.device() == device_ && hidden.scalar_type() == dtype_ &&
                hidden.is_contiguous());
  }

  const RopePositions positions(spec_, sequence_lengths, {device_, dtype_});
  WeightStream stream(checkpoint_, spec_, {device_, dtype_},
                      {.first_layer = first_layer,
                       .last_attention_only = !options_.need_final_hidden,
                       .prefetch = options_.prefetch,
                       .read = options_.read});
  for (size_t index = first_layer; index < spec_.layers.size(); ++index) {
    {
      const LayerWeights weights = stream.Next();
      const LayerSpec& layer = spec_.layers[index];
      observer.OnLayerBegin(layer);
      for (const Span& span : spans) {
        for (size_t s = 0; s < streams.size(); ++s) {
          const int64_t first_row = span.first_token - (s == 0 ? 0 : lead_tokens);
          if (first_row < 0) break;
          RunSpan(*this, span, index, s, weights, positions, sequence_lengths, observer,
                  streams[s].narrow(0, first_row, span.num_tokens));
        }
      }
      observer.OnLayerEnd(layer);
    }
    if (!after_layer(index)) return;
  }
}

at::Tensor LayerLoop::Logits(const at::Tensor& hidden) const {
  return OutputHead(checkpoint_, spec_, {device_, dtype_}).Logits(hidden);
}

}  // namespace oscar
