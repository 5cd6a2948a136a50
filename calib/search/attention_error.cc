// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/search/attention_error.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "calib/cache/affine_tensor.h"
#include "calib/cache/row_comparison.h"
#include "calib/cache/side_tensors.h"
#include "calib/search/clip_search.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// Bytes of one slice of scores, which fits a CPU's cache or fills a GPU.
int64_t ScoreBytes(at::DeviceType device) { return (device == at::kCPU ? 16 : 48) << 20; }
// Number of such tensors that exist at once: logits and scores of the reference and of an arm, and
// temporaries; on a CPU also memory that the C library caches.
constexpr int64_t kScoreTensors = 12;

// Rows of the running sums of several caches that share their keys: [kNumNumbers, caches] float64
// on the device. First come the sums that depend only on keys, then those that also depend on
// values. kKlMax is a maximum.
enum Sum {
  kKl,
  kKlBeyond,
  kReference,
  kReferenceBeyond,
  kKlAll,
  kNumKeySums,
  kError = kNumKeySums,
  kErrorBeyond,
  kErrorAll,
  kKlMax,
  kNumNumbers
};

// x̂ of one side in the original basis: [tokens, num_kv_heads, dim] of `type`.
at::Tensor StoredRows(const at::Tensor& rows, const SideResult& side, double clip_ratio,
                      int64_t quant_group_size, at::ScalarType type) {
  const at::Tensor rotation = RotationTensor(side, rows.device());
  const at::Tensor stored =
      QuantizedRows(RotateRows(rows, rotation),
                    {.clip = {clip_ratio}, .quant_group_size = quant_group_size})
          .to(type);
  return at::matmul(stored, rotation.to(type).transpose(1, 2)).permute({1, 0, 2});
}

at::Tensor TokensFirst(const at::Tensor& rows) { return rows.permute({1, 0, 2}); }

bool SameKeys(const CacheArm& a, const CacheArm& b) {
  return a.choice != nullptr && a.choice == b.choice && a.point.k_bits == b.point.k_bits &&
         a.point.k_clip == b.point.k_clip;
}

struct ChoiceOnDevice {
  SidesOnDevice k, v;
};

// Adjacent arms that share their keys.
struct KeySet {
  std::span<const CacheArm> arms;
  bool begins_choice = false;  // the set before has no choice, or another one
  ChoiceOnDevice sides = {};   // for arms with a choice; its sets share them
  at::Tensor sums = {};        // [kNumNumbers, arms]

  const AutoChoice* choice() const { return arms[0].choice; }
};

std::vector<KeySet> KeySetsOf(const std::vector<CacheArm>& arms, at::TensorOptions float64) {
  std::vector<KeySet> sets;
  for (size_t first = 0, end = 0; first < arms.size(); first = end) {
    while (end < arms.size() && (end == first || SameKeys(arms[first], arms[end]))) ++end;
    KeySet set{.arms = std::span(arms).subspan(first, end - first)};
    const AutoChoice* const choice = set.choice();
    set.begins_choice = choice != nullptr && (sets.empty() || sets.back().choice() != choice);
    if (set.begins_choice) {
      set.sides = {OneSide(choice->k, float64.device()), OneSide(choice->v, float64.device())};
    } else if (choice != nullptr) {
      set.sides = sets.back().sides;
    }
    set.sums = at::zeros({kNumNumbers, std::ssize(set.arms)}, float64);
    sets.push_back(std::move(set));
  }
  return sets;
}

// One sequence's sides of a choice, rotated and sorted once for all points where it may end.
class ChoiceRows {
 public:
  // Keeps references to all arguments except the rows.
  ChoiceRows(const RowComparison& comparison, const AutoChoice& choice, const ChoiceOnDevice& sides,
             const at::Tensor& keys, const at::Tensor& values)
      : comparison_(comparison),
        choice_(choice),
        sides_(sides),
        k_(KeysOfOne(sides.k, keys)),
        v_(ValuesOfOne(sides.v, values)),
        k_sorted_(SortedMagnitudes(k_)),
        v_sorted_(SortedMagnitudes(v_)),
        v_exact_(TokensFirst(ValuesBackOfOne(sides.v, v_))) {}

  // Returns the stored rows for those arms of this choice that share their keys.
  RowComparison::Prepared Store(std::span<const CacheArm> arms) {
    std::vector<RowComparison::Prepared> caches;
    for (const CacheArm& arm : arms) caches.push_back(Values(arm.point));
    const at::Tensor k = QuantizedRows(
        k_, choice_.Quantizer(KeysAt(choice_, arms[0].point), /*of_keys=*/true), k_sorted_,
        /*straight_through=*/false, FeedbackOf(sides_.k));
    const RowComparison::Prepared keys =
        comparison_.Prepare({.k_stored = TokensFirst(k), .k = TokensFirst(k_)});
    caches[0].k_stored = keys.k_stored;
    caches[0].k = keys.k;
    return RowComparison::WithValuesOf(caches);
  }

 private:
  const RowComparison::Prepared& Values(const ChoicePoint& point) {
    RowComparison::Prepared& known = values_[{point.v_bits, point.v_clip}];
    if (known.values.defined()) return known;
    const at::Tensor v = QuantizedRows(
        v_, choice_.Quantizer(ValuesAt(choice_, point), /*of_keys=*/false), v_sorted_);
    known =
        comparison_.Prepare({.v_stored = TokensFirst(ValuesBackOfOne(sides_.v, v)), .v = v_exact_});
    return known;
  }

  const RowComparison& comparison_;
  const AutoChoice& choice_;
  const ChoiceOnDevice& sides_;
  at::Tensor k_, v_, k_sorted_, v_sorted_, v_exact_;
  std::map<std::pair<double, double>, RowComparison::Prepared> values_;  // keyed by bits and ratio
};

// Returns what the arms in each set store for one sequence.
std::vector<RowComparison::Prepared> StoreSets(const RowComparison& comparison,
                                               std::span<const KeySet> sets, const at::Tensor& keys,
                                               const at::Tensor& values, int64_t quant_group_size,
                                               at::ScalarType type) {
  std::vector<RowComparison::Prepared> stored;
  std::optional<ChoiceRows> rows;
  for (const KeySet& set : sets) {
    const CacheArm& arm = set.arms[0];
    if (arm.choice == nullptr) {
      stored.push_back(
          comparison.Prepare({StoredRows(keys, *arm.k, arm.k_clip, quant_group_size, type),
                              StoredRows(values, *arm.v, arm.v_clip, quant_group_size, type)}));
      continue;
    }
    if (set.begins_choice) rows.emplace(comparison, *arm.choice, set.sides, keys, values);
    stored.push_back(rows->Store(set.arms));
  }
  return stored;
}

void AddErrors(const RowErrors& windowed, const RowErrors& all, const at::Tensor& reference_sq,
               const at::Tensor& beyond, at::Tensor& sums) {
  const at::Tensor& kl = windowed.kl;
  const at::Tensor of_keys = at::stack(
      {kl, kl.mul(beyond), reference_sq, reference_sq.mul(beyond), all.kl});  // same order as Sum
  const auto by_cache = [&](const at::Tensor& error) {  // [num_kv_heads, gqa_ratio, rows, caches]
    return error.dim() == kl.dim() ? error.unsqueeze(-1) : error;
  };
  const at::Tensor error = by_cache(windowed.output_error_sq);
  const at::Tensor of_values =
      at::stack({error, error.mul(beyond.unsqueeze(1)), by_cache(all.output_error_sq)});
  sums.narrow(0, kKl, kNumKeySums)
      .add_(of_keys.flatten(1).sum(1, /*keepdim=*/false, at::kDouble).unsqueeze(1));
  sums.narrow(0, kError, kKlMax - kError)
      .add_(of_values.flatten(1, 3).sum(1, /*keepdim=*/false, at::kDouble));
  sums[kKlMax].copy_(at::maximum(sums[kKlMax], kl.max()));
}

}  // namespace

at::ScalarType ErrorType(at::DeviceType device) {
  return device == at::kCPU ? at::kFloat : at::kDouble;
}

uint64_t AttentionErrorMemory(const LayerSpec& spec, int64_t tokens, int64_t rows, int64_t num_arms,
                              const ChoiceArms& choice, at::DeviceType device) {
  const AttentionSpec& a = spec.attention;
  const auto element = static_cast<int64_t>(c10::elementSize(ErrorType(device)));
  const int64_t slice = element * a.num_q_heads *
                        std::min(rows, RowsPerSlice(a, tokens, element, ScoreBytes(device))) *
                        tokens;
  // Each arm holds keys, values, and exact minus stored values; one arm also holds temporaries.
  const int64_t of_token = num_arms * (a.head_dim + 2 * a.v_head_dim) +
                           4 * (a.head_dim + a.v_head_dim) +
                           2 * (choice.keys * a.head_dim + choice.points * a.v_head_dim);
  return static_cast<uint64_t>(kScoreTensors * slice +
                               element * a.num_kv_heads * tokens * of_token);
}

std::vector<ArmResult> MeasureAttentionError(const ObservedLayer& layer, const LayerSpec& spec,
                                             const std::vector<CacheArm>& arms,
                                             const CacheWindows& windows, int64_t quant_group_size,
                                             at::ScalarType type) {
  if (layer.queries.empty()) return {};
  const auto float64 = layer.keys.at(0).options().dtype(at::kDouble);
  std::vector<KeySet> sets = KeySetsOf(arms, float64);
  at::Tensor beyond = at::zeros({}, float64);
  const int64_t score_bytes = ScoreBytes(float64.device().type());
  const ExactTokens in_windows = ExactInWindows(windows);
  int64_t rows = 0;

  for (const HeldOutQueries& queries : layer.queries) {
    const at::Tensor& keys = layer.keys[static_cast<size_t>(queries.sequence)];
    const at::Tensor& values = layer.values[static_cast<size_t>(queries.sequence)];
    RowComparison comparison(spec.attention, keys, values, type, RowDetail::kKlAndOutput);
    if (queries.q_pe.defined())
      comparison.SetPositionKeys(layer.k_pe[static_cast<size_t>(queries.sequence)]);
    if (layer.w_uv.defined()) comparison.SetOutputMap(layer.w_uv);
    const std::vector<RowComparison::Prepared> stored =
        StoreSets(comparison, sets, keys, values, quant_group_size, type);
    const int64_t num_rows = queries.rows.size(0);
    const int64_t step = RowsPerSlice(spec.attention, keys.size(0),
                                      static_cast<int64_t>(c10::elementSize(type)), score_bytes);
    for (int64_t begin = 0; begin < num_rows; begin += step) {
      const int64_t end = std::min(num_rows, begin + step);
      const at::Tensor positions = queries.rows.slice(0, begin, end);
      const at::Tensor rows_of_slice = queries.queries.slice(0, begin, end);
      comparison.SetRows(
          {positions, rows_of_slice,
           queries.q_pe.defined() ? queries.q_pe.slice(0, begin, end) : queries.q_pe});
      const at::Tensor slice_beyond = BeyondWindows(positions, windows, spec.attention).to(type);
      beyond.add_(slice_beyond.sum());
      const RowComparison::ExactMasks exact[] = {comparison.MasksOf({in_windows, in_windows}), {}};
      at::Tensor own;  // queries of the choice whose sets these are
      for (size_t i = 0; i < sets.size(); ++i) {
        if (sets[i].choice() == nullptr) own = at::Tensor();
        if (sets[i].begins_choice)
          own = QueriesOfOne(sets[i].sides.k, rows_of_slice, spec.attention.num_kv_heads);
        const std::vector<RowErrors> errors = comparison.Compare(stored[i], own, exact);
        AddErrors(errors[0], errors[1], comparison.reference().output_sq, slice_beyond,
                  sets[i].sums);
      }
    }
    rows += num_rows;
  }

  const auto rows_beyond = static_cast<int64_t>(beyond.item<double>());
  const auto heads = static_cast<double>(spec.attention.num_q_heads);
  std::vector<at::Tensor> of_sets;
  for (const KeySet& set : sets) of_sets.push_back(set.sums);
  const at::Tensor of_arms = at::cat(of_sets, 1).t().cpu().contiguous();
  std::vector<ArmResult> results;
  for (size_t i = 0; i < arms.size(); ++i) {
    const double* sum = of_arms.const_data_ptr<double>() + i * kNumNumbers;
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
