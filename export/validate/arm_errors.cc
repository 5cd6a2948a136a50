// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/arm_errors.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "export/evaluate/position_buckets.h"
#include "export/validate/piece_sums.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

double Ratio(double a, double b) { return b > 0 ? a / b : 0; }

// Returns the sum of all elements, [] float64. Rows of float32 are summed in float32 first, because
// converting a whole cache to float64 would take most of the time.
at::Tensor SumOf(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x.sum() : x.sum(-1).sum(at::kDouble);
}

struct Mean {
  double sum = 0;
  int64_t count = 0;
  void Add(double value) {
    sum += value;
    ++count;
  }
  double value() const { return Ratio(sum, static_cast<double>(count)); }
};

}  // namespace

void ArmErrors::BeginLayer(const LayerSpec& layer) {
  Layer& own = layers_.emplace_back();
  own.layer_id = layer.layer_id;
  own.num_kv_heads = layer.attention.num_kv_heads;
  own.gqa_ratio = layer.attention.gqa_ratio();
  kl_.clear();
  sums_ = cache_sums_ = distances_ = at::Tensor();
}

void ArmErrors::AddRows(const RowErrors& errors, const ReferenceRows& reference,
                        const at::Tensor& headline) {
  const auto float64 = errors.kl.options().dtype(at::kDouble);
  if (!sums_.defined()) sums_ = at::zeros({kNumSums, errors.kl.size(0)}, float64);
  kl_.push_back(errors.kl.flatten(0, 1).to(at::kFloat));
  const at::Tensor& like = errors.kl;
  const at::Tensor rows = at::stack(
      {errors.output_error_sq, reference.output_sq, errors.k_term_sq, errors.v_term_sq,
       errors.logit_error_sq, reference.logit_sq,
       reference.visible_keys.to(like.scalar_type()).expand_as(like)});  // in the order of Sum
  sums_.add_(rows.mul_(headline).sum({2, 3}, /*keepdim=*/false, at::kDouble));
}

void ArmErrors::AddDistances(const DistanceErrors& errors, const at::Tensor& headline) {
  const at::Tensor rows = at::stack({errors.mass, errors.kl});
  const at::Tensor sums = rows.mul(headline.unsqueeze(-1)).sum(at::IntArrayRef{1, 2, 3});
  distances_ = distances_.defined() ? distances_.add_(sums) : sums;
}

CacheEnergy::CacheEnergy(const at::Tensor& keys, const at::Tensor& values)
    : k(SumOf(keys.square())), v(SumOf(values.square())) {}

void ArmErrors::AddCache(const CacheEnergy& energy, const at::Tensor& k, const at::Tensor& k_stored,
                         const at::Tensor& v, const at::Tensor& v_stored) {
  if (!cache_sums_.defined())
    cache_sums_ = at::zeros({kNumCacheSums}, k.options().dtype(at::kDouble));
  const auto error = [](const at::Tensor& x, const at::Tensor& stored) {
    return SumOf(x.sub(stored).square_());
  };
  cache_sums_.add_(at::stack({error(k, k_stored), energy.k, error(v, v_stored), energy.v}));
  layers_.back().k_values += k.numel();
  layers_.back().v_values += v.numel();
}

void ArmErrors::EndLayer() {
  Layer& layer = layers_.back();
  const at::Tensor kl = at::cat(kl_, 1).cpu().contiguous();
  OSCAR_CHECK_EQ(kl.size(1), static_cast<int64_t>(rows_.rows.size()));
  const float* values = kl.const_data_ptr<float>();
  layer.kl.assign(values, values + kl.numel());
  const auto host = [](const at::Tensor& tensor) {
    const at::Tensor copy = tensor.cpu().contiguous();
    const double* data = copy.const_data_ptr<double>();
    return std::vector<double>(data, data + copy.numel());
  };
  layer.sums = host(sums_);
  layer.cache_sums = host(cache_sums_);
  if (distances_.defined()) layer.distances = host(distances_);
  kl_.clear();
  const auto finite = [](double value) { return std::isfinite(value); };
  if (!std::ranges::all_of(layer.kl, finite) || !std::ranges::all_of(layer.sums, finite) ||
      !std::ranges::all_of(layer.distances, finite) ||
      !std::ranges::all_of(layer.cache_sums, finite)) {
    throw NumericalError(fmt::format(
        "layer {}, configuration {}: attention errors are not finite; the model's own queries, "
        "keys or values are NaN or infinite there, or overflow in this compute type",
        layer.layer_id, name_));
  }
}

std::vector<double> ArmErrors::Packed(size_t index) const {
  const Layer& layer = layers_.at(index);
  std::vector<double> packed;
  for (const int64_t count : {int64_t{layer.layer_id}, layer.num_kv_heads, layer.gqa_ratio,
                              layer.k_values, layer.v_values})
    packed.push_back(static_cast<double>(count));
  packed.insert(packed.end(), layer.sums.begin(), layer.sums.end());
  packed.insert(packed.end(), layer.cache_sums.begin(), layer.cache_sums.end());
  packed.insert(packed.end(), layer.kl.begin(), layer.kl.end());
  packed.insert(packed.end(), layer.distances.begin(), layer.distances.end());
  return packed;
}

void ArmErrors::AddPacked(std::span<const double> packed) {
  constexpr size_t kCounts = 5;
  const auto damaged = [&] {
    return InputError(fmt::format("configuration {}: a measured layer was stored as {} numbers, "
                                  "which do not match {} rows",
                                  name_, packed.size(), rows_.rows.size()),
                      Remedy::kStartOver);
  };
  if (packed.size() < kCounts) throw damaged();
  const auto count = [&](size_t i) { return static_cast<int64_t>(packed[i]); };
  Layer layer;
  layer.layer_id = static_cast<int>(count(0));
  layer.num_kv_heads = count(1);
  layer.gqa_ratio = count(2);
  layer.k_values = count(3);
  layer.v_values = count(4);
  const auto heads = static_cast<size_t>(layer.num_kv_heads), sums = kNumSums * heads;
  const size_t kl = heads * static_cast<size_t>(layer.gqa_ratio) * rows_.rows.size();
  constexpr size_t kDistances = 2 * (kDistanceBuckets + 1);
  const size_t least = kCounts + sums + kNumCacheSums + kl;
  if (packed.size() != least && packed.size() != least + kDistances) throw damaged();
  auto next = packed.begin() + kCounts;
  const auto take = [&](auto& values, size_t n) {
    values.assign(next, next + static_cast<std::ptrdiff_t>(n));
    next += static_cast<std::ptrdiff_t>(n);
  };
  take(layer.sums, sums);
  take(layer.cache_sums, kNumCacheSums);
  take(layer.kl, kl);
  take(layer.distances, packed.size() - least);
  layers_.push_back(std::move(layer));
}

std::vector<double> ArmErrors::RowMeans() const {
  const size_t rows = rows_.rows.size();
  std::vector<double> means(rows, 0.0);
  for (const Layer& layer : layers_) {
    const auto heads = static_cast<size_t>(layer.num_kv_heads * layer.gqa_ratio);
    const double weight = 1.0 / static_cast<double>(heads * layers_.size());
    for (size_t head = 0; head < heads; ++head) {
      for (size_t row = 0; row < rows; ++row) means[row] += weight * layer.kl[head * rows + row];
    }
  }
  return means;
}

double ArmErrors::HeadKl(const Layer& layer, int64_t kv_head) const {
  const size_t rows = rows_.rows.size();
  Mean mean;
  for (int64_t head = kv_head * layer.gqa_ratio; head < (kv_head + 1) * layer.gqa_ratio; ++head) {
    for (size_t row = 0; row < rows; ++row) {
      if (rows_.rows[row].headline) mean.Add(layer.kl[static_cast<size_t>(head) * rows + row]);
    }
  }
  return mean.value();
}

Json ArmErrors::Metrics() const {
  const std::vector<MeasuredRow>& rows = rows_.rows;
  const std::vector<double> row_means = RowMeans();
  PieceSums headline;
  Mean all, inside, beyond;
  std::map<int64_t, std::pair<Mean, std::set<int64_t>>> by_length;  // mean, and ids of sequences
  int64_t longest = 0;
  for (const MeasuredRow& row : rows) longest = std::max(longest, row.length);
  const std::vector<PositionBucket> buckets =
      MakePositionBuckets(longest, rows_.windows.sink, rows_.windows.recent);
  std::vector<Mean> in_bucket(buckets.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const MeasuredRow& row = rows[i];
    const double kl = row_means[i];
    all.Add(kl);
    (InsideWindows(row.position, rows_.windows.sink, rows_.windows.recent) ? inside : beyond)
        .Add(kl);
    in_bucket[BucketOf(buckets, row.position)].Add(kl);
    if (!row.headline) continue;
    headline.Add(row.sequence, row.position, row.length, kl);
    auto& [mean, sequences] = by_length[row.length];
    mean.Add(kl);
    sequences.insert(row.sequence);
  }

  std::vector<float> samples;  // headline rows of all heads and layers
  for (const Layer& layer : layers_) {
    for (size_t i = 0; i < layer.kl.size(); ++i) {
      if (rows[i % rows.size()].headline) samples.push_back(layer.kl[i]);
    }
  }
  measures::AttentionErrors errors;
  errors.rows = headline.count();
  errors.kl = KlOf(headline, std::move(samples), rows_.resamples, rows_.seed);
  errors.kl_all = all.value();
  errors.inside_windows = {inside.count, inside.value()};
  errors.beyond_windows = {beyond.count, beyond.value()};
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (in_bucket[i].count == 0) continue;
    errors.by_position.push_back({buckets[i].from, buckets[i].to, in_bucket[i].count,
                                  in_bucket[i].value(), buckets[i].inside_windows});
  }
  for (const auto& [length, entry] : by_length)
    errors.by_length.push_back({length, std::ssize(entry.second), entry.first.value()});
  AddHeads(errors);
  AddErrors(errors);
  Json metrics = errors;
  metrics[kPieces] = headline.ToJson();
  return metrics;
}

void ArmErrors::AddHeads(measures::AttentionErrors& errors) const {
  errors.heads.output_rel_error.emplace();
  for (const Layer& layer : layers_) {
    std::vector<double> layer_kl, layer_output;
    for (int64_t head = 0; head < layer.num_kv_heads; ++head) {
      const double value = HeadKl(layer, head);
      layer_kl.push_back(value);
      const auto sum = [&](Sum which) {
        return layer.sums[static_cast<size_t>(which * layer.num_kv_heads + head)];
      };
      layer_output.push_back(std::sqrt(Ratio(sum(kOutputError), sum(kOutput))));
      if (value > errors.worst.kl) errors.worst = {layer.layer_id, head, value};
    }
    errors.heads.layer_ids.push_back(layer.layer_id);
    errors.heads.kl.push_back(std::move(layer_kl));
    errors.heads.output_rel_error->push_back(std::move(layer_output));
  }
}

void ArmErrors::AddErrors(measures::AttentionErrors& errors) const {
  double sums[kNumSums] = {}, cache[kNumCacheSums] = {};
  double k_values = 0, v_values = 0;
  for (const Layer& layer : layers_) {
    for (int which = 0; which < kNumSums; ++which) {
      for (int64_t head = 0; head < layer.num_kv_heads; ++head)
        sums[which] += layer.sums[static_cast<size_t>(which * layer.num_kv_heads + head)];
    }
    for (int which = 0; which < kNumCacheSums; ++which)
      cache[which] += layer.cache_sums[static_cast<size_t>(which)];
    k_values += static_cast<double>(layer.k_values);
    v_values += static_cast<double>(layer.v_values);
  }
  errors.output_rel_error = std::sqrt(Ratio(sums[kOutputError], sums[kOutput]));
  errors.k_term = std::sqrt(Ratio(sums[kKTerm], sums[kOutput]));
  errors.v_term = std::sqrt(Ratio(sums[kVTerm], sums[kOutput]));
  errors.logit_mse = Ratio(sums[kLogitError], sums[kPairs]);
  errors.logit_rel_error = std::sqrt(Ratio(sums[kLogitError], sums[kLogit]));
  errors.k_mse = Ratio(cache[kKError], k_values);
  errors.v_mse = Ratio(cache[kVError], v_values);
  errors.k_rel_error = std::sqrt(Ratio(cache[kKError], cache[kKEnergy]));
  errors.v_rel_error = std::sqrt(Ratio(cache[kVError], cache[kVEnergy]));
}

std::optional<measures::ByDistance> ArmErrors::ByDistance() const {
  constexpr size_t kColumns = kDistanceBuckets + 1;
  std::vector<double> means(2 * kColumns, 0.0);
  int64_t rows = 0, longest = 0;
  for (const MeasuredRow& row : rows_.rows) {
    rows += row.headline ? 1 : 0;
    longest = std::max(longest, row.length);
  }
  for (const Layer& layer : layers_) {
    if (layer.distances.empty()) return std::nullopt;
    const auto count = static_cast<double>(rows * layer.num_kv_heads * layer.gqa_ratio *
                                           static_cast<int64_t>(layers_.size()));
    for (size_t i = 0; i < means.size(); ++i) means[i] += Ratio(layer.distances[i], count);
  }
  const auto entry = [&](std::optional<int64_t> from, std::optional<int64_t> to, size_t column) {
    return measures::Distance{from, to, means[column], means[kColumns + column]};
  };
  measures::ByDistance by_distance;
  for (int bucket = 0; bucket < kDistanceBuckets && DistanceFrom(bucket) < longest; ++bucket) {
    const bool last = bucket + 1 == kDistanceBuckets;
    by_distance.buckets.push_back(
        entry(DistanceFrom(bucket), last ? std::nullopt : std::optional(DistanceFrom(bucket + 1)),
              static_cast<size_t>(bucket)));
  }
  if (means[kDistanceBuckets] > 0)
    by_distance.attention_sinks = entry(std::nullopt, std::nullopt, kDistanceBuckets);
  return by_distance;
}

}  // namespace oscar
