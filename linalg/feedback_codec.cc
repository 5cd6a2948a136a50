// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/feedback_codec.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "linalg/affine_group.h"
#include "linalg/affine_metadata.h"
#include "linalg/scale_fit.h"

namespace oscar {

template <typename T>
void EncodeAffineRowWithFeedback(std::span<const T> x, const AffineFormat& format,
                                 const RowClip& clip, std::span<const T> factor,
                                 std::span<uint8_t> codes, std::span<T> scales_zeros) {
  const size_t dim = x.size(), group = static_cast<size_t>(format.quant_group_size);
  const int max_code = MaxCode(format.bits);
  std::vector<T> clipped(x.begin(), x.end());
  QuantizeDequantizeAffineRow<T>(x, format, clip, clipped);  // throws if the row cannot be stored
  std::copy(x.begin(), x.end(), clipped.begin());
  ClampRow<T>(clipped, ClipThreshold(x, clip.ratio, clip.method));
  T widest = 0;
  for (size_t g = 0; g < dim / group; ++g) {
    const auto range =
        RangeOf(std::span<const T>(clipped.data() + g * group, group), format.metadata, max_code);
    const AffineGroup<T> fitted =
        FitScale<T>(x.subspan(g * group, group), range, format.bits, format.scales).stored;
    const AffineGroup<T> stored = StoredAffine(fitted, format.metadata, format.bits);
    scales_zeros[2 * g] = stored.scale;
    scales_zeros[2 * g + 1] = stored.zero;
    widest = std::max(widest, stored.scale);
  }
  const T share = CodeShare(format.bits), quanta = FeedbackQuanta(format.bits);
  std::vector<T> fed(dim);  // sums of integers times a power of two, hence exact
  for (size_t i = 0; i < dim; ++i) {
    const T scale = scales_zeros[i / group * 2], zero = scales_zeros[i / group * 2 + 1];
    const T wider = std::min(widest / scale, T{kMostWider});
    const T y = x[i] * (share / scale) + zero * share;
    const T moved = std::clamp(y + fed[i] * (wider / quanta), T{0}, T{1});
    const auto code = static_cast<T>(std::nearbyint(double{moved} * max_code));
    codes[i] = static_cast<uint8_t>(code);
    const T error = (y - code * share) * (scale / widest * quanta);
    const T q = std::clamp(std::nearbyint(error), T{-kMaxFeedback}, T{kMaxFeedback});
    for (size_t j = i + 1; j < dim; ++j) fed[j] += q * factor[i * dim + j];
  }
}

template <typename T>
void QuantizeDequantizeWithFeedback(std::span<const T> x, const AffineFormat& format,
                                    const RowClip& clip, std::span<const T> factor,
                                    std::span<T> y) {
  const size_t group = static_cast<size_t>(format.quant_group_size);
  std::vector<uint8_t> codes(x.size());
  std::vector<T> scales_zeros(2 * x.size() / group);
  EncodeAffineRowWithFeedback<T>(x, format, clip, factor, codes, scales_zeros);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t g = 2 * (i / group);
    y[i] = AffineValue<T>(codes[i], {scales_zeros[g], scales_zeros[g + 1]});
  }
}

template void EncodeAffineRowWithFeedback(std::span<const float>, const AffineFormat&,
                                          const RowClip&, std::span<const float>,
                                          std::span<uint8_t>, std::span<float>);
template void QuantizeDequantizeWithFeedback(std::span<const float>, const AffineFormat&,
                                             const RowClip&, std::span<const float>,
                                             std::span<float>);
template void QuantizeDequantizeWithFeedback(std::span<const double>, const AffineFormat&,
                                             const RowClip&, std::span<const double>,
                                             std::span<double>);

}  // namespace oscar
