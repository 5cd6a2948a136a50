// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See attention_error.h. Rows are processed in slices so that the score matrices stay small
// whatever the context length.
#include "calib/attention_error.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "calib/clip_search.h"
#include "calib/int2_tensor.h"
#include "linalg/check.h"

namespace oscar {
namespace {

constexpr int64_t kScoreBytes = int64_t{16} << 20;  // of one float64 score slice
constexpr int64_t kScoreTensors =
    11;  // of that size alive at once: reference logits and scores, those of an arm, temporaries

// Running sums of one arm, one device float64 tensor: kl, kl beyond, kl max, error, reference,
// error beyond, reference beyond, kl without windows, error without windows.
enum Sum {
  kKl,
  kKlBeyond,
  kKlMax,
  kError,
  kReference,
  kErrorBeyond,
  kReferenceBeyond,
  kKlAll,
  kErrorAll,
  kNumSums
};

// x̂ of one side in the original basis: [num_kv_heads, tokens, dim] float64.
at::Tensor StoredRows(const at::Tensor& rows, const SideResult& side, double clip_ratio,
                      int64_t quant_group_size) {
  const at::Tensor rotation = RotationTensor(side, rows);
  const at::Tensor y = RotateRows(rows, rotation);
  at::Tensor thresholds;
  if (clip_ratio > 0) thresholds = ClipThresholds(std::get<0>(y.abs().sort(-1)), clip_ratio);
  const int64_t group = quant_group_size == 0 ? side.dim : quant_group_size;
  const at::Tensor stored = Int2RoundTrip(y, thresholds, group).to(at::kDouble);
  return at::matmul(stored, rotation.to(at::kDouble).transpose(1, 2));
}

// One slice of query rows of one sequence against all its keys.
struct RowSlice {
  at::Tensor queries;  // [num_kv_heads, gqa_ratio * rows, d] float64
  at::Tensor visible;  // [rows, tokens] bool: causal, inside the sliding window
  at::Tensor exact;    // [rows, tokens] bool: kept in bf16 by the sink and recent windows
  at::Tensor beyond;   // [rows] float64: 1 where some visible key is not exact
};

// log softmax over the visible keys, [num_kv_heads, gqa_ratio, rows, tokens]; masked entries are
// -inf.
at::Tensor LogScores(const at::Tensor& logits, const at::Tensor& visible) {
  return logits.masked_fill(visible.logical_not(), -INFINITY).log_softmax(-1);
}

class SequenceError {
 public:
  SequenceError(const at::Tensor& keys, const at::Tensor& values, double scale)
      : k_(Heads(keys)), v_(Heads(values)), scale_(scale) {}

  void SetSlice(RowSlice slice) {
    slice_ = std::move(slice);
    logits_ = Logits(k_);
    log_p_ = LogScores(logits_, slice_.visible);
    p_ = log_p_.exp();
    reference_ = Weighted(p_, v_);
  }

  void Add(const at::Tensor& k_stored, const at::Tensor& v_stored, at::Tensor& sums) const {
    const at::Tensor stored_logits = Logits(k_stored);
    const at::Tensor log_windowed =
        LogScores(at::where(slice_.exact, logits_, stored_logits), slice_.visible);
    const at::Tensor kl = Divergence(log_windowed);
    const at::Tensor windowed = log_windowed.exp();
    const at::Tensor error =
        RowEnergy(Weighted(windowed.masked_fill(slice_.exact.logical_not(), 0), v_)
                      .add_(Weighted(windowed.masked_fill(slice_.exact, 0), v_stored))
                      .sub_(reference_));
    const at::Tensor reference = RowEnergy(reference_);
    const at::Tensor log_all = LogScores(stored_logits, slice_.visible);

    sums[kKl].add_(kl.sum());
    sums[kKlBeyond].add_(kl.mul(slice_.beyond).sum());
    sums[kKlMax].copy_(at::maximum(sums[kKlMax], kl.max()));
    sums[kError].add_(error.sum());
    sums[kReference].add_(reference.sum());
    sums[kErrorBeyond].add_(error.mul(slice_.beyond).sum());
    sums[kReferenceBeyond].add_(reference.mul(slice_.beyond).sum());
    sums[kKlAll].add_(Divergence(log_all).sum());
    sums[kErrorAll].add_(RowEnergy(Weighted(log_all.exp(), v_stored).sub_(reference_)).sum());
  }

 private:
  static at::Tensor Heads(const at::Tensor& rows) {
    return rows.permute({1, 0, 2}).to(at::kDouble).contiguous();
  }

  at::Tensor Logits(const at::Tensor& keys) const {
    const int64_t rows = slice_.visible.size(0);
    return slice_.queries.bmm(keys.transpose(1, 2))
        .mul_(scale_)
        .view({keys.size(0), -1, rows, keys.size(1)});
  }
  // scores [num_kv_heads, gqa_ratio, rows, tokens] times values [num_kv_heads, tokens, dv].
  static at::Tensor Weighted(const at::Tensor& scores, const at::Tensor& values) {
    return scores.flatten(1, 2).bmm(values).view(
        {scores.size(0), scores.size(1), scores.size(2), values.size(2)});
  }
  static at::Tensor RowEnergy(const at::Tensor& rows) { return rows.square().sum(-1); }
  // KL(S‖Ŝ) per row in nats as the sum of p (eˣ - 1 - x), x = log p̂ - log p: never negative, free
  // of cancellation, exactly 0 where nothing differs. [num_kv_heads, gqa_ratio, rows]; masked keys
  // carry no probability and count nothing.
  at::Tensor Divergence(const at::Tensor& log_other) const {
    const at::Tensor x = log_other.sub(log_p_).masked_fill_(slice_.visible.logical_not(), 0);
    return p_.mul(x.expm1().sub_(x)).sum(-1);
  }

  at::Tensor k_, v_;  // [num_kv_heads, tokens, dim] float64
  double scale_;
  RowSlice slice_;
  at::Tensor logits_, log_p_, p_, reference_;
};

RowSlice MakeSlice(const HeldOutQueries& queries, int64_t begin, int64_t end, int64_t tokens,
                   const LayerSpec& spec, const CalibrationOptions& options) {
  const int64_t num_kv_heads = spec.attention.num_kv_heads, d = spec.attention.head_dim;
  const at::Tensor row = queries.rows.slice(0, begin, end).unsqueeze(1);  // [rows, 1]
  const at::Tensor key = at::arange(tokens, row.options()).unsqueeze(0);  // [1, tokens]
  const at::Tensor age = row - key;
  RowSlice slice;
  slice.queries = queries.queries.slice(0, begin, end)
                      .to(at::kDouble)
                      .view({end - begin, num_kv_heads, -1, d})
                      .permute({1, 2, 0, 3})
                      .reshape({num_kv_heads, -1, d});
  slice.visible = age.ge(0);
  if (spec.attention.window)
    slice.visible = slice.visible.logical_and(age.lt(*spec.attention.window));
  slice.exact = key.lt(options.sink_tokens).logical_or(age.lt(options.recent_tokens));
  slice.beyond = slice.visible.logical_and(slice.exact.logical_not()).any(-1).to(at::kDouble);
  return slice;
}

// Query rows of a slice: as many as keep its scores within kScoreBytes.
int64_t RowsPerSlice(const LayerSpec& spec, int64_t tokens) {
  return std::max<int64_t>(1, kScoreBytes / (8 * spec.attention.num_q_heads * tokens));
}

}  // namespace

uint64_t AttentionErrorMemory(const LayerSpec& spec, int64_t tokens, int64_t rows,
                              int64_t num_arms) {
  const AttentionSpec& a = spec.attention;
  const int64_t slice = 8 * a.num_q_heads * std::min(rows, RowsPerSlice(spec, tokens)) * tokens;
  const int64_t sides = 8 * a.num_kv_heads * tokens * (a.head_dim + a.v_head_dim);
  return static_cast<uint64_t>(kScoreTensors * slice + (num_arms + 2) * sides);
}

std::vector<ArmResult> MeasureAttentionError(const ObservedLayer& layer, const LayerSpec& spec,
                                             const std::vector<CacheArm>& arms,
                                             const CalibrationOptions& options) {
  if (layer.queries.empty()) return {};
  const auto float64 = layer.keys.at(0).options().dtype(at::kDouble);
  std::vector<at::Tensor> sums;
  for (size_t i = 0; i < arms.size(); ++i) sums.push_back(at::zeros({kNumSums}, float64));
  at::Tensor beyond = at::zeros({}, float64);
  int64_t rows = 0;

  for (const HeldOutQueries& queries : layer.queries) {
    const at::Tensor& keys = layer.keys[static_cast<size_t>(queries.sequence)];
    const at::Tensor& values = layer.values[static_cast<size_t>(queries.sequence)];
    SequenceError error(keys, values, spec.attention.scale);
    std::vector<std::pair<at::Tensor, at::Tensor>> stored;
    for (const CacheArm& arm : arms) {
      stored.emplace_back(StoredRows(keys, *arm.k, arm.k_clip, options.clip.quant_group_size),
                          StoredRows(values, *arm.v, arm.v_clip, options.clip.quant_group_size));
    }
    const int64_t num_rows = queries.rows.size(0), tokens = keys.size(0);
    const int64_t step = RowsPerSlice(spec, tokens);
    for (int64_t begin = 0; begin < num_rows; begin += step) {
      RowSlice slice =
          MakeSlice(queries, begin, std::min(num_rows, begin + step), tokens, spec, options);
      beyond.add_(slice.beyond.sum());
      error.SetSlice(std::move(slice));
      for (size_t i = 0; i < arms.size(); ++i)
        error.Add(stored[i].first, stored[i].second, sums[i]);
    }
    rows += num_rows;
  }

  const auto rows_beyond = static_cast<int64_t>(beyond.item<double>());
  const auto heads = static_cast<double>(spec.attention.num_q_heads);
  std::vector<ArmResult> results;
  for (size_t i = 0; i < arms.size(); ++i) {
    const at::Tensor host = sums[i].cpu();
    const double* sum = host.const_data_ptr<double>();
    const auto ratio = [](double a, double b) { return b > 0 ? a / b : 0; };
    ArmResult arm;
    arm.name = arms[i].name;
    arm.rows = rows;
    arm.rows_beyond = rows_beyond;
    arm.kl_mean = sum[kKl] / (static_cast<double>(rows) * heads);
    arm.kl_mean_beyond = ratio(sum[kKlBeyond], static_cast<double>(rows_beyond) * heads);
    arm.kl_max = sum[kKlMax];
    arm.output_rel_error = std::sqrt(ratio(sum[kError], sum[kReference]));
    arm.output_rel_error_beyond = std::sqrt(ratio(sum[kErrorBeyond], sum[kReferenceBeyond]));
    arm.kl_mean_no_windows = sum[kKlAll] / (static_cast<double>(rows) * heads);
    arm.output_rel_error_no_windows = std::sqrt(ratio(sum[kErrorAll], sum[kReference]));
    results.push_back(arm);
  }
  return results;
}

}  // namespace oscar
