// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Traps: every line rounds once, so this is compiled with -ffp-contract=off; and loops must stay
// simple enough for the compiler's vectorizer (`-fopt-info-vec-missed` says which are not).
#include "calib/cache/host_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "calib/cache/host_vectors.h"
#include "linalg/affine_group.h"
#include "linalg/affine_metadata.h"
#include "linalg/feedback_codec.h"
#include "linalg/scale_fit.h"
#include "linalg/stored_float.h"

namespace oscar {
namespace {

constexpr size_t kLanes = 16;  // rows, or values, that are processed side by side

template <typename T>
OSCAR_INLINE T Clamp(T x, T low, T high) {
  const T above = x < low ? low : x;
  return above > high ? high : above;
}

template <typename T>
OSCAR_INLINE int CodeOf(T x, const AffineGroup<T>& affine, T max_code) {
  return static_cast<int>(Clamp(x / affine.scale + affine.zero + T(0.5), T(0), max_code));
}

// MomentsOfCodes of linalg/scale_fit.h. 32 bits hold the sums of rows of up to 2^17 values.
template <typename T>
OSCAR_INLINE CodeMoments Moments(std::span<const T> x, const AffineGroup<T>& affine, int bits) {
  const int n = static_cast<int>(x.size());
  const T max_code = static_cast<T>(MaxCode(bits)), middle = max_code / 2, limit = kMaxScaleSteps,
          steps = static_cast<T>(ScaleSteps(bits));
  int c_sum = 0, q_sum = 0, cc = 0, qq = 0, cq = 0;
#pragma omp simd reduction(+ : c_sum, q_sum, cc, qq, cq)
  for (int i = 0; i < n; ++i) {
    const T place = x.data()[i] / affine.scale + affine.zero;
    const int c = static_cast<int>(Clamp(place + T(0.5), T(0), max_code));
    const int q = static_cast<int>(Nearest(Clamp((place - middle) * steps, -limit, limit)));
    c_sum += c;
    q_sum += q;
    cc += c * c;
    qq += q * q;
    cq += c * q;
  }
  CodeMoments m{c_sum, q_sum};
  m.c_var = int64_t{n} * cc - m.c * m.c;
  m.q_var = int64_t{n} * qq - m.q * m.q;
  m.cov = int64_t{n} * cq - m.c * m.q;
  return m;
}

template <typename T>
OSCAR_INLINE bool RoundTrip(const AffineRoundTripArguments<T>& a, const AffineFormat& format,
                            int64_t begin, int64_t end) {
  const int group = static_cast<int>(format.quant_group_size), dim = static_cast<int>(a.dim);
  const bool fits = FitsScale(format.scales, format.bits);
  const T max_code = static_cast<T>(MaxCode(format.bits)), most = std::numeric_limits<T>::max();
  std::vector<T> clipped_row(static_cast<size_t>(dim));
  T* const clipped = clipped_row.data();
  for (int64_t row = begin; row < end; ++row) {
    const T* const x = a.rows + row * dim;
    int unknown = 0;
    if (a.threshold_column == 0) {
      const T t = a.thresholds == nullptr ? std::numeric_limits<T>::infinity()
                                          : a.thresholds[row * a.threshold_row];
      unknown = t >= 0 ? 0 : 1;
#pragma omp simd reduction(| : unknown)
      for (int i = 0; i < dim; ++i) {
        unknown |= std::abs(x[i]) <= most ? 0 : 1;
        clipped[i] = Clamp(x[i], -t, t);
      }
    } else {
      for (int i = 0; i < dim; ++i) {
        const T t = a.thresholds[row * a.threshold_row + i * a.threshold_column];
        unknown |= std::abs(x[i]) <= most && t >= 0 ? 0 : 1;
        clipped[i] = Clamp(x[i], -t, t);
      }
    }
    if (unknown != 0) return false;
    for (int first = 0; first < dim; first += group) {
      T low = clipped[first], high = low;
#pragma omp simd reduction(min : low) reduction(max : high)
      for (int i = first; i < first + group; ++i) {
        low = std::min(low, clipped[i]);
        high = std::max(high, clipped[i]);
      }
      if (format.metadata == MetadataType::kByte) {  // the range includes 0
        low = std::min(low, T(0));
        high = std::max(high, T(0));
      }
      const T scale = std::max(high - low, static_cast<T>(kMinAffineRange)) / max_code;
      const AffineGroup<T> range = {scale, -low / scale};
      const FittedGroup<T> fit =
          FitScale(std::span<const T>(x + first, static_cast<size_t>(group)), range, format.bits,
                   format.scales, [](const auto&... of_group) { return Moments<T>(of_group...); });
      const AffineGroup<T> stored = StoredAffine(fit.stored, format.metadata, format.bits);
      const AffineGroup<T> rounds = format.metadata == MetadataType::kByte ? stored : fit.rounds;
      if (a.scales != nullptr) {
        const int64_t at = (row * dim + first) / group;
        a.scales[at] = stored.scale;
        a.zeros[at] = stored.zero;
      }
      if (a.read == nullptr) continue;
      const T* const coded = (fits ? x : clipped) + first;
      T* const read = a.read + row * dim + first;
#pragma omp simd
      for (int i = 0; i < group; ++i) {
        read[i] = (static_cast<T>(CodeOf(coded[i], rounds, max_code)) - stored.zero) * stored.scale;
      }
    }
  }
  return true;
}

// Feedback is a chain along a row, so up to kLanes rows of one head are processed side by side.
template <typename T>
OSCAR_INLINE void FeedbackOfRows(const FeedbackRoundTripArguments<T>& a, int64_t row, int count,
                                 T* x, T* fed) {
  const int dim = a.dim, group = dim / a.groups;
  const T max_code = static_cast<T>(MaxCode(a.bits)), share = CodeShare(a.bits),
          quanta = FeedbackQuanta(a.bits), limit = kMaxFeedback;
  const T* const factor = a.factor + row / a.rows_of_head % a.heads * dim * dim;
  T widest[kLanes];
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const int64_t from = row + std::min(static_cast<int>(lane), count - 1);  // repeats the last
    for (int i = 0; i < dim; ++i) x[size_t(i) * kLanes + lane] = a.rows[from * dim + i];
    widest[lane] = *std::max_element(a.scales + from * a.groups, a.scales + (from + 1) * a.groups);
  }
  std::fill(fed, fed + size_t(dim) * kLanes, T(0));
  for (int g = 0; g < a.groups; ++g) {
    T scale[kLanes], zero[kLanes], slope[kLanes], offset[kLanes], wider[kLanes], narrower[kLanes];
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const int64_t from = row + std::min(static_cast<int>(lane), count - 1);
      scale[lane] = a.scales[from * a.groups + g];
      zero[lane] = a.zeros[from * a.groups + g];
      slope[lane] = share / scale[lane];
      offset[lane] = zero[lane] * share;
      wider[lane] = std::min(widest[lane] / scale[lane], T(kMostWider)) / quanta;
      narrower[lane] = scale[lane] / widest[lane] * quanta;
    }
    for (int i = g * group; i < (g + 1) * group; ++i) {
      T* const xi = x + size_t(i) * kLanes;
      const T* const fi = fed + size_t(i) * kLanes;
      T q[kLanes];
#pragma omp simd
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const T y = xi[lane] * slope[lane] + offset[lane];
        const T moved = Clamp(fi[lane] * wider[lane] + y, T(0), T(1));
        const double nearest = Nearest(double(moved) * double(max_code));
        const T code = static_cast<T>(static_cast<int>(nearest));
        const T error = (y - code * share) * narrower[lane];
        q[lane] = Nearest(Clamp(error, -limit, limit));
        xi[lane] = (code - zero[lane]) * scale[lane];
      }
      for (int j = i + 1; j < dim; ++j) {
        const T f = factor[i * dim + j];
        T* const fj = fed + size_t(j) * kLanes;
#pragma omp simd
        for (size_t lane = 0; lane < kLanes; ++lane) fj[lane] += q[lane] * f;
      }
    }
  }
  for (int lane = 0; lane < count; ++lane) {
    for (int i = 0; i < dim; ++i)
      a.read[(row + lane) * dim + i] = x[size_t(i) * kLanes + size_t(lane)];
  }
}

template <typename T>
OSCAR_INLINE void Feedback(const FeedbackRoundTripArguments<T>& a, int64_t begin, int64_t end) {
  std::vector<T> x(size_t(a.dim) * kLanes), fed(x.size());
  for (int64_t row = begin; row < end;) {
    const int64_t next_head = a.heads == 1 ? end : (row / a.rows_of_head + 1) * a.rows_of_head;
    const int64_t count = std::min({int64_t{kLanes}, end - row, next_head - row});
    FeedbackOfRows(a, row, static_cast<int>(count), x.data(), fed.data());
    row += count;
  }
}

// Sorts the magnitudes of kLanes rows at a time with a bitonic network (Batcher, Sorting networks
// and their applications, 1968). Rows are padded with infinity to a power of two.
template <typename T>
OSCAR_INLINE bool SortMagnitudes(const T* rows, T* sorted, int64_t dim, int64_t begin,
                                 int64_t end) {
  const size_t size = std::bit_ceil(static_cast<size_t>(dim));
  std::vector<T> values(size * kLanes, std::numeric_limits<T>::infinity());
  T* const x = values.data();
  for (int64_t row = begin; row < end; row += kLanes) {
    const int64_t count = std::min<int64_t>(kLanes, end - row);
    int unknown = 0;
    for (int64_t lane = 0; lane < count; ++lane) {
      const T* const from = rows + (row + lane) * dim;
      for (int64_t i = 0; i < dim; ++i) {
        unknown |= from[i] == from[i] ? 0 : 1;
        x[size_t(i) * kLanes + size_t(lane)] = std::abs(from[i]);
      }
    }
    if (unknown != 0) return false;
    for (size_t i = size_t(dim) * kLanes; i < values.size(); ++i)
      x[i] = std::numeric_limits<T>::infinity();
    for (size_t block = 2; block <= size; block *= 2) {
      for (size_t step = block / 2; step > 0; step /= 2) {
        for (size_t i = 0; i < size; ++i) {
          if ((i & step) != 0) continue;
          const bool ascending = (i & block) == 0;
          T* const low = x + (ascending ? i : i + step) * kLanes;
          T* const high = x + (ascending ? i + step : i) * kLanes;
#pragma omp simd
          for (size_t lane = 0; lane < kLanes; ++lane) {
            const T a = low[lane], b = high[lane];
            low[lane] = b < a ? b : a;
            high[lane] = b < a ? a : b;
          }
        }
      }
    }
    for (int64_t lane = 0; lane < count; ++lane) {
      T* const to = sorted + (row + lane) * dim;
      for (int64_t i = 0; i < dim; ++i) to[i] = x[size_t(i) * kLanes + size_t(lane)];
    }
  }
  return true;
}

// Defines every kernel for one type, compiled for each instruction set.
#define OSCAR_INSTANCE(T)                                                                         \
  OSCAR_FOR_EACH_PROCESSOR bool RoundTripOf(const AffineRoundTripArguments<T>& a,                 \
                                            const AffineFormat& format, int64_t begin,            \
                                            int64_t end) {                                        \
    return RoundTrip(a, format, begin, end);                                                      \
  }                                                                                               \
  OSCAR_FOR_EACH_PROCESSOR bool SortOf(const T* rows, T* sorted, int64_t dim, int64_t begin,      \
                                       int64_t end) {                                             \
    return SortMagnitudes(rows, sorted, dim, begin, end);                                         \
  }                                                                                               \
  OSCAR_FOR_EACH_PROCESSOR void FeedbackOf(const FeedbackRoundTripArguments<T>& a, int64_t begin, \
                                           int64_t end) {                                         \
    Feedback(a, begin, end);                                                                      \
  }
OSCAR_INSTANCE(float)
OSCAR_INSTANCE(double)
#undef OSCAR_INSTANCE

OSCAR_FOR_EACH_PROCESSOR void RoundToBf16(const float* from, float* to, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float rounded = NearestBFloat16(from[i]);
    to[i] = from[i] == from[i] ? rounded : std::numeric_limits<float>::quiet_NaN();
  }
}

}  // namespace

template <typename T>
bool AffineRoundTripOnHost(const AffineRoundTripArguments<T>& arguments, const AffineFormat& format,
                           int64_t begin, int64_t end) {
  return RoundTripOf(arguments, format, begin, end);
}

template <typename T>
bool SortMagnitudesOnHost(const T* rows, T* sorted, int64_t dim, int64_t begin, int64_t end) {
  return SortOf(rows, sorted, dim, begin, end);
}

template <typename T>
void FeedbackRoundTripOnHost(const FeedbackRoundTripArguments<T>& arguments, int64_t begin,
                             int64_t end) {
  FeedbackOf(arguments, begin, end);
}

void RoundToBf16OnHost(const float* from, float* to, int64_t count) {
  RoundToBf16(from, to, count);
}

template bool AffineRoundTripOnHost(const AffineRoundTripArguments<float>&, const AffineFormat&,
                                    int64_t, int64_t);
template bool SortMagnitudesOnHost(const float*, float*, int64_t, int64_t, int64_t);
template void FeedbackRoundTripOnHost(const FeedbackRoundTripArguments<float>&, int64_t, int64_t);
template bool AffineRoundTripOnHost(const AffineRoundTripArguments<double>&, const AffineFormat&,
                                    int64_t, int64_t);
template bool SortMagnitudesOnHost(const double*, double*, int64_t, int64_t, int64_t);
template void FeedbackRoundTripOnHost(const FeedbackRoundTripArguments<double>&, int64_t, int64_t);

}  // namespace oscar
