// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/observe/statistics_observer.h"

#include <ATen/ATen.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "capture/model/run/attention_scores.h"
#include "capture/model/run/latent_attention.h"  // ValueExpansion
#include "capture/model/run/product.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

constexpr int64_t kChunkTokens =
    1024;  // bounds the float64 copies: 1024 * 32 heads * 128 * 8 bytes = 32 MiB
constexpr int64_t kAttendedRows = 256;  // maximum queries per document that weight its keys
constexpr int64_t kRowsAtOnce = 32;  // rows per step: their scores are [rows, num_q_heads, tokens]
constexpr int64_t kSweepTokens = 4096;  // tokens at a time in AddDiagonalTarget, across documents

// Returns the rows of each KV head: [tokens, heads, dim] -> [num_kv_heads, tokens * gqa_ratio, dim]
// float64.
at::Tensor RowsOfKvHeads(const at::Tensor& x, int64_t num_kv_heads) {
  const int64_t tokens = x.size(0), ratio = x.size(1) / num_kv_heads, dim = x.size(2);
  const at::Tensor rows =
      at::empty({num_kv_heads, tokens, ratio, dim}, x.options().dtype(at::kDouble));
  rows.copy_(x.view({tokens, num_kv_heads, ratio, dim}).permute({1, 0, 2, 3}));
  return rows.view({num_kv_heads, tokens * ratio, dim});
}

// Evenly spaced rows of a document that read quantized keys: starting at `first`, `step` apart.
struct AttendedRows {
  AttendedRows(int64_t tokens, int64_t begin, int64_t end, const CacheWindows& windows) {
    const int64_t beyond = windows.sink + windows.recent;
    step = std::max<int64_t>(1, (tokens - beyond) / kAttendedRows);
    const int64_t skipped = std::max<int64_t>(0, (begin - beyond + step - 1) / step);
    first = beyond + skipped * step;
    count = std::max<int64_t>(0, (end - first + step - 1) / step);
  }
  int64_t first, step, count;
};

// Returns the weights of attended keys (LayerMoments): [num_kv_heads, last row + 1] float64.
// `uncounted`: bool [tokens], true for queries that do not count, or undefined.
at::Tensor AttendedWeights(const AttentionView& view, const AttendedRows& of,
                           const CacheWindows& windows, const at::Tensor& uncounted) {
  const AttentionSpec& spec = view.layer.attention;
  const int64_t tokens = of.first + (of.count - 1) * of.step + 1;
  const int64_t heads = view.k.size(1), q_heads = view.q.size(1);
  const auto longs = view.q.options().dtype(at::kLong);
  const at::Tensor keys = at::arange(tokens, longs);
  at::Tensor weights = at::zeros({heads, tokens}, view.q.options().dtype(at::kDouble));
  for (int64_t from = 0; from < of.count; from += kRowsAtOnce) {
    const int64_t some = std::min(kRowsAtOnce, of.count - from);
    const at::Tensor rows = at::arange(some, longs).add_(from).mul_(of.step).add_(of.first);
    at::Tensor exact = keys.lt(windows.sink).unsqueeze(0);
    if (windows.recent > 0)
      exact = exact.logical_or(keys.add(windows.recent - 1).ge(rows.unsqueeze(1)));
    if (uncounted.defined()) exact = exact.logical_or(uncounted.index_select(0, rows).unsqueeze(1));
    const at::Tensor scores = SoftmaxRows(spec, view.q, view.k, rows, tokens, view.sinks);
    const at::Tensor of_rows = scores.mul(scores.neg().add_(1)).masked_fill_(exact.unsqueeze(1), 0);
    weights.add_(of_rows.view({-1, heads, q_heads / heads, tokens})
                     .sum(at::IntArrayRef{0, 2}, /*keepdim=*/false, at::kDouble));
  }
  return weights;
}

std::vector<double> ToHost(const at::Tensor& tensor) {
  const at::Tensor host = tensor.cpu().contiguous();
  const double* data = host.const_data_ptr<double>();
  return {data, data + host.numel()};
}

// Returns the rules by which scales can be folded into the layer's weights.
FoldRules FoldRulesOf(const AttentionSpec& attention) {
  if (!WhyNotFoldable(attention).empty()) return {};
  return {.pairs = {.rotary_dim = attention.rope.rotary_dim,
                    .interleaved = attention.rope.layout == RopeLayout::kInterleaved},
          .shared_scales = attention.qk_norm};
}

}  // namespace

HalfPoint HalfPointOf(const HeldOutSplit& split) {
  const int64_t half = std::max<int64_t>(1, split.NumFitQueries() / 2);
  HalfPoint point;
  for (size_t i = 0; i < split.fit_rows.size(); ++i) {
    for (int64_t to = 0; to < split.fit_rows[i];) {
      const int64_t from = to;
      to = std::min(to + kChunkTokens, split.fit_rows[i]);
      point.tokens += to - from;
      point.queries += NumCounted(split.counted, i, from, to);
      if (point.queries < half) continue;
      point.document = static_cast<int64_t>(i);
      point.rows = to;
      return point;
    }
  }
  return point;
}

at::Tensor KeptRows(const HeldOutSplit& split, size_t sequence, int64_t tokens, int64_t error_rows,
                    at::Device device) {
  const int64_t fit_rows = split.fit_rows.at(sequence),
                kept = split.NumKeptRows(sequence, tokens, error_rows);
  // Kept row j is the last row of the j-th of `kept` equal stretches.
  const auto spread = [&](int64_t rows, at::Device where) {
    return at::arange(1, kept + 1, at::dtype(at::kLong).device(where))
        .mul_(rows)
        .div_(kept, "floor");
  };
  if (split.CountedOf(sequence) == nullptr)
    return spread(tokens - fit_rows, device).add_(fit_rows - 1);
  const std::vector<int64_t> rows = CountedRows(split.counted, sequence, fit_rows, tokens);
  return at::tensor(rows, at::kLong)
      .index_select(0, spread(std::ssize(rows), at::kCPU).sub_(1))
      .to(device);
}

StatisticsObserver::StatisticsObserver(HeldOutSplit split, int64_t error_rows, int64_t last_queries,
                                       int64_t first_sequence, CacheWindows windows)
    : split_(std::move(split)),
      error_rows_(error_rows),
      last_queries_(last_queries),
      first_sequence_(first_sequence),
      windows_(windows),
      half_(HalfPointOf(split_)) {}

void StatisticsObserver::OnLayerBegin(const LayerSpec&) { observed_ = {}; }

// Adds the rows of one document; only queries and outputs if the layer reads another's cache.
void StatisticsObserver::AddRows(LayerSums& sums, const AttentionView& view, bool of_reader) const {
  const SumsLayout layout{view.k.size(1), view.k.size(2), view.v.size(2)};
  const int64_t heads = layout.num_kv_heads, d = layout.d, dv = layout.dv;
  const int64_t document = first_sequence_ + view.sequence, tokens = view.q.size(0);
  const int64_t fit_rows = split_.fit_rows.at(static_cast<size_t>(document));
  at::Tensor q = view.q, attn_out = view.attn_out, uncounted;
  if (const std::vector<uint8_t>* counted = split_.CountedOf(static_cast<size_t>(document))) {
    // Rows of zeros add nothing.
    uncounted = at::tensor(*counted, at::kByte).eq(0).to(view.q.device());
    const at::Tensor zeros = uncounted.view({-1, 1, 1});
    q = q.masked_fill(zeros, 0);
    attn_out = attn_out.masked_fill(zeros, 0);
  }
  const auto add_attended = [&](int64_t begin, int64_t end, at::Tensor attended) {
    attended.zero_();
    if (view.layer.attention.latent) return;
    const AttendedRows rows(tokens, begin, end, windows_);
    if (rows.count == 0) return;
    const at::Tensor weights = AttendedWeights(view, rows, windows_, uncounted);
    at::Tensor second = attended.narrow(0, 0, heads * d * d).view({heads, d, d});
    at::Tensor first = attended.narrow(0, heads * d * d, heads * d).view({heads, d});
    for (int64_t from = 0; from < weights.size(1); from += kChunkTokens) {
      const int64_t to = std::min(weights.size(1), from + kChunkTokens);
      const at::Tensor keys = RowsOfKvHeads(view.k.slice(0, from, to), heads);
      const at::Tensor weighted = keys.mul(weights.slice(1, from, to).unsqueeze(-1));
      BatchProductInto(second, weighted.transpose(1, 2), keys, /*add=*/true);
      first.add_(weighted.sum(1));
    }
    attended.narrow(0, heads * (d * d + d), heads).copy_(weights.sum(1));
  };
  const auto sum_of = [&](int64_t begin, int64_t end) {
    at::Tensor all;
    if (begin == end) return all;
    all = at::empty({of_reader ? layout.of_queries() : layout.of_all()},
                    view.q.options().dtype(at::kDouble));
    const auto part = [&](int64_t first, at::IntArrayRef shape) {
      return all.narrow(0, first, c10::multiply_integers(shape)).view(shape);
    };
    const int64_t first_attended = heads * (d * d + dv * dv);
    add_attended(begin, end, all.narrow(0, first_attended, layout.of_queries() - first_attended));
    const auto add = [&](const at::Tensor& x, int64_t from, int64_t to, int64_t first,
                         int64_t dim) {
      const at::Tensor rows = RowsOfKvHeads(x.slice(0, from, to), heads);
      at::Tensor sum = part(first, {heads, dim, dim});
      BatchProductInto(sum, rows.transpose(1, 2), rows, /*add=*/from != begin);
      return rows;
    };
    for (int64_t from = begin, to = 0; from < end; from = to) {
      to = std::min(end, from + kChunkTokens);
      add(q, from, to, 0, d);
      add(attn_out, from, to, heads * d * d, dv);
      if (!of_reader) {
        const at::Tensor keys = add(view.k, from, to, layout.of_queries(), d);
        add(view.v, from, to, layout.of_queries() + heads * d * d, dv);
        at::Tensor sum = part(layout.of_all() - heads * d, {heads, d});
        from == begin ? at::sum_out(sum, keys, 1) : sum.add_(keys.sum(1));
      }
      if (begin == 0 && document == half_.document && to == half_.rows) {
        sums.first_half = sums.fit;
        sums.first_half.Add(document, to == end ? all : all.clone());
      }
    }
    return all;
  };
  sums.fit.Add(document, sum_of(0, fit_rows));
  sums.held_out.Add(document, sum_of(fit_rows, tokens));
}

void StatisticsObserver::OnAttention(const AttentionView& view) {
  const int64_t tokens = view.q.size(0);
  OSCAR_CHECK_EQ(view.sequence, static_cast<int64_t>(observed_.layer.keys.size()));
  AddRows(observed_.sums, view, /*of_reader=*/false);
  if (view.sequence == 0) observed_.SetCounts(split_, half_);
  observed_.layer.keys.push_back(view.k.clone());
  observed_.layer.values.push_back(view.v.clone());
  if (view.q_pe.defined()) {
    observed_.layer.k_pe.push_back(view.k_pe.clone());
    if (!observed_.layer.w_uv.defined()) {
      observed_.layer.w_uv = ValueExpansion(*view.layer.attention.latent, view.kv_b)
                                 .clone(at::MemoryFormat::Contiguous);
    }
  }
  if (last_queries_ > 0) {
    const int64_t first = std::max<int64_t>(0, tokens - last_queries_);
    observed_.layer.last_queries.push_back(view.q.slice(0, first).clone());
  }

  if (split_.NumKeptRows(static_cast<size_t>(first_sequence_ + view.sequence), tokens, 1) == 0)
    return;
  const at::Tensor rows = KeptRows(split_, static_cast<size_t>(first_sequence_ + view.sequence),
                                   tokens, error_rows_, view.q.device());
  observed_.layer.queries.push_back(
      {first_sequence_ + view.sequence, rows, view.q.index_select(0, rows),
       view.q_pe.defined() ? view.q_pe.index_select(0, rows) : at::Tensor()});
}

void StatisticsObserver::Hold(size_t layer_index) {
  if (const auto [held, is_new] = held_.try_emplace(layer_index); is_new)
    held->second = TakeOnDevice();
}

void StatisticsObserver::OnSharedAttention(const AttentionView& view) {
  Hold(view.layer_index);  // holds the layer observed last, if it is not held yet
  std::vector<LayerSums>& readers = held_.at(view.layer_index).readers;
  if (view.sequence == 0) readers.emplace_back();
  AddRows(readers.back(), view, /*of_reader=*/true);
}

LayerOnDevice StatisticsObserver::TakeOnDevice(size_t layer_index) {
  auto node = held_.extract(layer_index);
  return node.empty() ? TakeOnDevice() : std::move(node.mapped());
}

uint64_t ObservingMemory(const LayerSpec& layer, int64_t longest) {
  const AttentionSpec& a = layer.attention;
  // Logits, scores and weights of the queries that weigh keys.
  const int64_t weighing = a.latent ? 0 : 6 * 4 * kRowsAtOnce * a.num_q_heads * longest;
  // One converted chunk of queries or outputs, and its copy in the order of KV heads.
  const int64_t chunk = 2 * 8 * kChunkTokens * a.num_q_heads * std::max(a.head_dim, a.v_head_dim);
  return static_cast<uint64_t>(std::max(weighing, chunk));
}

void LayerOnDevice::SetCounts(const HeldOutSplit& split, const HalfPoint& half) {
  fit_tokens = std::accumulate(split.fit_rows.begin(), split.fit_rows.end(), int64_t{0});
  held_out_tokens = split.held_out_tokens;
  half_tokens = half.tokens;
  fit_queries = split.NumFitQueries();
  held_out_queries = split.NumHeldOutQueries();
  half_queries = half.queries;
}

void LayerOnDevice::RecordStream(c10::Stream stream) const {
  const auto record = [&](const at::Tensor& tensor) {
    if (tensor.defined()) tensor.record_stream(stream);
  };
  const auto record_all = [&](const LayerSums& of) {
    for (const DocumentSums* some : {&of.fit, &of.held_out, &of.first_half})
      for (const DocumentSums::Node& node : some->nodes()) record(node.sum);
  };
  record_all(sums);
  for (const LayerSums& reader : readers) record_all(reader);
  for (const at::Tensor& rows : layer.keys) record(rows);
  for (const at::Tensor& rows : layer.values) record(rows);
  for (const at::Tensor& rows : layer.k_pe) record(rows);
  record(layer.w_uv);
  for (const at::Tensor& rows : layer.last_queries) record(rows);
  for (const HeldOutQueries& queries : layer.queries) {
    record(queries.rows);
    record(queries.queries);
    record(queries.q_pe);
  }
}

ObservedLayer ReadBack(LayerOnDevice observed, const LayerSpec& spec) {
  const AttentionSpec& a = spec.attention;
  const SumsLayout layout{a.num_kv_heads, a.head_dim, a.v_head_dim};
  const int64_t heads = layout.num_kv_heads, d = layout.d, dv = layout.dv;
  const auto finish = [&](DocumentSums LayerSums::*part, int64_t tokens, int64_t queries,
                          LayerMoments& moments) {
    moments.layer_id = spec.layer_id;
    moments.num_q_heads = spec.attention.num_q_heads;
    moments.num_kv_heads = heads;
    moments.head_dim = d;
    moments.v_head_dim = dv;
    moments.SetTokens(tokens, queries);
    moments.latent = spec.attention.latent.has_value();
    if (!spec.attention.latent) {  // latent rows have no positions
      moments.rope = spec.attention.rope;
      moments.fold = FoldRulesOf(spec.attention);
    }
    at::Tensor total = (observed.sums.*part).Total();
    if (!total.defined()) return;
    if (!observed.readers.empty()) {  // take means over all layers that read this one
      total = total.clone();
      const at::Tensor of_queries = total.narrow(0, 0, layout.of_queries());
      for (const LayerSums& reader : observed.readers) of_queries.add_((reader.*part).Total());
      of_queries.div_(static_cast<double>(observed.readers.size() + 1));
    }
    const std::vector<double> sums = ToHost(total);
    auto next = sums.begin();
    const auto take = [&](int64_t count) {
      const auto begin = std::exchange(next, next + count);
      return std::vector<double>(begin, next);
    };
    moments.query = take(heads * d * d);
    moments.attention_output = take(heads * dv * dv);
    moments.attended_key = take(heads * d * d);
    moments.attended_key_sum = take(heads * d);
    moments.attended_key_weight = take(heads);
    if (moments.latent) {
      moments.attended_key.clear();
      moments.attended_key_sum.clear();
      moments.attended_key_weight.clear();
    }
    moments.key = take(heads * d * d);
    moments.value = take(heads * dv * dv);
    moments.key_sum = take(heads * d);
  };
  finish(&LayerSums::fit, observed.fit_tokens, observed.fit_queries, observed.layer.fit);
  finish(&LayerSums::held_out, observed.held_out_tokens, observed.held_out_queries,
         observed.layer.held_out);
  finish(&LayerSums::first_half, observed.half_tokens, observed.half_queries,
         observed.layer.first_half);
  observed.layer.first_half.value.clear();
  const auto maxima = [](const std::vector<at::Tensor>& sequences) {
    std::vector<at::Tensor> of_each;
    for (const at::Tensor& rows : sequences)
      of_each.push_back(at::linalg_vector_norm(rows, std::numeric_limits<double>::infinity(), {0}));
    return ToHost(at::stack(of_each).amax(0).to(at::kDouble));
  };
  observed.layer.fit.key_abs_max = observed.layer.held_out.key_abs_max =
      maxima(observed.layer.keys);
  observed.layer.fit.value_abs_max = observed.layer.held_out.value_abs_max =
      maxima(observed.layer.values);
  return std::move(observed.layer);
}

void AddDiagonalTarget(const std::vector<at::Tensor>& keys, const std::vector<at::Tensor>& values,
                       const std::vector<int64_t>& rows, LayerMoments& moments) {
  const int64_t num_kv_heads = moments.num_kv_heads, d = moments.head_dim, dv = moments.v_head_dim;
  at::Tensor covariance = at::empty({num_kv_heads, d, d}, at::kDouble);
  for (int64_t head = 0; head < num_kv_heads; ++head) {
    const Matrix c = moments.QueryCovariance(head);  // symmetric: column-major and row-major agree
    std::copy_n(c.data(), c.size(), covariance.mutable_data_ptr<double>() + head * d * d);
  }
  const auto options = keys.at(0).options().dtype(at::kDouble);
  covariance = covariance.to(options.device());
  at::Tensor sum = at::zeros({num_kv_heads, dv, dv}, options);
  at::Tensor weight_sum = at::zeros({num_kv_heads}, options);
  std::vector<at::Tensor> k_parts, v_parts;
  int64_t filled = 0;
  const auto add = [&] {
    const at::Tensor k = RowsOfKvHeads(at::cat(k_parts), num_kv_heads);
    const at::Tensor v = RowsOfKvHeads(at::cat(v_parts), num_kv_heads);
    const at::Tensor weight =
        BatchProduct(k, covariance).mul_(k).sum(-1);  // [num_kv_heads, tokens]
    BatchProductInto(sum, v.mul(weight.unsqueeze(-1)).transpose(1, 2), v, /*add=*/true);
    weight_sum.add_(weight.sum(-1));
    k_parts.clear();
    v_parts.clear();
    filled = 0;
  };
  for (size_t i = 0; i < keys.size(); ++i) {
    for (int64_t from = 0; from < rows[i];) {
      const int64_t to = std::min(rows[i], from + kSweepTokens - filled);
      k_parts.push_back(keys[i].slice(0, from, to));
      v_parts.push_back(values[i].slice(0, from, to));
      filled += to - from;
      from = to;
      if (filled == kSweepTokens) add();
    }
  }
  if (filled > 0) add();
  moments.diagonal = ToHost(sum);
  moments.diagonal_weight = ToHost(weight_sum);
}

}  // namespace oscar
