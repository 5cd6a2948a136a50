// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/layer_pass.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "capture/model/experts/experts_pass.h"
#include "capture/model/run/attention.h"
#include "capture/model/run/decoder_layer.h"
#include "capture/model/run/projection.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Rounds x as a cache of that type would.
void RoundInPlace(const at::Tensor& x, at::ScalarType dtype) {
  if (x.defined() && x.scalar_type() != dtype) x.copy_(x.to(dtype));
}

}  // namespace

LayerPass::LayerPass(const LayerLoop& loop, std::span<at::Tensor> streams,
                     const std::vector<int64_t>& sequence_lengths, int64_t lead_tokens,
                     size_t first_layer, LayerObserver& observer)
    : loop_(loop),
      spec_(loop.spec()),
      streams_(streams),
      lengths_(sequence_lengths),
      lead_tokens_(lead_tokens),
      observer_(observer),
      positions_(spec_, sequence_lengths, {loop.device(), loop.dtype()}) {
  PrepareSharing(first_layer);
  if (!spec_.per_layer_inputs) return;
  const auto* ids = loop.options().token_ids;
  OSCAR_CHECK(ids != nullptr);
  inputs_.emplace(loop.checkpoint(), spec_, *ids, loop.Embed(*ids),
                  WeightTarget{loop.device(), loop.dtype()});
}

// Determines which layers' keys and values must be kept. Throws InputError if a layer reads those
// of a layer before first_layer.
void LayerPass::PrepareSharing(size_t first_layer) {
  if (!loop_.options().need_final_hidden && !loop_.options().shared_queries) return;
  const int first = spec_.layers[first_layer].layer_id;
  for (const LayerSpec& layer : spec_.uncached) {
    if (!layer.attention.shared_kv || layer.layer_id < first) continue;
    const int source = *layer.attention.shared_kv;
    if (source < first) {
      throw InputError(
          fmt::format("layer {} reads the keys and values of layer {}, so a run to the end cannot "
                      "start at layer {}; start from the beginning",
                      layer.layer_id, source, first));
    }
    shared_[source].resize(streams_.size());
  }
}

void LayerPass::RunLayer(const LayerSpec& layer, size_t layer_index, LayerWeights weights,
                         WeightStream& weight_stream, const std::vector<Span>& spans) {
  const bool seen = layer.has_cache();
  if (seen) observer_.OnLayerBegin(loop_.seen_layers()[layer_index]);
  at::Tensor inputs;
  if (layer.per_layer_input) {
    std::vector<RowRange> rows;
    for (const Span& span : spans) rows.push_back({span.first_token, span.num_tokens});
    inputs = inputs_.value().Of(layer.layer_id, rows);
  }
  for (const Span& span : spans) {
    for (size_t s = 0; s < streams_.size(); ++s) {
      const int64_t first_row = span.first_token - (s == 0 ? 0 : lead_tokens_);
      if (first_row < 0) break;
      if (first_row >= streams_[s].size(0)) continue;  // the stream has ended
      if (layer.delta_net) {
        RunDeltaNet(layer, weights, span, s, first_row, inputs);
      } else {
        RunSpan(layer, layer_index, weights, span, s, first_row, inputs);
      }
    }
  }
  if (layer.experts && !weights.attention_only)
    RunExperts(layer, std::move(weights), weight_stream, spans, inputs);
  if (seen) observer_.OnLayerEnd(loop_.seen_layers()[layer_index]);
}

void LayerPass::RunExperts(const LayerSpec& layer, LayerWeights weights,
                           WeightStream& weight_stream, const std::vector<Span>& spans,
                           const at::Tensor& inputs) {
  weights.DropMixer();
  const LoopOptions& options = loop_.options();
  const int64_t token_chunk = options.token_chunk;
  std::vector<std::vector<ExpertsPass::Stretch>> stretches;
  for (size_t s = 0; s < streams_.size(); ++s) {
    std::map<int64_t, std::vector<RowRange>> rows;  // keyed by stretch number (StretchOf)
    if (options.ranks->size() > 1) {
      OSCAR_CHECK(options.tokens_of_all > 0);
      for (int64_t i = StretchOf(options.tokens_of_all - 1, token_chunk); i >= 0; --i) rows[i] = {};
    }
    for (const Span& span : spans) {
      const int64_t first_row = span.first_token - (s == 0 ? 0 : lead_tokens_);
      if (first_row < 0 || first_row >= streams_[s].size(0)) continue;
      rows[StretchOf(options.tokens_before + span.first_token, token_chunk)].push_back(
          {first_row, span.num_tokens});
    }
    stretches.emplace_back();
    for (const auto& [number, of_stretch] : rows)
      stretches.back().push_back(ChunksOf(of_stretch, token_chunk));
  }
  ExpertsPass pass(layer, weights, spec_.rms_norm_eps, token_chunk, streams_, std::move(stretches),
                   *options.ranks);
  observer_.OnExperts(layer, pass.TokensPerExpert());
  for (const ExpertRun& run : weight_stream.Runs(layer)) pass.Add(run, weight_stream.NextExperts());
  pass.Finish([&](size_t stream, int64_t first_row, int64_t num_rows) {
    const int64_t token = first_row + (stream == 0 ? 0 : lead_tokens_);
    return inputs.defined() ? inputs.narrow(0, token, num_rows) : at::Tensor();
  });
}

at::Tensor LayerPass::Empty(at::IntArrayRef shape) const {
  return at::empty(shape, streams_[0].options());
}

LayerPass::Tensors LayerPass::Project(const LayerSpec& layer, const LayerWeights& weights,
                                      const Span& span, size_t stream, int64_t first_row) const {
  const AttentionSpec& attention = layer.attention;
  const int64_t n = span.num_tokens;
  Tensors all;
  all.q = Empty({n, attention.num_q_heads, attention.head_dim});
  if (attention.shared_kv) {
    const SharedKv& kept = shared_.at(*attention.shared_kv)[stream];
    all.k = kept.k.narrow(0, first_row, n);
    all.v = kept.v.narrow(0, first_row, n);
  } else {
    all.k = Empty({n, attention.num_kv_heads, attention.head_dim});
    all.v = Empty({n, attention.num_kv_heads, attention.v_head_dim});
  }
  if (attention.latent)
    all.latents = {Empty({n, attention.latent->rank}), Empty({n, attention.latent->rope_dim})};
  all.attn_out = Empty({n, attention.num_q_heads, attention.v_head_dim});

  const LoopOptions& options = loop_.options();
  const at::Tensor hidden = streams_[stream].narrow(0, first_row, n);
  for (int64_t begin = 0; begin < n; begin += options.token_chunk) {
    const int64_t count = std::min(options.token_chunk, n - begin);
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, count); };
    const RopeRows rope = positions_.Rows(attention, span.first_token + begin, count);
    const Latents latents =
        attention.latent ? Latents{part(all.latents.c_kv), part(all.latents.k_pe)} : Latents{};
    all.gates.push_back(ProjectTokens(layer, weights, spec_.rms_norm_eps, part(hidden), rope,
                                      options.cache_dtype, part(all.q), part(all.k), part(all.v),
                                      latents));
  }
  if (options.cache_dtype) {
    RoundInPlace(all.q, *options.cache_dtype);
    if (!attention.shared_kv && !attention.latent) {
      RoundInPlace(all.k, *options.cache_dtype);
      RoundInPlace(all.v, *options.cache_dtype);
    }
  }
  return all;
}

// Runs one span of one stream through one layer: projections of all tokens, attention of each
// sequence, then everything else except for experts. The span's hidden states begin at row
// `first_row` of the stream and are updated in place.
void LayerPass::RunSpan(const LayerSpec& layer, size_t layer_index, const LayerWeights& weights,
                        const Span& span, size_t stream, int64_t first_row,
                        const at::Tensor& inputs) {
  const Tensors all = Project(layer, weights, span, stream, first_row);
  if (const auto kept = shared_.find(layer.layer_id); kept != shared_.end())
    Keep(kept->second[stream], first_row, all);
  Attend(layer, layer_index, weights, span, stream, all);

  // This is the last layer, and its output is not needed.
  if (weights.attention_only) return;
  const at::Tensor hidden = streams_[stream].narrow(0, first_row, span.num_tokens);
  const int64_t chunk = loop_.options().token_chunk;
  for (int64_t begin = 0, i = 0; begin < span.num_tokens; begin += chunk, ++i) {
    const int64_t count = std::min(chunk, span.num_tokens - begin);
    at::Tensor hidden_part = hidden.narrow(0, begin, count);
    const at::Tensor input =
        inputs.defined() ? inputs.narrow(0, span.first_token + begin, count) : at::Tensor();
    FinishLayer(layer, weights, spec_.rms_norm_eps, all.attn_out.narrow(0, begin, count),
                all.gates[static_cast<size_t>(i)], input, hidden_part);
  }
}

void LayerPass::RunDeltaNet(const LayerSpec& layer, const LayerWeights& weights, const Span& span,
                            size_t stream, int64_t first_row, const at::Tensor& inputs) {
  const double eps = spec_.rms_norm_eps;
  const int64_t chunk = loop_.options().token_chunk;
  const at::Tensor hidden = streams_[stream].narrow(0, first_row, span.num_tokens);
  int64_t begin = 0;
  for (size_t i = 0; i < span.num_sequences; ++i) {
    const int64_t length = lengths_[span.first_sequence + i];
    const at::Tensor own = hidden.narrow(0, begin, length);
    const at::Tensor out =
        GatedDeltaNet(*layer.delta_net, weights.delta_net, eps, chunk,
                      Norm(layer.attention_norm, weights.attention_norm, eps, own));
    observer_.OnLinearAttention(layer, out);
    own.add_(out);
    begin += length;
  }
  if (layer.experts) return;
  for (begin = 0; begin < span.num_tokens; begin += chunk) {
    const int64_t count = std::min(chunk, span.num_tokens - begin);
    at::Tensor hidden_part = hidden.narrow(0, begin, count);
    const at::Tensor input =
        inputs.defined() ? inputs.narrow(0, span.first_token + begin, count) : at::Tensor();
    AddMlp(layer, weights, eps, input, hidden_part);
  }
}

void LayerPass::Keep(SharedKv& kept, int64_t first_row, const Tensors& all) const {
  const int64_t tokens = streams_[0].size(0);
  if (!kept.k.defined()) {
    kept.k = Empty({tokens, all.k.size(1), all.k.size(2)});
    kept.v = Empty({tokens, all.v.size(1), all.v.size(2)});
  }
  kept.k.narrow(0, first_row, all.k.size(0)).copy_(all.k);
  kept.v.narrow(0, first_row, all.v.size(0)).copy_(all.v);
}

// Returns the queries of one sequence in latent space, rounded like all queries.
std::pair<at::Tensor, at::Tensor> LayerPass::Absorbed(const LayerSpec& layer,
                                                      const at::Tensor& kv_b,
                                                      const at::Tensor& q) const {
  const LatentQueries absorbed = QueriesInLatentSpace(*layer.attention.latent, kv_b, q);
  if (loop_.options().cache_dtype) RoundInPlace(absorbed.q, *loop_.options().cache_dtype);
  return {absorbed.q, absorbed.q_pe};
}

void LayerPass::Attend(const LayerSpec& layer, size_t layer_index, const LayerWeights& weights,
                       const Span& span, size_t stream, const Tensors& all) {
  const AttentionChunking chunking{loop_.options().query_chunk, loop_.options().whole_attention};
  const bool seen = layer.has_cache();
  const std::optional<int> shared = layer.attention.shared_kv;
  const bool in_latent_space = layer.attention.latent && loop_.options().in_latent_space;
  const bool expanded = !in_latent_space || loop_.options().show_expanded_heads;
  const AttentionSpec spec = in_latent_space ? InLatentSpace(layer.attention) : layer.attention;
  int64_t begin = 0;
  for (size_t i = 0; i < span.num_sequences; ++i) {
    const size_t sequence = span.first_sequence + i;
    const int64_t length = lengths_[sequence];
    const auto own = [&](const at::Tensor& x) {
      return x.defined() ? x.narrow(0, begin, length) : x;
    };
    const Heads heads{own(all.q), own(all.k), own(all.v), own(all.attn_out)};
    const at::Tensor c_kv = own(all.latents.c_kv), k_pe = own(all.latents.k_pe);
    const at::Tensor kv_b =
        c_kv.defined() ? ExpansionOf(layer.attention, weights.latent) : at::Tensor();
    Heads attending = heads;
    at::Tensor q_pe;
    if (in_latent_space) {
      std::tie(attending.q, q_pe) = Absorbed(layer, kv_b, heads.q);
      attending.k = attending.v = c_kv.unsqueeze(1);
      attending.attn_out = Empty({length, attending.q.size(1), c_kv.size(1)});
    }
    const Heads& in_view = expanded ? heads : attending;
    const AttentionView view{seen ? loop_.seen_layers()[layer_index] : layer,
                             shared ? IndexOfLayer(spec_, *shared) : layer_index,
                             static_cast<int64_t>(sequence),
                             span.first_token + begin,
                             in_view.q,
                             in_view.k,
                             in_view.v,
                             in_view.attn_out,
                             stream,
                             weights.sinks,
                             c_kv,
                             k_pe,
                             expanded ? at::Tensor() : q_pe,
                             kv_b};
    const bool attended = seen && observer_.Attend(view);
    OSCAR_CHECK(!attended || !in_latent_space || !expanded);
    if (!attended) {
      CausalAttention(spec, in_latent_space ? WithPosition(attending.q, q_pe) : attending.q,
                      in_latent_space ? WithPosition(attending.k, k_pe) : attending.k, attending.v,
                      chunking, attending.attn_out, weights.sinks);
    }
    if (in_latent_space) {
      heads.attn_out.copy_(
          OutputsFromLatentSpace(*layer.attention.latent, kv_b, attending.attn_out));
    }
    if (seen) observer_.OnAttention(view);
    if (shared) observer_.OnSharedAttention(view);
    begin += length;
  }
}

}  // namespace oscar
