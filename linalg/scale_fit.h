// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scales that undo the bias of rounding. With a scale from the range, a row x is read back as an x^
// that is shorter along x: <x, x^> < <x, x>. So every logit and output shrinks, and the bias
// accumulates over tokens. Here scale and zero are fitted to the rounded values, one group at a
// time. This is the rescaling of DRIVE and EDEN (arXiv 2105.08339 section 3 and 2108.08842 section
// 3), extended by a mean:
//
//   codes c with the range's scale;  (s1, z1): least squares of x by (c - z1) s1
//   codes c with (s1, z1);           (s2, z2): s2 = var(x) / cov(c, x), same mean as x
//
// With (s2, z2) and the codes of (s1, z1), (x - mean)(x^ - mean)^T = |x - mean|^2. The stored
// format and its reader do not change. The values are unclipped; clipping only affects the first
// scale.
//
// The sums add integers: x relative to the middle code, in units of 1 / ScaleSteps(bits) codes,
// limited to +-kMaxScaleSteps. So the sums are exact in any order, and all kernels write the same
// codes.
//
// Trap: one rounding per operation; include this only from units compiled with -ffp-contract=off.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "linalg/affine_codec.h"
#include "linalg/affine_group.h"
#include "linalg/affine_metadata.h"  // ScaleSteps

namespace oscar {

// The scale and zero used to make codes (`rounds`), and the stored ones.
template <typename T>
struct FittedGroup {
  AffineGroup<T> rounds;
  AffineGroup<T> stored;
};

// Sums over a group of n codes c and values q, where q is in units of 1 / ScaleSteps(bits) codes.
// The second moments are centred and multiplied by n.
struct CodeMoments {
  int64_t c = 0, q = 0;  // sums
  int64_t c_var = 0, q_var = 0, cov = 0;
};

template <typename T>
CodeMoments MomentsOfCodes(std::span<const T> group, const AffineGroup<T>& affine, int bits) {
  const int max_code = MaxCode(bits);
  const T middle = static_cast<T>(max_code) / 2, limit = kMaxScaleSteps;
  CodeMoments m;
  int64_t cc = 0, qq = 0, cq = 0;
  for (const T x : group) {
    const int64_t c = AffineCode(x, affine, max_code);
    const T steps = (x / affine.scale + affine.zero - middle) * ScaleSteps(bits);
    const auto q = static_cast<int64_t>(std::nearbyint(std::clamp(steps, -limit, limit)));
    m.c += c;
    m.q += q;
    cc += c * c;
    qq += q * q;
    cq += c * q;
  }
  const auto n = static_cast<int64_t>(group.size());
  m.c_var = n * cc - m.c * m.c;
  m.q_var = n * qq - m.q * m.q;
  m.cov = n * cq - m.c * m.q;
  return m;
}

// Returns `affine` with a slope of numerator / denominator steps per code, and with a zero for
// which the mean equals that of the values. Kernels that are compiled without contraction call this
// too.
template <typename T>
constexpr AffineGroup<T> Refitted(const AffineGroup<T>& affine, const CodeMoments& m,
                                  int64_t numerator, int64_t denominator, int bits, size_t n) {
  const T steps = ScaleSteps(bits), count = static_cast<T>(n);
  const T slope = static_cast<T>(numerator) / static_cast<T>(denominator) / steps;
  const T mean = static_cast<T>(m.q) / count / steps + static_cast<T>(MaxCode(bits)) / 2;
  const T at_zero = mean - slope * (static_cast<T>(m.c) / count);
  return {affine.scale * slope, (affine.zero - at_zero) / slope};
}

// `range` is FitAffine of the clipped group, `group` holds the unclipped values. If codes and
// values are not positively correlated, returns the previous fit. With more than kMaxFittedBits,
// returns `range`. `moments` does what MomentsOfCodes does; it is inlined, so that it is compiled
// for the caller's instruction set.
template <typename T, typename Moments>
[[gnu::always_inline]] inline FittedGroup<T> FitScale(std::span<const T> group,
                                                      const AffineGroup<T>& range, int bits,
                                                      ScaleFit fit, const Moments& moments) {
  if (!FitsScale(fit, bits)) return {range, range};
  CodeMoments m = moments(group, range, bits);
  if (m.cov <= 0) return {range, range};
  const AffineGroup<T> least_squares = Refitted(range, m, m.cov, m.c_var, bits, group.size());
  m = moments(group, least_squares, bits);
  if (m.cov <= 0) return {least_squares, least_squares};
  const AffineGroup<T> unbiased = Refitted(least_squares, m, m.q_var, m.cov, bits, group.size());
  return {fit == ScaleFit::kUnbiased ? least_squares : unbiased, unbiased};
}
template <typename T>
FittedGroup<T> FitScale(std::span<const T> group, const AffineGroup<T>& range, int bits,
                        ScaleFit fit) {
  return FitScale(group, range, bits, fit, MomentsOfCodes<T>);
}

}  // namespace oscar
