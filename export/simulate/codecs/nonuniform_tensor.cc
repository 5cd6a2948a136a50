// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every operation rounds separately, as in the scalar code. Fusing or reordering changes values.
#include "export/simulate/codecs/nonuniform_tensor.h"

#include <ATen/ATen.h>

#include "linalg/affine_group.h"  // MaxCode
#include "linalg/quantile.h"

namespace oscar {
namespace {

struct OffsetAndHalf {
  at::Tensor offset, half;
};

OffsetAndHalf Center(const TensorRange& range) {
  // Halving is exact, so multiplying by 0.5 equals dividing by 2.
  return {range.high.add(range.low).mul(0.5), range.high.sub(range.low).mul(0.5)};
}

at::Tensor OneOfSorted(const at::Tensor& sorted, double q, int64_t dim) {
  const QuantileRank rank = RankOfQuantile(q, sorted.size(dim));
  const at::Tensor a = sorted.narrow(dim, rank.lower, 1);
  if (rank.fraction == 0) return a;
  const at::Tensor fraction = at::full({}, rank.fraction, sorted.options());
  return a.add(sorted.narrow(dim, rank.lower + 1, 1).sub(a).mul(fraction));
}

TensorRange RangeOfSorted(const at::Tensor& sorted, double kept, int64_t dim) {
  const KeptQuantiles quantiles = QuantilesKeeping(kept);
  return {OneOfSorted(sorted, quantiles.low, dim), OneOfSorted(sorted, quantiles.high, dim)};
}

// Divisors are tensors, because a GPU would multiply by the reciprocal of a scalar divisor.
at::Tensor UniformValues(const at::Tensor& y, const TensorRange& range,
                         const NonuniformFormat& format) {
  const int max_code = MaxCode(format.bits);
  const at::Tensor a = at::full({}, max_code, y.options()).div(range.high.sub(range.low));
  at::Tensor z = range.low.mul(a);
  if (format.integer_offset) z = z.round().clamp(-max_code, 0).add(0);
  return y.mul(a).sub_(z).round_().clamp_(0, max_code).add_(0).add_(z).div_(a);
}

// Returns the minimum and maximum of each token. Adding 0 turns -0 into 0, because the minimum of
// -0 and 0 may be either.
TensorRange Extremes(const at::Tensor& y) {
  return {y.amin(1, true).add_(0), y.amax(1, true).add_(0)};
}

at::Tensor Values(const at::Tensor& y, const TensorRange& range, const NonuniformFormat& format) {
  at::Tensor values;
  if (format.uniform()) {
    values = UniformValues(y, range, format);
  } else {
    const OffsetAndHalf center = Center(range);
    values = NearestLevels(Normalized(y, range), format, true).mul_(center.half);
    values.add_(center.offset);
  }
  return values.nan_to_num_(0, 0, 0);
}

}  // namespace

TensorRange QuantileRange(const at::Tensor& values, double kept, int64_t dim) {
  return RangeOfSorted(std::get<0>(values.sort(dim)), kept, dim);
}

at::Tensor Normalized(const at::Tensor& y, const TensorRange& range) {
  const OffsetAndHalf center = Center(range);
  return y.sub(center.offset).div_(center.half);
}

at::Tensor NearestLevels(const at::Tensor& u, const NonuniformFormat& format, bool read_back) {
  const std::vector<float>& values = read_back ? format.values : format.levels;
  at::Tensor least = u.sub(format.levels[0]).abs_();
  at::Tensor nearest = at::full_like(u, values[0]);
  for (size_t i = 1; i < format.levels.size(); ++i) {
    const at::Tensor distance = u.sub(format.levels[i]).abs_();
    const at::Tensor nearer = distance.lt(least);
    nearest.masked_fill_(nearer, values[i]);
    least = at::where(nearer, distance, least);
  }
  return nearest;
}

at::Tensor RoundTripChannels(const at::Tensor& y, const TensorRange& range,
                             const NonuniformFormat& format, bool keep_outliers) {
  const at::Tensor values = Values(y, range, format);
  if (!keep_outliers) return values;
  return at::where(y.gt(range.high).logical_or_(y.lt(range.low)), y, values);
}

at::Tensor RoundTripTokens(const at::Tensor& y, double kept, const NonuniformFormat& format) {
  if (kept >= 1) return Values(y, Extremes(y), format);
  const at::Tensor sorted = std::get<0>(y.sort(1));
  const TensorRange thresholds = RangeOfSorted(sorted, kept, 1);
  const at::Tensor outlier = y.ge(thresholds.high).logical_or_(y.le(thresholds.low));
  const at::Tensor inside = at::where(outlier, sorted.narrow(1, (y.size(1) - 1) / 2, 1), y);
  return at::where(outlier, y, Values(y, Extremes(inside), format));
}

}  // namespace oscar
