// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every operation rounds separately, as in the scalar code. Fusing or reordering changes codes.
#include "export/simulate/runtime_rows.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "calib/cache/affine_tensor.h"
#include "export/simulate/codecs/affine_family_tensor.h"  // TreeSum, RoundTo
#include "export/simulate/codecs/lloyd_max_tensor.h"
#include "linalg/base/check.h"
#include "linalg/llama_q2_codec.h"
#include "linalg/percentile_clip.h"

namespace oscar {
namespace {

at::Tensor Bisect(const at::Tensor& magnitudes, double ratio) {
  const int64_t dim = magnitudes.size(-1);
  const std::optional<int64_t> index = ClipIndex(ratio, dim);
  if (!index) return {};
  const int steps = std::bit_width(static_cast<uint64_t>(dim - 1));
  at::Tensor high = magnitudes.amax(-1, true), low = at::zeros_like(high);
  for (int step = 0; step < steps; ++step) {
    const at::Tensor middle = low.add(high).mul_(0.5f);
    const at::Tensor too_many = magnitudes.gt(middle).sum(-1, true).gt(dim - *index);
    low = at::where(too_many, middle, low);
    high = at::where(too_many, high, middle);
  }
  return high;
}

at::Tensor Interpolate(const at::Tensor& sorted, double ratio) {
  if (ratio <= 0) return {};
  const int64_t dim = sorted.size(-1);
  const float rank = std::min(static_cast<float>(ratio), 1.0F) * static_cast<float>(dim - 1);
  const auto below = static_cast<int64_t>(rank);
  const float weight = rank - std::floor(rank);
  const at::Tensor a = sorted.narrow(-1, below, 1);
  const at::Tensor b = sorted.narrow(-1, std::min(below + 1, dim - 1), 1);
  const at::Tensor step = b.sub(a);
  return weight < 0.5F ? a.add(step.mul(weight)) : b.sub(step.mul(1.0F - weight));
}

at::Tensor Halves(const at::Tensor& x) { return RoundTo(x, StoredFloat::kFloat16); }

// Quantizes as vLLM's pull request 46774: scale = half(max((max - min) / 3, 1e-8)) and min =
// half(min x) are rounded before they are used to make codes.
at::Tensor HalfOffset(const at::Tensor& x) {
  const at::Tensor lo = x.amin(-1, true);
  const at::Tensor three = at::full({}, 3.0f, x.options());
  const at::Tensor scale = Halves(x.amax(-1, true).sub(lo).div(three).clamp_min(1e-8f));
  const at::Tensor min = Halves(lo);
  at::Tensor codes = x.sub(min).div(scale).add_(0.5f).trunc_().clamp_(0, 3);
  codes = at::where(scale.eq(0), at::zeros_like(codes), codes);
  return codes.mul_(scale).add_(min);
}

// Implements linalg/llama_q2_codec.h.
at::Tensor LlamaQ2(const at::Tensor& rows, double clip_ratio) {
  const int64_t size = LlamaQ2GroupSize(rows.size(-1));
  const LloydMaxTable& table = LloydMaxTableOf(LloydMaxForm::kLlamaCpp);
  const at::Tensor x = rows.unflatten(-1, {-1, size});
  const at::Tensor mean = DividedBy(TreeSum(x, -1), size);
  at::Tensor rest = x.sub(mean);
  if (clip_ratio > 0 && clip_ratio < 1)
    rest = Clamped(rest, RowThresholds(rest, clip_ratio, ClipVariant::kSort));
  rest = rest.unflatten(-1, {-1, kLlamaQ2SigmaValues});  // [..., groups, blocks, 32]
  const at::Tensor sigma = RoundedSqrt(DividedBy(TreeSum(rest.mul(rest), -1), kLlamaQ2SigmaValues));
  const at::Tensor inverse = sigma.reciprocal().masked_fill_(sigma.gt(1e-8f).logical_not_(), 0);
  const auto vector = [&](const auto& values) {
    return at::tensor(at::ArrayRef<double>(values.data(), values.size()), rows.options());
  };
  const at::Tensor codes =
      at::bucketize(rest.mul(inverse), vector(table.thresholds), false, /*right=*/true);
  return vector(table.levels)
      .take(codes)
      .mul_(Halves(sigma))
      .add_(Halves(mean.unsqueeze(-1)))
      .reshape(rows.sizes());
}

}  // namespace

at::Tensor RowThresholds(const at::Tensor& rows, double ratio, ClipVariant variant) {
  OSCAR_CHECK(rows.scalar_type() == at::kFloat ||
              (rows.scalar_type() == at::kDouble && variant != ClipVariant::kInterpolate));
  const at::Tensor magnitudes = rows.abs();
  if (variant == ClipVariant::kBisect && rows.size(-1) >= kMinBisectDim)
    return Bisect(magnitudes, ratio);
  const at::Tensor sorted = std::get<0>(magnitudes.sort(-1));
  return variant == ClipVariant::kInterpolate ? Interpolate(sorted, ratio)
                                              : ClipThresholds(sorted, ratio);
}

at::Tensor WriteAndRead(const RowWriter& writer, const at::Tensor& rows, double clip_ratio,
                        int64_t quant_group_size) {
  if (writer.codec == RowCodec::kLlamaQ2) return LlamaQ2(rows, clip_ratio);
  const at::Tensor thresholds = RowThresholds(rows, clip_ratio, writer.clip);
  if (writer.codec == RowCodec::kHalfOffset) return HalfOffset(Clamped(rows, thresholds));
  // The kernel has Lloyd-Max levels only for clipped rows of one group.
  if (writer.codec == RowCodec::kLloydMax && thresholds.defined() &&
      quant_group_size == rows.size(-1)) {
    return LloydMaxRoundTrip(Clamped(rows, thresholds), LloydMaxForm::kServing);
  }
  return AffineRoundTrip(rows, thresholds, {2, quant_group_size});
}

}  // namespace oscar
