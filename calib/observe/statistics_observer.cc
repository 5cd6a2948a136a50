// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/observe/statistics_observer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "capture/model/latent_attention.h"  // ValueExpansion
#include "linalg/check.h"

namespace oscar {
namespace {

constexpr int64_t kChunkTokens =
    1024;  // bounds the float64 copies: 1024 * 32 heads * 128 * 8 bytes = 32 MiB
constexpr int64_t kSweepTokens = 4096;  // of keys and values alone, across documents

// [tokens, heads, dim] -> [num_kv_heads, tokens * gqa_ratio, dim] float64: the rows every KV head
// sees.
at::Tensor RowsOfKvHeads(const at::Tensor& x, int64_t num_kv_heads) {
  const int64_t tokens = x.size(0), ratio = x.size(1) / num_kv_heads, dim = x.size(2);
  return x.to(at::kDouble)
      .view({tokens, num_kv_heads, ratio, dim})
      .permute({1, 0, 2, 3})
      .reshape({num_kv_heads, tokens * ratio, dim});
}

void AddProduct(at::Tensor& sum, const at::Tensor& rows) {
  sum.baddbmm_(rows.transpose(1, 2), rows);
}

std::vector<double> ToHost(const at::Tensor& tensor) {
  const at::Tensor host = tensor.cpu().contiguous();
  const double* data = host.const_data_ptr<double>();
  return {data, data + host.numel()};
}

// What the layer's weights allow.
FoldRules FoldRulesOf(const AttentionSpec& attention) {
  if (!WhyNotFoldable(attention).empty()) return {};
  return {.pairs = {.rotary_dim = attention.rope.rotary_dim,
                    .interleaved = attention.rope.layout == RopeLayout::kInterleaved},
          .shared_scales = attention.qk_norm};
}

}  // namespace

StatisticsObserver::StatisticsObserver(HeldOutSplit split, int64_t error_rows, int64_t last_queries)
    : split_(std::move(split)),
      error_rows_(error_rows),
      last_queries_(last_queries),
      half_tokens_(std::accumulate(split_.fit_rows.begin(), split_.fit_rows.end(), int64_t{0}) /
                   2) {}

void StatisticsObserver::OnLayerBegin(const LayerSpec&) { observed_ = {}; }

void StatisticsObserver::AddRows(DeviceSums& sums, const AttentionView& view, int64_t begin,
                                 int64_t end) {
  const int64_t num_kv_heads = view.k.size(1), d = view.k.size(2), dv = view.v.size(2);
  if (!sums.query.defined()) {
    const auto options = view.q.options().dtype(at::kDouble);
    sums.query = at::zeros({num_kv_heads, d, d}, options);
    sums.key = at::zeros({num_kv_heads, d, d}, options);
    sums.key_sum = at::zeros({num_kv_heads, d}, options);
    sums.value = at::zeros({num_kv_heads, dv, dv}, options);
    sums.attention_output = at::zeros({num_kv_heads, dv, dv}, options);
  }
  for (int64_t from = begin; from < end; from += kChunkTokens) {
    const int64_t to = std::min(end, from + kChunkTokens);
    AddQueries(sums, view, from, to);
    AddProduct(sums.value, RowsOfKvHeads(view.v.slice(0, from, to), num_kv_heads));
    const at::Tensor keys = RowsOfKvHeads(view.k.slice(0, from, to), num_kv_heads);
    AddProduct(sums.key, keys);
    sums.key_sum.add_(keys.sum(1));
    if (&sums == &observed_.fit) KeepHalf(sums.tokens + to - begin);
  }
  sums.tokens += end - begin;
}

void StatisticsObserver::AddQueries(DeviceSums& sums, const AttentionView& view, int64_t from,
                                    int64_t to) const {
  const int64_t num_kv_heads = view.k.size(1);
  AddProduct(sums.query, RowsOfKvHeads(view.q.slice(0, from, to), num_kv_heads));
  AddProduct(sums.attention_output, RowsOfKvHeads(view.attn_out.slice(0, from, to), num_kv_heads));
}

// A copy of the sums that stand in `fit` once they hold half of its tokens.
void StatisticsObserver::KeepHalf(int64_t tokens) {
  DeviceSums& half = observed_.first_half;
  if (half.tokens > 0 || tokens < half_tokens_) return;
  half.tokens = tokens;
  half.query = observed_.fit.query.clone();
  half.key = observed_.fit.key.clone();
  half.key_sum = observed_.fit.key_sum.clone();
  half.attention_output = observed_.fit.attention_output.clone();
}

void StatisticsObserver::OnAttention(const AttentionView& view) {
  const int64_t tokens = view.q.size(0);
  const int64_t fit_rows = split_.fit_rows.at(static_cast<size_t>(view.sequence));
  OSCAR_CHECK_EQ(view.sequence, static_cast<int64_t>(observed_.layer.keys.size()));
  AddRows(observed_.fit, view, 0, fit_rows);
  AddRows(observed_.held_out, view, fit_rows, tokens);
  observed_.layer.keys.push_back(view.k.clone());
  observed_.layer.values.push_back(view.v.clone());
  observed_.layer.key_abs_max.push_back(view.k.abs().amax(0));
  observed_.layer.value_abs_max.push_back(view.v.abs().amax(0));
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

  const int64_t held_out_rows = tokens - fit_rows;
  if (held_out_rows == 0) return;
  const int64_t kept = std::min(held_out_rows, error_rows_);
  // Row j of kept: the last row of the j-th of `kept` equal stretches.
  const at::Tensor rows = at::arange(1, kept + 1, view.q.options().dtype(at::kLong))
                              .mul_(held_out_rows)
                              .div_(kept, "floor")
                              .add_(fit_rows - 1);
  observed_.layer.queries.push_back(
      {view.sequence, rows, view.q.index_select(0, rows),
       view.q_pe.defined() ? view.q_pe.index_select(0, rows) : at::Tensor()});
}

void StatisticsObserver::Hold(size_t layer_index) {
  if (const auto [held, is_new] = held_.try_emplace(layer_index); is_new)
    held->second.layer = TakeOnDevice();
}

// In the steps of AddRows, so that the same tokens go into the first half.
void StatisticsObserver::OnSharedAttention(const AttentionView& view) {
  Hold(view.layer_index);  // the layer that was observed last, if it is not held yet
  HeldLayer& held = held_.at(view.layer_index);
  if (view.sequence == 0) {
    ++held.readers;
    held.fit_tokens = 0;
  }
  const int64_t tokens = view.q.size(0);
  const int64_t fit_rows = split_.fit_rows.at(static_cast<size_t>(view.sequence));
  for (int64_t from = 0, to = 0; from < tokens; from = to) {
    to = std::min(from + kChunkTokens, from < fit_rows ? fit_rows : tokens);
    AddQueries(from < fit_rows ? held.layer.fit : held.layer.held_out, view, from, to);
    if (from >= fit_rows) continue;
    held.fit_tokens += to - from;
    if (held.fit_tokens <= held.layer.first_half.tokens)
      AddQueries(held.layer.first_half, view, from, to);
  }
}

LayerOnDevice StatisticsObserver::TakeOnDevice(size_t layer_index) {
  auto node = held_.extract(layer_index);
  if (node.empty()) return TakeOnDevice();
  HeldLayer& held = node.mapped();
  if (held.readers == 0) return std::move(held.layer);
  for (DeviceSums* sums : {&held.layer.fit, &held.layer.held_out, &held.layer.first_half}) {
    if (!sums->query.defined()) continue;
    sums->query.div_(held.readers + 1);
    sums->attention_output.div_(held.readers + 1);
  }
  return std::move(held.layer);
}

uint64_t ObservingMemory(const LayerSpec& layer) {
  const AttentionSpec& a = layer.attention;
  // A chunk of queries or outputs converted, and the same in the order of KV heads.
  return static_cast<uint64_t>(2 * 8 * kChunkTokens * a.num_q_heads *
                               std::max(a.head_dim, a.v_head_dim));
}

void LayerOnDevice::RecordStream(c10::Stream stream) const {
  const auto record = [&](const at::Tensor& tensor) {
    if (tensor.defined()) tensor.record_stream(stream);
  };
  for (const DeviceSums* sums : {&fit, &held_out, &first_half}) {
    record(sums->query);
    record(sums->key);
    record(sums->key_sum);
    record(sums->value);
    record(sums->attention_output);
  }
  for (const at::Tensor& rows : layer.keys) record(rows);
  for (const at::Tensor& rows : layer.values) record(rows);
  for (const at::Tensor& rows : layer.k_pe) record(rows);
  for (const at::Tensor& maxima : layer.key_abs_max) record(maxima);
  for (const at::Tensor& maxima : layer.value_abs_max) record(maxima);
  record(layer.w_uv);
  for (const at::Tensor& rows : layer.last_queries) record(rows);
  for (const HeldOutQueries& queries : layer.queries) {
    record(queries.rows);
    record(queries.queries);
    record(queries.q_pe);
  }
}

ObservedLayer ReadBack(LayerOnDevice observed, const LayerSpec& spec) {
  const auto to_host = [](const at::Tensor& sum) {
    return sum.defined() ? ToHost(sum) : std::vector<double>();
  };
  const auto finish = [&](const DeviceSums& sums, LayerMoments& moments) {
    moments.layer_id = spec.layer_id;
    moments.num_q_heads = spec.attention.num_q_heads;
    moments.num_kv_heads = spec.attention.num_kv_heads;
    moments.head_dim = spec.attention.head_dim;
    moments.v_head_dim = spec.attention.v_head_dim;
    moments.tokens = sums.tokens;
    moments.latent = spec.attention.latent.has_value();
    if (!spec.attention.latent) {  // whose rows have no positions
      moments.rope = spec.attention.rope;
      moments.fold = FoldRulesOf(spec.attention);
    }
    moments.query = to_host(sums.query);
    moments.key = to_host(sums.key);
    moments.key_sum = to_host(sums.key_sum);
    moments.value = to_host(sums.value);
    moments.attention_output = to_host(sums.attention_output);
  };
  finish(observed.fit, observed.layer.fit);
  finish(observed.held_out, observed.layer.held_out);
  finish(observed.first_half, observed.layer.first_half);
  const auto maxima = [](const std::vector<at::Tensor>& sequences) {
    return ToHost(at::stack(sequences).amax(0).to(at::kDouble));
  };
  observed.layer.fit.key_abs_max = observed.layer.held_out.key_abs_max =
      maxima(observed.layer.key_abs_max);
  observed.layer.fit.value_abs_max = observed.layer.held_out.value_abs_max =
      maxima(observed.layer.value_abs_max);
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
    const at::Tensor weight = k.bmm(covariance).mul_(k).sum(-1);  // [num_kv_heads, tokens]
    sum.baddbmm_(v.mul(weight.unsqueeze(-1)).transpose(1, 2), v);
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
