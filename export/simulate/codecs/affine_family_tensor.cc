// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every operation rounds separately, as in the scalar code. Fusing or reordering changes codes.
#include "export/simulate/codecs/affine_family_tensor.h"

#include <ATen/ATen.h>

#include "linalg/affine_group.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// The ends of the range of each group, [..., 1].
struct Ends {
  at::Tensor lo, hi;
};

Ends EndsOf(const at::Tensor& groups, const AffineRule& rule) {
  Ends ends = {groups.amin(-1, true), groups.amax(-1, true)};
  if (rule.include_zero) ends = {ends.lo.clamp_max(0), ends.hi.clamp_min(0)};
  if (rule.clip_ratio != 1) ends = {ends.lo.mul(rule.clip_ratio), ends.hi.mul(rule.clip_ratio)};
  if (rule.family == AffineFamily::kIntegerZero || rule.family == AffineFamily::kFusedZero) {
    const at::Tensor zeros = ends.lo.eq(0).logical_and_(ends.hi.eq(0));
    ends = {ends.lo.masked_fill(zeros, -1), ends.hi.masked_fill(zeros, 1)};
  }
  return ends;
}

AffineFamilyCodes EncodeRealZero(const at::Tensor& x, const AffineRule& rule) {
  const at::Tensor lo = x.amin(-1, true), hi = x.amax(-1, true);
  const at::Tensor scale = DividedBy((hi - lo).clamp_min(kMinAffineRange), MaxCode(rule.bits));
  const at::Tensor zero = lo.neg().div(scale);
  return {x.div(scale).add_(zero).add_(0.5f).trunc_(), scale, zero};
}

AffineFamilyCodes EncodeWithEnds(const at::Tensor& x, const AffineRule& rule) {
  const auto [lo, hi] = EndsOf(x, rule);
  const at::Tensor range = (hi - lo).clamp_min(rule.min_range);
  const int64_t steps = rule.divisor == 0 ? MaxCode(rule.bits) : rule.divisor;
  const at::Tensor scale = DividedBy(range, steps).clamp_min(rule.min_scale);
  const at::Tensor empty = scale.eq(0);
  const at::Tensor divisor = scale.masked_fill(empty, 1);
  if (rule.family == AffineFamily::kMinOffset) {
    at::Tensor codes = x.sub(lo).div_(divisor);
    codes = rule.rounding == CodeRounding::kHalfEven ? codes.round_() : codes.add_(0.5f).floor_();
    return {codes.masked_fill_(empty, 0), scale, lo};
  }
  const at::Tensor zero = lo.neg().div(divisor).round_();
  if (rule.family == AffineFamily::kIntegerZero) {
    return {x.div(divisor).round_().add_(zero).masked_fill_(empty, 0), at::where(empty, lo, scale),
            zero.masked_fill(empty, -1)};
  }
  OSCAR_CHECK(rule.family == AffineFamily::kFusedZero);
  return {x.div(divisor).add_(zero).round_().masked_fill_(empty, 0), scale,
          at::where(empty, lo, zero.neg().mul_(scale))};
}

AffineFamilyCodes EncodeUnbounded(const at::Tensor& x, const AffineRule& rule) {
  if (rule.family == AffineFamily::kRealZero) return EncodeRealZero(x, rule);
  return EncodeWithEnds(x, rule);
}

}  // namespace

AffineFamilyCodes EncodeAffineFamily(const at::Tensor& groups, const AffineRule& rule) {
  OSCAR_CHECK(groups.scalar_type() == at::kFloat || groups.scalar_type() == at::kDouble);
  AffineFamilyCodes encoded = EncodeUnbounded(groups, rule);
  encoded.codes.clamp_(0, MaxCode(rule.bits)).abs_();  // avoids -0
  encoded.scales = RoundTo(encoded.scales, rule.metadata);
  encoded.offsets = RoundTo(encoded.offsets, rule.metadata);
  return encoded;
}

at::Tensor DecodeAffineFamily(const AffineFamilyCodes& encoded, const AffineRule& rule) {
  switch (rule.family) {
    case AffineFamily::kRealZero:
    case AffineFamily::kIntegerZero:
      return encoded.codes.sub(encoded.offsets).mul_(encoded.scales);
    case AffineFamily::kMinOffset:
    case AffineFamily::kFusedZero:
      return encoded.codes.mul(encoded.scales).add_(encoded.offsets);
  }
  OSCAR_CHECK(!"an AffineFamily without a value");
  return {};
}

at::Tensor AffineFamilyRoundTrip(const at::Tensor& rows, const AffineRule& rule,
                                 int64_t quant_group_size) {
  OSCAR_CHECK_EQ(rows.size(-1) % quant_group_size, 0);
  auto shape = rows.sizes().vec();
  shape.back() /= quant_group_size;
  shape.push_back(quant_group_size);
  return DecodeAffineFamily(EncodeAffineFamily(rows.reshape(shape), rule), rule)
      .reshape(rows.sizes());
}

at::Tensor RoundTo(const at::Tensor& x, StoredFloat type) {
  if (type == StoredFloat::kFloat32) return x;
  const bool half = type == StoredFloat::kFloat16;
  const double max = half ? kMaxFloat16 : kMaxBFloat16;
  return x.to(at::kFloat).clamp(-max, max).to(half ? at::kHalf : at::kBFloat16).to(x.scalar_type());
}

at::Tensor TreeSum(const at::Tensor& x, int64_t dim) {
  int64_t count = x.size(dim);
  OSCAR_CHECK_LT(0, count);
  at::Tensor sums = x.clone();
  while (count > 1) {
    const int64_t half = (count + 1) / 2;
    sums.narrow(dim, 0, count - half).add_(sums.narrow(dim, half, count - half));
    count = half;
  }
  return sums.narrow(dim, 0, 1);
}

at::Tensor DividedBy(const at::Tensor& x, int64_t divisor) {
  return x.div(at::full({}, divisor, x.options()));
}

at::Tensor RoundedSqrt(const at::Tensor& x) { return x.to(at::kDouble).sqrt().to(x.scalar_type()); }

at::Tensor RoundedExp(const at::Tensor& x) { return x.to(at::kDouble).exp().to(x.scalar_type()); }

at::Tensor RoundedLog(const at::Tensor& x) { return x.to(at::kDouble).log().to(x.scalar_type()); }

}  // namespace oscar
