// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Trap: loops must stay simple enough for the compiler's vectorizer (`-fopt-info-vec-missed` says
// which are not).
#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

#include "calib/cache/host_kernels.h"
#include "calib/cache/host_vectors.h"

namespace oscar {
namespace {

// Returns e^x for x <= 88 within 2 units in the last place, or 0 if e^x would be subnormal. Uses x
// = n ln 2 + r and a series (Cody and Waite, Software Manual for the Elementary Functions, chapter
// 6).
template <typename T>
OSCAR_INLINE T Exp(T x) {
  constexpr bool kSingle = std::is_same_v<T, float>;
  using Bits = std::conditional_t<kSingle, int32_t, int64_t>;
  constexpr T kLeast = kSingle ? T(-87) : T(-708);
  constexpr T kHigh = kSingle ? T(0x1.62ep-1) : T(0x1.62e42feep-1);
  constexpr T kLow = kSingle ? T(0x1.0bfbe8p-15) : T(0x1.a39ef35793c76p-33);
  const T clamped = x < kLeast ? kLeast : x;
  const T n = Nearest(clamped * T(0x1.71547652b82fep+0));
  const T r = (clamped - n * kHigh) - n * kLow;
  T series = 1;
  for (int k = kSingle ? 7 : 13; k > 0; --k) series = T(1) + series * r * (T(1) / T(k));
  constexpr int kFraction = kSingle ? 23 : 52;
  constexpr Bits kBias = kSingle ? 127 : 1023;
  const auto exponent = static_cast<Bits>(static_cast<int>(n)) + kBias;
  const T power = std::bit_cast<T>(static_cast<Bits>(exponent << kFraction));
  return x < kLeast ? T(0) : series * power;
}

// Returns q - p - p x for q = p e^x. Near x = 0, a series avoids cancellation.
template <typename T>
OSCAR_INLINE T TermOfKl(T p, T q, T x) {
  constexpr int kTerms = std::is_same_v<T, float> ? 9 : 17;
  T series = 1;
  for (int k = kTerms; k > 2; --k) series = T(1) + series * x * (T(1) / T(k));
  const T near = series * x * x * T(0.5) * p, far = (q - p) - p * x;
  return std::abs(x) < T(0.5) ? near : far;
}

// The logits that a row reads. They are in `buffer` if they come from more than one array.
template <typename T>
struct ReadRow {
  const T* logits;
  int64_t columns;  // without hidden tokens at the end
};

template <typename T>
OSCAR_INLINE ReadRow<T> ReadLogits(const LogitComparisonArguments<T>& a, int64_t row, T* buffer) {
  const T* logits = a.logits + row * a.tokens;
  const int64_t tokens = a.tokens;
  if (a.kept != nullptr) {
    const bool* const kept =
        a.kept +
        (row / a.rows_of_sequence % a.sequences * a.rows_per_head + row % a.rows_per_head) * tokens;
    if (a.exact != nullptr) {
      const T* const exact = a.exact + row % a.exact_rows * tokens;
#pragma omp simd
      for (int64_t i = 0; i < tokens; ++i) buffer[i] = kept[i] ? exact[i] : logits[i];
    } else {
#pragma omp simd
      for (int64_t i = 0; i < tokens; ++i) buffer[i] = kept[i] ? T(kHiddenLogit) : logits[i];
    }
    logits = buffer;
  }
  if (a.sinks == nullptr) {
    int64_t columns = tokens;
    while (columns > 1 && logits[columns - 1] == T(kHiddenLogit)) --columns;
    return {logits, columns};
  }
  if (logits != buffer) std::copy(logits, logits + tokens, buffer);
  buffer[tokens] = a.sinks[row / a.rows_per_head % a.num_heads];
  return {buffer, tokens + 1};
}

// log p = (logit - most) - log_sum; p = e^(logit - most) * part.
template <typename T>
struct Normalizer {
  T most, log_sum, part;
};

// Writes e^(logit - most) for the logits of `row` to `scores`.
template <typename T>
OSCAR_INLINE Normalizer<T> Normalize(const ReadRow<T>& row, T* scores) {
  T most = row.logits[0], sum = 0;
#pragma omp simd reduction(max : most)
  for (int64_t i = 0; i < row.columns; ++i) most = std::max(most, row.logits[i]);
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < row.columns; ++i) {
    scores[i] = Exp(row.logits[i] - most);
    sum += scores[i];
  }
  return {most, std::log(sum), T(1) / sum};
}

template <typename T>
OSCAR_INLINE void Softmax(const LogitComparisonArguments<T>& a, T* log, int64_t begin,
                          int64_t end) {
  const int64_t columns = a.tokens + (a.sinks != nullptr ? 1 : 0);
  std::vector<T> buffer(static_cast<size_t>(columns));
  for (int64_t r = begin; r < end; ++r) {
    const ReadRow<T> row = ReadLogits(a, r, buffer.data());
    T *const scores = a.scores + r * columns, *const logs = log + r * columns;
    const Normalizer<T> n = Normalize(row, scores);
#pragma omp simd
    for (int64_t i = 0; i < row.columns; ++i) {
      scores[i] *= n.part;
      logs[i] = (row.logits[i] - n.most) - n.log_sum;
    }
    for (int64_t i = row.columns; i < columns; ++i) {
      scores[i] = 0;
      logs[i] = T(kHiddenLogit);
    }
  }
}

template <typename T>
OSCAR_INLINE void Compare(const LogitComparisonArguments<T>& a, int64_t begin, int64_t end) {
  const int64_t columns = a.tokens + (a.sinks != nullptr ? 1 : 0);
  std::vector<T> buffer(static_cast<size_t>(columns)), own_scores(buffer.size()),
      own_terms(buffer.size());
  for (int64_t r = begin; r < end; ++r) {
    const ReadRow<T> row = ReadLogits(a, r, buffer.data());
    const int64_t reference = r % a.reference_rows;
    const T* const log_p = a.log_p + reference * columns;
    const T* const p = a.p + reference * columns;
    T* const scores = a.scores == nullptr ? own_scores.data() : a.scores + r * columns;
    const Normalizer<T> n = Normalize(row, scores);
    T* const terms = a.kl_terms == nullptr ? own_terms.data() : a.kl_terms + r * columns;
    T kl = 0;
#pragma omp simd reduction(+ : kl)
    for (int64_t i = 0; i < row.columns; ++i) {
      scores[i] *= n.part;
      terms[i] = TermOfKl(p[i], scores[i], ((row.logits[i] - n.most) - n.log_sum) - log_p[i]);
      kl += terms[i];
    }
    a.kl[r] = kl;
    std::fill(scores + row.columns, scores + columns, T(0));
    std::fill(terms + row.columns, terms + columns, T(0));
    if (a.logit_errors_sq == nullptr) continue;
    const T* const own = a.reference_logits + reference * a.tokens;
    T squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < std::min(a.tokens, row.columns); ++i) {
      const T error = row.logits[i] - own[i];
      squares += error * error;
    }
    a.logit_errors_sq[r] = squares;
  }
}

#define OSCAR_INSTANCE(T)                                                                      \
  OSCAR_FOR_EACH_PROCESSOR void SoftmaxOf(const LogitComparisonArguments<T>& a, T* log,        \
                                          int64_t begin, int64_t end) {                        \
    Softmax(a, log, begin, end);                                                               \
  }                                                                                            \
  OSCAR_FOR_EACH_PROCESSOR void CompareOf(const LogitComparisonArguments<T>& a, int64_t begin, \
                                          int64_t end) {                                       \
    Compare(a, begin, end);                                                                    \
  }
OSCAR_INSTANCE(float)
OSCAR_INSTANCE(double)
#undef OSCAR_INSTANCE

}  // namespace

template <typename T>
void SoftmaxOnHost(const LogitComparisonArguments<T>& arguments, T* log, int64_t begin,
                   int64_t end) {
  SoftmaxOf(arguments, log, begin, end);
}

template <typename T>
void CompareLogitsOnHost(const LogitComparisonArguments<T>& arguments, int64_t begin, int64_t end) {
  CompareOf(arguments, begin, end);
}

template void SoftmaxOnHost(const LogitComparisonArguments<float>&, float*, int64_t, int64_t);
template void SoftmaxOnHost(const LogitComparisonArguments<double>&, double*, int64_t, int64_t);
template void CompareLogitsOnHost(const LogitComparisonArguments<float>&, int64_t, int64_t);
template void CompareLogitsOnHost(const LogitComparisonArguments<double>&, int64_t, int64_t);

}  // namespace oscar
