// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every function is compiled for three instruction sets at -O3; a process uses the best one that
// its CPU supports.
#include "export/torch/host_arithmetic.h"

#include <algorithm>
#include <cstring>

#include "export/cuda/cache/cache_format.h"  // kTileTokens

namespace oscar {
namespace {

constexpr int kLanes = 16;  // number of independent sums

[[gnu::always_inline]] inline void RowTimesMatrixBody(const float* x, const float* matrix, int dim,
                                                      float* y) {
  std::fill_n(y, dim, 0.0F);
  for (int k = 0; k < dim; ++k) {
    const float factor = x[k];
    const float* const row = matrix + static_cast<int64_t>(k) * dim;
    for (int j = 0; j < dim; ++j) y[j] += factor * row[j];
  }
}

// Without a vector type, GCC adds shuffles to these loops. Four independent sums hide the latency.
using Sixteen = float __attribute__((vector_size(64)));
using Eight = float __attribute__((vector_size(32)));

template <typename Vector>
[[gnu::always_inline]] inline void AddProduct(float factor, const float* values, Vector& sum) {
  Vector vector;
  std::memcpy(&vector, values, sizeof(vector));
  sum += factor * vector;
}

// Adds sum_i factors[i] * values[i * stride ...] to `sum`, as four independent sums. `count` must
// be a multiple of 4.
template <typename Vector>
[[gnu::always_inline]] inline void AddProducts(const float* factors, const float* values,
                                               int stride, int count, Vector& sum) {
  Vector a = {}, b = {}, c = {}, e = {};
  for (int i = 0; i < count; i += 4, values += 4 * stride) {
    AddProduct(factors[i], values, a);
    AddProduct(factors[i + 1], values + stride, b);
    AddProduct(factors[i + 2], values + 2 * stride, c);
    AddProduct(factors[i + 3], values + 3 * stride, e);
  }
  a += sum;
  sum = (a + b) + (c + e);
}

[[gnu::always_inline]] inline void CodeScoresBody(const float* q, const float* codes, int count,
                                                  float* scores) {
  Sixteen sum = {};
  AddProducts(q, codes, kTileTokens, count, sum);
  std::memcpy(scores, &sum, sizeof(sum));
}

template <typename Vector>
[[gnu::always_inline]] inline void AddDims(const float* weights, const float* codes, int stride,
                                           float* out) {
  Vector sum;
  std::memcpy(&sum, out, sizeof(sum));
  AddProducts(weights, codes, stride, kTileTokens, sum);
  std::memcpy(out, &sum, sizeof(sum));
}

[[gnu::always_inline]] inline void AddWeightedCodesBody(const float* weights, const float* codes,
                                                        int stride, int count, float* out) {
  int d = 0;
  for (; d + kLanes <= count; d += kLanes) AddDims<Sixteen>(weights, codes + d, stride, out + d);
  for (; d < count; d += kLanes / 2) AddDims<Eight>(weights, codes + d, stride, out + d);
}

[[gnu::always_inline]] inline float DotBody(const float* x, const float* y, int count) {
  float sums[kLanes] = {};
  for (int d = 0; d < count; d += kLanes) {
    for (int i = 0; i < kLanes; ++i) sums[i] += x[d + i] * y[d + i];
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) sums[i] += sums[i + width];
  }
  return sums[0];
}

[[gnu::always_inline]] inline void AddScaledBody(float weight, const float* x, int count,
                                                 float* y) {
  for (int d = 0; d < count; ++d) y[d] += weight * x[d];
}

[[gnu::always_inline]] inline void ScaleBody(float factor, int count, float* y) {
  for (int d = 0; d < count; ++d) y[d] *= factor;
}

[[gnu::always_inline]] inline void FloatsOfBytesBody(const uint8_t* bytes, int count, float* out) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<float>(bytes[i]);
}

[[gnu::always_inline]] inline void FloatsOfBitsBody(const uint16_t* bits, int count, float* out) {
  for (int i = 0; i < count; ++i) out[i] = FloatOfBits(bits[i]);
}

enum class Vectors { kPlain, k256, k512 };

Vectors OfThisCpu() {
#if defined(__x86_64__)
  static const Vectors vectors = __builtin_cpu_supports("avx512f") ? Vectors::k512
                                 : __builtin_cpu_supports("avx2")  ? Vectors::k256
                                                                   : Vectors::kPlain;
  return vectors;
#else
  return Vectors::kPlain;
#endif
}

}  // namespace

#if defined(__x86_64__)
#define OSCAR_DISPATCHED(RESULT, NAME, PARAMETERS, ...)                   \
  namespace {                                                             \
  [[gnu::target("avx512f"), gnu::noinline]] RESULT NAME##512 PARAMETERS { \
    return NAME##Body(__VA_ARGS__);                                       \
  }                                                                       \
  [[gnu::target("avx2"), gnu::noinline]] RESULT NAME##256 PARAMETERS {    \
    return NAME##Body(__VA_ARGS__);                                       \
  }                                                                       \
  }                                                                       \
  RESULT NAME PARAMETERS {                                                \
    const Vectors vectors = OfThisCpu();                                  \
    return vectors == Vectors::k512   ? NAME##512(__VA_ARGS__)            \
           : vectors == Vectors::k256 ? NAME##256(__VA_ARGS__)            \
                                      : NAME##Body(__VA_ARGS__);          \
  }
#else
#define OSCAR_DISPATCHED(RESULT, NAME, PARAMETERS, ...) \
  RESULT NAME PARAMETERS { return NAME##Body(__VA_ARGS__); }
#endif

OSCAR_DISPATCHED(void, RowTimesMatrix, (const float* x, const float* matrix, int dim, float* y), x,
                 matrix, dim, y)
OSCAR_DISPATCHED(void, CodeScores, (const float* q, const float* codes, int count, float* scores),
                 q, codes, count, scores)
OSCAR_DISPATCHED(void, AddWeightedCodes,
                 (const float* weights, const float* codes, int stride, int count, float* out),
                 weights, codes, stride, count, out)
OSCAR_DISPATCHED(float, Dot, (const float* x, const float* y, int count), x, y, count)
OSCAR_DISPATCHED(void, AddScaled, (float weight, const float* x, int count, float* y), weight, x,
                 count, y)
OSCAR_DISPATCHED(void, Scale, (float factor, int count, float* y), factor, count, y)
OSCAR_DISPATCHED(void, FloatsOfBytes, (const uint8_t* bytes, int count, float* out), bytes, count,
                 out)
OSCAR_DISPATCHED(void, FloatsOfBits, (const uint16_t* bits, int count, float* out), bits, count,
                 out)

#undef OSCAR_DISPATCHED

}  // namespace oscar
