// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A group is processed by 1 to 32 neighbouring threads, each with up to kPerThread of its values.
// Compiled without contraction of products and sums: every line rounds once.
#include <algorithm>
#include <cmath>

#include "calib/cache/cuda/affine_round_trip.h"
#include "linalg/affine_codec.h"
#include "linalg/affine_group.h"
#include "linalg/affine_metadata.h"
#include "linalg/scale_fit.h"

namespace oscar {
namespace {

constexpr int kThreads = 128;

// The fields of an AffineFormat that a kernel needs.
struct Codec {
  int group, width;  // values per group, and threads that share them
  int bits, max_code, steps;
  bool fits;  // FitsScale
  ScaleFit scales;
  MetadataType metadata;
};

// NaN stays NaN, as in at::clamp, at::minimum and at::maximum.
template <typename T>
__device__ T Clamp(T x, T low, T high) {
  return x < low ? low : (x > high ? high : x);
}

template <typename T>
__device__ T Smaller(T a, T b) {
  return a < b || a != a ? a : b;
}
template <typename T>
__device__ T Larger(T a, T b) {
  return a > b || a != a ? a : b;
}

template <typename T, typename Combine>
__device__ T OfGroup(T value, int width, Combine combine) {
  for (int offset = width / 2; offset > 0; offset /= 2)
    value = combine(value, __shfl_xor_sync(0xFFFFFFFFU, value, offset));
  return value;
}

template <typename T>
__device__ T Place(T x, const AffineGroup<T>& affine) {
  return x / affine.scale + affine.zero;
}

template <typename T>
__device__ T CodeAt(T place, int max_code) {
  return trunc(Clamp(place + T(0.5F), T(0), T(max_code)));
}

// Converts a value to int, with NaN giving 0, as a cast from float does. A cast from double would
// give the lowest integer (PTX ISA, cvt), and a group whose scale is not finite would lose its NaN.
template <typename T>
__device__ int Integer(T x) {
  return x == x ? static_cast<int>(x) : 0;
}

// One fitting step of linalg/scale_fit.h.
template <typename T, int kPerThread>
__device__ AffineGroup<T> Refit(const T (&x)[kPerThread], int held, const AffineGroup<T>& affine,
                                const Codec& codec, bool least_squares) {
  const T middle = T(codec.max_code) / T(2), limit = T(kMaxScaleSteps), steps = T(codec.steps);
  int c_sum = 0, q_sum = 0, squares = 0, products = 0;
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    if (j >= held) break;
    const T place = Place(x[j], affine);
    const int c = Integer(CodeAt(place, codec.max_code));
    const int q = Integer(rint(Clamp((place - middle) * steps, -limit, limit)));
    c_sum += c;
    q_sum += q;
    squares += least_squares ? c * c : q * q;
    products += c * q;
  }
  const auto sum = [&](int x) {
    return int64_t{OfGroup(x, codec.width, [](int a, int b) { return a + b; })};
  };
  const int64_t n = codec.group;
  CodeMoments m{sum(c_sum), sum(q_sum)};
  const int64_t of_squares = n * sum(squares);
  m.c_var = of_squares - m.c * m.c;
  m.q_var = of_squares - m.q * m.q;
  m.cov = n * sum(products) - m.c * m.q;
  if (m.cov <= 0) return affine;
  return least_squares ? Refitted(affine, m, m.cov, m.c_var, codec.bits, codec.group)
                       : Refitted(affine, m, m.q_var, m.cov, codec.bits, codec.group);
}

__device__ float BFloat16(float x) {
  const unsigned bits = __float_as_uint(x);
  return x != x ? x : __uint_as_float((bits + 0x7FFFU + ((bits >> 16) & 1U)) & 0xFFFF0000U);
}

// Rounds to the metadata type (linalg/affine_metadata.h).
template <typename T>
__device__ AffineGroup<T> Stored(const AffineGroup<T>& affine, const Codec& codec) {
  if (codec.metadata == MetadataType::kFloat32) return affine;
  if (codec.metadata == MetadataType::kBFloat16)
    return {T(BFloat16(static_cast<float>(affine.scale))),
            T(BFloat16(static_cast<float>(affine.zero)))};
  const T middle = T(codec.max_code) / T(2), limit = T(kMaxScaleSteps), steps = T(codec.steps);
  const float scale = Clamp(static_cast<float>(affine.scale), kMinByteScale, kMaxByteScale);
  const unsigned exponent = max(__float_as_uint(scale) >> 23, 127U - 14U);
  const float anchor = __uint_as_float((exponent + 20U) << 23);
  return {T((scale + anchor) - anchor),
          rint(Clamp((affine.zero - middle) * steps, -limit, limit)) / steps + middle};
}

template <typename T, int kPerThread>
__global__ void __launch_bounds__(kThreads)
    RoundTrip(const AffineRoundTripArguments<T> a, const Codec codec, int64_t num_groups) {
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t own = thread / codec.width;
  const int64_t group = min(own, num_groups - 1);  // every thread of a warp takes part in its sums
  const int first = static_cast<int>(thread % codec.width);
  const int held = (codec.group - first + codec.width - 1) / codec.width;
  const int64_t begin = group * codec.group, row = begin / a.dim, column = begin % a.dim;
  T x[kPerThread];
  T low = T(INFINITY), high = -T(INFINITY);
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    if (j >= held) break;
    const int at = first + j * codec.width;
    x[j] = a.rows[begin + at];
    T clipped = x[j];
    if (a.thresholds != nullptr) {
      const T t = a.thresholds[row * a.threshold_row + (column + at) * a.threshold_column];
      clipped = t != t ? t : Clamp(clipped, -t, t);
    }
    low = Smaller(low, clipped);
    high = Larger(high, clipped);
    if (!codec.fits) x[j] = clipped;
  }
  low = OfGroup(low, codec.width, [](T p, T q) { return Smaller(p, q); });
  high = OfGroup(high, codec.width, [](T p, T q) { return Larger(p, q); });
  if (codec.metadata == MetadataType::kByte) {  // the range includes 0
    low = low > T(0) ? T(0) : low;
    high = high < T(0) ? T(0) : high;
  }
  const T range = high - low, least = T(kMinAffineRange);
  const T scale = (range < least ? least : range) / T(codec.max_code);
  AffineGroup<T> rounds = {scale, -low / scale}, fitted = rounds;
  if (codec.fits) {
    const AffineGroup<T> least_squares = Refit(x, held, rounds, codec, true);
    fitted = Refit(x, held, least_squares, codec, false);
    rounds = codec.scales == ScaleFit::kUnbiased ? least_squares : fitted;
  }
  const AffineGroup<T> stored = Stored(fitted, codec);
  if (codec.metadata == MetadataType::kByte) rounds = stored;
  if (own >= num_groups) return;
  if (a.scales != nullptr && first == 0) {
    a.scales[group] = stored.scale;
    a.zeros[group] = stored.zero;
  }
  if (a.read == nullptr) return;
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    if (j >= held) break;
    const T code = CodeAt(Place(x[j], rounds), codec.max_code);
    a.read[begin + first + j * codec.width] = (code - stored.zero) * stored.scale;
  }
}

}  // namespace

template <typename T>
cudaError_t LaunchAffineRoundTrip(const AffineRoundTripArguments<T>& arguments,
                                  const AffineFormat& format, cudaStream_t stream) {
  Codec codec{.group = static_cast<int>(format.quant_group_size),
              .width = 1,
              .bits = format.bits,
              .max_code = MaxCode(format.bits),
              .steps = format.bits <= kMaxFittedBits ? ScaleSteps(format.bits) : 1,
              .fits = FitsScale(format.scales, format.bits),
              .scales = format.scales,
              .metadata = format.metadata};
  while (codec.width < 32 && 2 * codec.width <= codec.group) codec.width *= 2;
  const int64_t num_groups = arguments.num_rows * (arguments.dim / codec.group);
  if (num_groups == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>((num_groups * codec.width + kThreads - 1) / kThreads);
  const int per_thread = (codec.group + codec.width - 1) / codec.width;
  if (per_thread <= 4) {
    RoundTrip<T, 4><<<blocks, kThreads, 0, stream>>>(arguments, codec, num_groups);
  } else {
    RoundTrip<T, 16><<<blocks, kThreads, 0, stream>>>(arguments, codec, num_groups);
  }
  return cudaGetLastError();
}

template cudaError_t LaunchAffineRoundTrip(const AffineRoundTripArguments<float>&,
                                           const AffineFormat&, cudaStream_t);
template cudaError_t LaunchAffineRoundTrip(const AffineRoundTripArguments<double>&,
                                           const AffineFormat&, cudaStream_t);

}  // namespace oscar
