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
  QuantizeDequantizeAffineRow<T>(x, format, clip, clipped);  // refuses what the codec cannot store
  std::copy(x.begin(), x.end(), clipped.begin());
  ClampRow<T>(clipped, ClipThreshold(x, clip.ratio, clip.method));
  std::vector<AffineGroup<T>> groups(dim / group);
  T widest = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto range =
        RangeOf(std::span<const T>(clipped.data() + g * group, group), format.metadata, max_code);
    groups[g] = FitScale<T>(x.subspan(g * group, group), range, format.bits, format.scales).stored;
    const AffineGroup<T> stored = StoredAffine(groups[g], format.metadata, format.bits);
    if (format.metadata == MetadataType::kByte) groups[g] = stored;
    scales_zeros[2 * g] = stored.scale;
    scales_zeros[2 * g + 1] = stored.zero;
    widest = std::max(widest, groups[g].scale);
  }
  const T quantum = FeedbackQuantum(widest);
  std::vector<T> fed(dim);  // sums of integers times a power of two: exact
  for (size_t i = 0; i < dim; ++i) {
    const size_t g = i / group;
    codes[i] = AffineCode(x[i] + fed[i] * quantum, groups[g], max_code);
    const T read = AffineValue<T>(codes[i], {scales_zeros[2 * g], scales_zeros[2 * g + 1]});
    const T q =
        std::clamp(std::nearbyint((x[i] - read) / quantum), T{-kMaxFeedback}, T{kMaxFeedback});
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
