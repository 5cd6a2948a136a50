// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every line rounds once. Fusing or reordering operations would change codes.
#include "calib/cache/affine_tensor.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "calib/cache/cache_kernels.h"
#include "linalg/affine_group.h"
#include "linalg/affine_metadata.h"
#include "linalg/base/check.h"
#include "linalg/feedback_codec.h"
#include "linalg/percentile_clip.h"
#include "linalg/scale_fit.h"

namespace oscar {
namespace {

// Scales and zeros, [..., groups, 1] each, for values [..., groups, quant_group_size].
struct AffineGroups {
  at::Tensor scale, zero;
};

AffineGroups FitRange(const at::Tensor& x, int max_code, MetadataType type) {
  const bool with_zero = type == MetadataType::kByte;
  const at::Tensor lo = with_zero ? x.amin(-1, true).clamp_max(0) : x.amin(-1, true);
  const at::Tensor hi = with_zero ? x.amax(-1, true).clamp_min(0) : x.amax(-1, true);
  // The divisor is a tensor, because LibTorch multiplies by the reciprocal of a scalar divisor.
  const at::Tensor divisor = at::full({}, max_code, x.options());
  const at::Tensor scale = (hi - lo).clamp_min(kMinAffineRange).div(divisor);
  return {scale, lo.neg().div(scale)};
}

// Returns each value's position on the scale of codes.
at::Tensor Places(const at::Tensor& x, const AffineGroups& affine) {
  return x.div(affine.scale).add_(affine.zero);
}

at::Tensor CodesAt(const at::Tensor& places, int max_code) {
  // Clamps first, because trunc would give -0 for values just below 0.
  return places.add(0.5f).clamp_(0, max_code).trunc_();
}

at::Tensor Codes(const at::Tensor& x, const AffineGroups& affine, int max_code) {
  return CodesAt(Places(x, affine), max_code);
}

// One step of linalg/scale_fit.h: least squares, or else the unbiased fit.
AffineGroups Refitted(const at::Tensor& x, const AffineGroups& affine, int bits,
                      bool least_squares) {
  const int max_code = MaxCode(bits), steps = ScaleSteps(bits);
  const double middle = max_code / 2.0;
  const at::Tensor places = Places(x, affine), c = CodesAt(places, max_code);
  const at::Tensor q =
      places.sub(middle).mul_(steps).clamp_(-kMaxScaleSteps, kMaxScaleSteps).round_();
  // These are integers below 2^24, so the sum is exact in either type.
  const auto sum = [](const at::Tensor& t) { return t.sum(-1, true).to(at::kDouble); };
  const double n = static_cast<double>(x.size(-1));
  const at::Tensor c_sum = sum(c), q_sum = sum(q),
                   cov = sum(c.mul(q)).mul_(n).sub_(c_sum.mul(q_sum));
  const auto var = [&](const at::Tensor& t, const at::Tensor& sum_of_t) {
    return sum(t.square()).mul_(n).sub_(sum_of_t.square()).to(x.scalar_type());
  };
  const at::Tensor slope = (least_squares ? cov.to(x.scalar_type()).div(var(c, c_sum))
                                          : var(q, q_sum).div(cov.to(x.scalar_type())))
                               .div_(steps);
  const at::Tensor count = at::full({}, n, x.options());
  const at::Tensor mean = q_sum.to(x.scalar_type()).div_(count).div_(steps).add_(middle);
  const at::Tensor at_zero = mean.sub_(c_sum.to(x.scalar_type()).div_(count).mul_(slope));
  const at::Tensor fits = cov.gt(0);
  return {at::where(fits, affine.scale.mul(slope), affine.scale),
          at::where(fits, affine.zero.sub(at_zero).div(slope), affine.zero)};
}

// Returns the power of two above each value: x divided by its frexp fraction, which is exact.
at::Tensor PowersAbove(const at::Tensor& x) { return x.div(std::get<0>(at::frexp(x))); }

// Rounds each scale to the nearest one that a byte can hold (linalg/affine_metadata.h). The
// distance between neighbouring ones is an eighth of the power of two at or below them.
at::Tensor ByteScales(const at::Tensor& scale) {
  const at::Tensor x = scale.to(at::kFloat).clamp(kMinByteScale, kMaxByteScale);
  const at::Tensor step = PowersAbove(x).mul_(1.0 / 16).clamp_min_(kMinByteScale);
  return x.div(step).round_().mul_(step).to(scale.scalar_type());
}

AffineGroups AsStored(const AffineGroups& affine, MetadataType type, int bits) {
  if (type == MetadataType::kFloat32) return affine;
  if (type == MetadataType::kByte) {
    OSCAR_CHECK(bits <= kMaxFittedBits);
    const double middle = MaxCode(bits) / 2.0, steps = ScaleSteps(bits);
    return {ByteScales(affine.scale), affine.zero.sub(middle)
                                          .mul_(steps)
                                          .clamp_(-kMaxScaleSteps, kMaxScaleSteps)
                                          .round_()
                                          .div_(steps)
                                          .add_(middle)};
  }
  const auto stored = [](const at::Tensor& x) {
    return x.to(at::kFloat).to(at::kBFloat16).to(x.scalar_type());
  };
  return {stored(affine.scale), stored(affine.zero)};
}

// The scale and zero used to make codes (`rounds`), and the stored ones.
struct FittedGroups {
  AffineGroups rounds, stored;
};

// `x` is unclipped; `x` and `clipped` are [..., groups, quant_group_size].
FittedGroups FitGroups(const at::Tensor& x, const at::Tensor& clipped, const AffineFormat& format) {
  const AffineGroups range = FitRange(clipped, MaxCode(format.bits), format.metadata);
  AffineGroups rounds = range, fitted = range;
  if (FitsScale(format.scales, format.bits)) {
    const AffineGroups least_squares = Refitted(x, range, format.bits, true);
    fitted = Refitted(x, least_squares, format.bits, false);
    rounds = format.scales == ScaleFit::kUnbiased ? least_squares : fitted;
  }
  const AffineGroups stored = AsStored(fitted, format.metadata, format.bits);
  if (format.metadata == MetadataType::kByte) rounds = stored;
  return {rounds, stored};
}

// Reshapes [..., dim] to [..., groups, quant_group_size].
at::Tensor Grouped(const at::Tensor& rows, int64_t quant_group_size) {
  OSCAR_CHECK(rows.scalar_type() == at::kFloat || rows.scalar_type() == at::kDouble);
  OSCAR_CHECK_EQ(rows.size(-1) % quant_group_size, 0);
  return rows.unflatten(-1, {-1, quant_group_size});
}

}  // namespace

at::Tensor Clamped(const at::Tensor& rows, const at::Tensor& thresholds) {
  return thresholds.defined() ? at::minimum(at::maximum(rows, -thresholds), thresholds) : rows;
}

at::Tensor AffineRoundTrip(const at::Tensor& rows, const at::Tensor& thresholds,
                           const AffineFormat& format) {
  if (std::optional<at::Tensor> read = AffineRoundTripInOneKernel(rows, thresholds, format))
    return *std::move(read);
  const at::Tensor x = Grouped(rows, format.quant_group_size),
                   clipped = Grouped(Clamped(rows, thresholds), format.quant_group_size);
  const auto [rounds, stored] = FitGroups(x, clipped, format);
  const at::Tensor& coded = FitsScale(format.scales, format.bits) ? x : clipped;
  return Codes(coded, rounds, MaxCode(format.bits))
      .sub_(stored.zero)
      .mul_(stored.scale)
      .reshape(rows.sizes());
}

at::Tensor AffineStraightThrough(const at::Tensor& rows, const at::Tensor& thresholds,
                                 const AffineFormat& format) {
  const int max_code = MaxCode(format.bits);
  const at::Tensor x = Grouped(Clamped(rows, thresholds), format.quant_group_size);
  const auto [scale, zero] = FitRange(x, max_code, format.metadata);
  const at::Tensor t = x.div(scale).add_(zero);
  const at::Tensor codes = t.detach().add(0.5f).trunc_().clamp_(0, max_code);
  return t.add(codes.sub_(t.detach())).sub(zero).mul(scale).reshape(rows.sizes());
}

at::Tensor AffineRoundTripWithFeedback(const at::Tensor& rows, const at::Tensor& thresholds,
                                       const AffineFormat& format, const at::Tensor& factor) {
  if (std::optional<at::Tensor> read =
          FeedbackRoundTripInTwoKernels(rows, thresholds, format, factor))
    return *std::move(read);
  const int64_t dim = rows.size(-1), group = format.quant_group_size;
  const int max_code = MaxCode(format.bits);
  const double share = CodeShare(format.bits), quanta = FeedbackQuanta(format.bits);
  const AffineGroups stored =
      FitGroups(Grouped(rows, group), Grouped(Clamped(rows, thresholds), group), format).stored;
  const int64_t heads = factor.size(0), tokens = heads == 1 ? 1 : rows.size(-2);
  OSCAR_CHECK(heads == 1 || rows.size(-3) == heads);
  const auto columns = [&](const at::Tensor& of_rows, int64_t n) {  // [n, heads, rows of a head]
    return of_rows.reshape({-1, heads, tokens, n}).permute({3, 1, 0, 2}).reshape({n, heads, -1});
  };
  const at::Tensor x = columns(rows, dim), scales = columns(stored.scale, dim / group),
                   zeros = columns(stored.zero, dim / group);
  const at::Tensor widest = std::get<0>(scales.max(0));
  // These are tensors, because LibTorch turns a division with a scalar operand into a
  // multiplication by a reciprocal.
  const at::Tensor a = at::full({}, share, x.options()).div(scales), b = zeros.mul(share);
  const at::Tensor wider = widest.div(scales).clamp_max_(kMostWider).div_(quanta);
  const at::Tensor narrower = scales.div(widest).mul_(quanta);
  at::Tensor fed = at::zeros_like(x), read = at::empty_like(x);
  for (int64_t i = 0; i < dim; ++i) {
    const int64_t g = i / group;
    const at::Tensor y = x[i].mul(a[g]).add_(b[g]);
    const at::Tensor moved = fed[i].mul(wider[g]).add_(y).clamp_(0, 1).abs_();  // abs_ removes -0
    const at::Tensor code = moved.to(at::kDouble).mul_(max_code).round_().to(x.scalar_type());
    read[i].copy_(code.sub(zeros[g]).mul_(scales[g]));
    if (i + 1 == dim) break;
    const at::Tensor q = y.sub(code.mul(share)).mul_(narrower[g]).round_();
    // These are sums of integers times a power of two, so they are exact in any order.
    fed.slice(0, i + 1).add_(factor.select(1, i).slice(1, i + 1).t().unsqueeze(2).mul(
        q.clamp(-kMaxFeedback, kMaxFeedback)));
  }
  return read.reshape({dim, heads, -1, tokens}).permute({2, 1, 3, 0}).reshape(rows.sizes());
}

at::Tensor ClipThresholds(const at::Tensor& sorted, double ratio) {
  const std::optional<int64_t> index = ClipIndex(ratio, sorted.size(-1));
  return index ? sorted.narrow(-1, *index, 1) : at::Tensor();
}

at::Tensor SortedMagnitudes(const at::Tensor& rows) {
  if (std::optional<at::Tensor> sorted = SortedMagnitudesInOneKernel(rows.detach()))
    return *std::move(sorted);
  return std::get<0>(rows.detach().abs().sort(-1));
}

at::Tensor HeadThresholds(const at::Tensor& sorted, std::span<const double> clip) {
  if (clip.size() == 1) return ClipThresholds(sorted, clip[0]);
  OSCAR_CHECK_EQ(std::ssize(clip), sorted.size(-3));
  std::vector<at::Tensor> heads;
  for (int64_t head = 0; head < sorted.size(-3); ++head) {
    const at::Tensor of_head = sorted.select(-3, head);
    const at::Tensor threshold = ClipThresholds(of_head, clip[static_cast<size_t>(head)]);
    heads.push_back(threshold.defined() ? threshold
                                        : at::full_like(of_head.narrow(-1, 0, 1), INFINITY));
  }
  return at::stack(heads, -3);
}

at::Tensor QuantizedRows(const at::Tensor& rows, const AffineQuantizer& quantizer,
                         const at::Tensor& sorted, bool straight_through,
                         const at::Tensor& feedback) {
  const std::vector<int>& bits = quantizer.bits;
  if (bits.size() == 1 && bits[0] == 0) return rows;
  const int64_t dim = rows.size(-1);
  const int64_t group = quantizer.quant_group_size == 0 ? dim : quantizer.quant_group_size;
  at::Tensor thresholds;
  if (std::ranges::any_of(quantizer.clip, [](double ratio) { return ratio > 0; })) {
    if (quantizer.clip_groups && group < dim) {  // each group is a row
      const at::Tensor groups = rows.unflatten(-1, {-1, group}).flatten(-3, -2);
      thresholds = HeadThresholds(SortedMagnitudes(groups), quantizer.clip)
                       .expand_as(groups)
                       .reshape(rows.sizes());
    } else {
      thresholds =
          HeadThresholds(sorted.defined() ? sorted : SortedMagnitudes(rows), quantizer.clip);
    }
  }
  const auto round_trip = [&](const at::Tensor& of_heads, const at::Tensor& clamps, int width,
                              int64_t head) {
    const AffineFormat format{width, group, quantizer.metadata, quantizer.scales};
    if (straight_through) return AffineStraightThrough(of_heads, clamps, format);
    if (!feedback.defined()) return AffineRoundTrip(of_heads, clamps, format);
    const bool all = head < 0 || feedback.size(0) == 1;
    return AffineRoundTripWithFeedback(
        of_heads, clamps, format,
        (all ? feedback : feedback.narrow(0, head, 1)).to(rows.scalar_type()));
  };
  if (bits.size() == 1) return round_trip(rows, thresholds, bits[0], -1);
  std::vector<at::Tensor> heads;
  for (int64_t head = 0; head < rows.size(-3); ++head) {
    heads.push_back(round_trip(rows.select(-3, head),
                               thresholds.defined() ? thresholds.select(-3, head) : thresholds,
                               bits[static_cast<size_t>(head)], head));
  }
  OSCAR_CHECK_EQ(bits.size(), heads.size());
  return at::stack(heads, -3);
}

}  // namespace oscar
