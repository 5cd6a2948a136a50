// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/search/attention_error.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "calib/cache/affine_tensor.h"
#include "calib/cache/row_comparison.h"
#include "calib/search/choice_cache.h"
#include "calib/search/clip_search.h"
#include "linalg/check.h"

namespace oscar {
namespace {

// Of one float64 score slice: fits a CPU's cache, fills a GPU.
int64_t ScoreBytes(at::DeviceType device) { return (device == at::kCPU ? 16 : 48) << 20; }
// Tensors of that size alive at once: reference logits and scores, those of an arm, temporaries; on
// a CPU also what the C library keeps between them.
int64_t ScoreTensors(at::DeviceType device) { return device == at::kCPU ? 14 : 12; }

// Running sums of one arm, one device float64 tensor; kKlMax is a maximum.
enum Sum {
  kKl,
  kKlBeyond,
  kError,
  kReference,
  kErrorBeyond,
  kReferenceBeyond,
  kKlAll,
  kErrorAll,
  kNumSums,
  kKlMax = kNumSums,
  kNumNumbers
};

// x̂ of one side in the original basis: [tokens, num_kv_heads, dim] float64.
at::Tensor StoredRows(const at::Tensor& rows, const SideResult& side, double clip_ratio,
                      int64_t quant_group_size) {
  const at::Tensor rotation = RotationTensor(side, rows);
  const at::Tensor y = RotateRows(rows, rotation);
  at::Tensor thresholds;
  if (clip_ratio > 0) thresholds = ClipThresholds(std::get<0>(y.abs().sort(-1)), clip_ratio);
  const int64_t group = quant_group_size == 0 ? side.dim : quant_group_size;
  const at::Tensor stored = AffineRoundTrip(y, thresholds, group).to(at::kDouble);
  return at::matmul(stored, rotation.to(at::kDouble).transpose(1, 2)).permute({1, 0, 2});
}

at::Tensor TokensFirst(const at::Tensor& rows) { return rows.permute({1, 0, 2}); }

bool SameKeys(const CacheArm& a, const CacheArm& b) {
  return a.choice != nullptr && a.choice == b.choice && a.point.k_bits == b.point.k_bits &&
         a.point.k_clip == b.point.k_clip;
}

// Past the last arm with the keys of the first.
size_t EndOfKeys(const std::vector<CacheArm>& arms, size_t first) {
  size_t end = first + 1;
  while (end < arms.size() && SameKeys(arms[first], arms[end])) ++end;
  return end;
}

struct ChoiceOnDevice {
  SidesOnDevice k, v;
};

// Of arms with a choice; those of one choice share them.
std::vector<ChoiceOnDevice> SidesOf(const std::vector<CacheArm>& arms, at::Device device) {
  std::vector<ChoiceOnDevice> sides(arms.size());
  for (size_t i = 0; i < arms.size(); ++i) {
    const AutoChoice* choice = arms[i].choice;
    if (choice == nullptr) continue;
    sides[i] = i > 0 && arms[i - 1].choice == choice
                   ? sides[i - 1]
                   : ChoiceOnDevice{OneSide(choice->k, device), OneSide(choice->v, device)};
  }
  return sides;
}

// What an arm's attention reads of one sequence; without keys where the arm before has them.
StoredCache Store(const CacheArm& arm, const ChoiceOnDevice& sides, bool with_keys,
                  const at::Tensor& keys, const at::Tensor& values, int64_t quant_group_size) {
  if (arm.choice == nullptr) {
    return {StoredRows(keys, *arm.k, arm.k_clip, quant_group_size),
            StoredRows(values, *arm.v, arm.v_clip, quant_group_size),
            {},
            {}};
  }
  const AutoChoice& choice = *arm.choice;
  const auto quantized = [&](const at::Tensor& rows, const SideOption& option) {
    return AutoQuantized(rows, SortedMagnitudes(rows), option.Bits(), option.clip,
                         choice.quant_group_size);
  };
  const at::Tensor v = ValuesOfOne(sides.v, values);
  StoredCache stored{
      {},
      TokensFirst(ValuesBackOfOne(sides.v, quantized(v, ValuesAt(choice, arm.point)))),
      {},
      TokensFirst(ValuesBackOfOne(sides.v, v))};
  if (with_keys) {
    const at::Tensor k = KeysOfOne(sides.k, keys);
    stored.k_stored = TokensFirst(quantized(k, KeysAt(choice, arm.point)));
    stored.k = TokensFirst(k);
  }
  return stored;
}

void AddErrors(const RowErrors& windowed, const RowErrors& all, const at::Tensor& reference_sq,
               const at::Tensor& beyond, at::Tensor& sums) {
  const at::Tensor& kl = windowed.kl;
  const at::Tensor& error = windowed.output_error_sq;
  const at::Tensor rows =
      at::stack({kl, kl.mul(beyond), error, reference_sq, error.mul(beyond),
                 reference_sq.mul(beyond), all.kl, all.output_error_sq});  // in the order of Sum
  sums.narrow(0, 0, kNumSums).add_(rows.flatten(1).sum(1));
  sums[kKlMax].copy_(at::maximum(sums[kKlMax], kl.max()));
}

}  // namespace

uint64_t AttentionErrorMemory(const LayerSpec& spec, int64_t tokens, int64_t rows, int64_t num_arms,
                              const ChoiceArms& choice, at::DeviceType device) {
  const AttentionSpec& a = spec.attention;
  const int64_t slice =
      8 * a.num_q_heads * std::min(rows, RowsPerSlice(a, tokens, 8, ScoreBytes(device))) * tokens;
  // Of an arm keys, values, and exact minus stored values; of one arm also what storing makes.
  const int64_t of_token = num_arms * (a.head_dim + 2 * a.v_head_dim) +
                           4 * (a.head_dim + a.v_head_dim) +
                           2 * (choice.keys * a.head_dim + choice.points * a.v_head_dim);
  return static_cast<uint64_t>(ScoreTensors(device) * slice +
                               8 * a.num_kv_heads * tokens * of_token);
}

std::vector<ArmResult> MeasureAttentionError(const ObservedLayer& layer, const LayerSpec& spec,
                                             const std::vector<CacheArm>& arms,
                                             const CalibrationOptions& options) {
  if (layer.queries.empty()) return {};
  const auto float64 = layer.keys.at(0).options().dtype(at::kDouble);
  std::vector<at::Tensor> sums;
  for (size_t i = 0; i < arms.size(); ++i) sums.push_back(at::zeros({kNumNumbers}, float64));
  at::Tensor beyond = at::zeros({}, float64);
  const int64_t score_bytes = ScoreBytes(float64.device().type());
  const CacheWindows windows{options.sink_tokens, options.recent_tokens};
  const ExactTokens in_windows = ExactInWindows(windows);
  const ExactSides exact[] = {{in_windows, in_windows}, {}};
  int64_t rows = 0;
  const std::vector<ChoiceOnDevice> sides = SidesOf(arms, float64.device());

  for (const HeldOutQueries& queries : layer.queries) {
    const at::Tensor& keys = layer.keys[static_cast<size_t>(queries.sequence)];
    const at::Tensor& values = layer.values[static_cast<size_t>(queries.sequence)];
    RowComparison comparison(spec.attention, keys, values, at::kDouble, RowDetail::kKlAndOutput);
    if (queries.q_pe.defined())
      comparison.SetPositionKeys(layer.k_pe[static_cast<size_t>(queries.sequence)]);
    if (layer.w_uv.defined()) comparison.SetOutputMap(layer.w_uv);
    std::vector<RowComparison::Prepared> stored;
    for (size_t i = 0; i < arms.size(); ++i) {
      const bool with_keys = i == 0 || !SameKeys(arms[i - 1], arms[i]);
      stored.push_back(comparison.Prepare(
          Store(arms[i], sides[i], with_keys, keys, values, options.clip.quant_group_size)));
    }
    const int64_t num_rows = queries.rows.size(0);
    const int64_t step = RowsPerSlice(spec.attention, keys.size(0), 8, score_bytes);
    for (int64_t begin = 0; begin < num_rows; begin += step) {
      const int64_t end = std::min(num_rows, begin + step);
      const at::Tensor positions = queries.rows.slice(0, begin, end);
      const at::Tensor rows_of_slice = queries.queries.slice(0, begin, end);
      comparison.SetRows(
          {positions, rows_of_slice,
           queries.q_pe.defined() ? queries.q_pe.slice(0, begin, end) : queries.q_pe});
      const at::Tensor slice_beyond =
          BeyondWindows(positions, windows, spec.attention).to(at::kDouble);
      beyond.add_(slice_beyond.sum());
      for (size_t i = 0; i < arms.size();) {
        at::Tensor own;
        if (arms[i].choice != nullptr)
          own = QueriesOfOne(sides[i].k, rows_of_slice, spec.attention.num_kv_heads);
        const size_t count = EndOfKeys(arms, i) - i;
        const auto errors =
            comparison.CompareValues(std::span(stored).subspan(i, count), own, exact);
        for (const std::vector<RowErrors>& of_arm : errors)
          AddErrors(of_arm[0], of_arm[1], comparison.output_sq(), slice_beyond, sums[i++]);
      }
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
