// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/cache/cache_kernels.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "calib/cache/gpu_kernels.h"
#include "calib/cache/host_kernels.h"
#include "linalg/base/check.h"
#include "linalg/base/parallel_for.h"

namespace oscar {
namespace {

constexpr int64_t kValuesOfPiece = 1 << 16, kRowsOfPiece = 16;  // minimum work per thread

// Calls `use` with a value of the type of `x`, float or double.
template <typename Use>
auto WithTypeOf(const at::Tensor& x, const Use& use) {
  return x.scalar_type() == at::kFloat ? use(float{}) : use(double{});
}

bool IsSupported(const at::Tensor& x) {
  const bool real = x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
  const bool device = x.is_cpu() || (x.is_cuda() && GpuKernelsOf<float>() != nullptr);
  return real && device && x.numel() > 0;
}

bool IsSupported(const at::Tensor& rows, const AffineFormat& format) {
  return IsSupported(rows) && (rows.is_cpu() || format.quant_group_size <= kMaxGpuGroup);
}

// Calls `run` with ranges of rows, each row with `columns` values, on as many threads as LibTorch
// uses. LibTorch's own at::parallel_for is serial in units that are compiled without OpenMP.
template <typename Run>
void OnHostThreads(int64_t rows, int64_t columns, const Run& run) {
  const int64_t step = std::max<int64_t>(kRowsOfPiece, kValuesOfPiece / columns);
  ParallelFor((rows + step - 1) / step,
              [&](int64_t piece) { run(piece * step, std::min(rows, (piece + 1) * step)); },
              at::get_num_threads());
}

template <typename T>
T* Writable(const at::Tensor& x) {
  return x.defined() ? x.mutable_data_ptr<T>() : nullptr;
}
template <typename T>
const T* Readable(const at::Tensor& x) {
  return x.defined() ? x.const_data_ptr<T>() : nullptr;
}

// Computes the round trip of contiguous rows. Skips outputs whose tensor is undefined. On a CPU,
// returns false if a value is not finite.
bool RoundTripOf(const at::Tensor& x, const at::Tensor& thresholds, const AffineFormat& format,
                 const at::Tensor& read, const at::Tensor& scales, const at::Tensor& zeros) {
  OSCAR_CHECK_EQ(x.size(-1) % format.quant_group_size, 0);
  const int64_t dim = x.size(-1);
  at::Tensor of_rows;
  if (thresholds.defined()) {
    OSCAR_CHECK(thresholds.scalar_type() == x.scalar_type());
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = thresholds.size(-1);
    of_rows = thresholds.expand(shape).reshape({-1, shape.back()});
  }
  return WithTypeOf(x, [&]<typename T>(T) {
    AffineRoundTripArguments<T> arguments{.rows = x.const_data_ptr<T>(),
                                          .read = Writable<T>(read),
                                          .num_rows = x.numel() / dim,
                                          .dim = dim,
                                          .scales = Writable<T>(scales),
                                          .zeros = Writable<T>(zeros)};
    if (of_rows.defined()) {
      arguments.thresholds = of_rows.const_data_ptr<T>();
      arguments.threshold_row = of_rows.stride(0);
      arguments.threshold_column = of_rows.size(1) == 1 ? 0 : of_rows.stride(1);
    }
    if (!x.is_cpu()) {
      GpuKernelsOf<T>()->round_trip(arguments, format, x.device());
      return true;
    }
    std::atomic<bool> finite = true;
    OnHostThreads(arguments.num_rows, dim, [&](int64_t begin, int64_t end) {
      if (!AffineRoundTripOnHost(arguments, format, begin, end)) finite = false;
    });
    return finite.load();
  });
}

}  // namespace

std::optional<at::Tensor> AffineRoundTripInOneKernel(const at::Tensor& rows,
                                                     const at::Tensor& thresholds,
                                                     const AffineFormat& format) {
  if (!IsSupported(rows, format)) return std::nullopt;
  const at::Tensor x = rows.contiguous();
  at::Tensor read = at::empty_like(x);
  if (!RoundTripOf(x, thresholds, format, read, {}, {})) return std::nullopt;
  return read;
}

std::optional<at::Tensor> FeedbackRoundTripInTwoKernels(const at::Tensor& rows,
                                                        const at::Tensor& thresholds,
                                                        const AffineFormat& format,
                                                        const at::Tensor& factor) {
  const int64_t dim = rows.size(-1), heads = factor.size(0);
  if (!IsSupported(rows, format) || (!rows.is_cpu() && dim > kMaxGpuFeedbackDim))
    return std::nullopt;
  OSCAR_CHECK(factor.scalar_type() == rows.scalar_type() && factor.device() == rows.device());
  OSCAR_CHECK(heads == 1 || rows.size(-3) == heads);
  const int64_t groups = dim / format.quant_group_size;
  const at::Tensor x = rows.contiguous(), f = factor.contiguous(),
                   scales = at::empty({x.numel() / dim, groups}, x.options()),
                   zeros = at::empty_like(scales);
  at::Tensor read = at::empty_like(x);
  if (!RoundTripOf(x, thresholds, format, {}, scales, zeros)) return std::nullopt;
  WithTypeOf(x, [&]<typename T>(T) {
    const FeedbackRoundTripArguments<T> arguments{.rows = x.const_data_ptr<T>(),
                                                  .scales = scales.const_data_ptr<T>(),
                                                  .zeros = zeros.const_data_ptr<T>(),
                                                  .factor = f.const_data_ptr<T>(),
                                                  .read = read.mutable_data_ptr<T>(),
                                                  .num_rows = x.numel() / dim,
                                                  .rows_of_head = heads == 1 ? 1 : x.size(-2),
                                                  .dim = static_cast<int>(dim),
                                                  .groups = static_cast<int>(groups),
                                                  .heads = static_cast<int>(heads),
                                                  .bits = format.bits};
    if (!x.is_cpu()) return GpuKernelsOf<T>()->feedback(arguments, x.device());
    OnHostThreads(arguments.num_rows, dim * dim, [&](int64_t begin, int64_t end) {
      FeedbackRoundTripOnHost(arguments, begin, end);
    });
  });
  return read;
}

std::optional<at::Tensor> RoundedToBf16InOneKernel(const at::Tensor& x) {
  if (!x.is_cpu() || x.scalar_type() != at::kFloat || x.numel() == 0) return std::nullopt;
  const at::Tensor from = x.contiguous();
  at::Tensor to = at::empty_like(from);
  OnHostThreads(from.numel(), 1, [&](int64_t begin, int64_t end) {
    RoundToBf16OnHost(from.const_data_ptr<float>() + begin, to.mutable_data_ptr<float>() + begin,
                      end - begin);
  });
  return to;
}

std::optional<at::Tensor> SortedMagnitudesInOneKernel(const at::Tensor& rows) {
  if (!rows.is_cpu() || !IsSupported(rows)) return std::nullopt;
  const at::Tensor x = rows.contiguous();
  at::Tensor sorted = at::empty_like(x);
  const bool complete = WithTypeOf(x, [&]<typename T>(T) {
    std::atomic<bool> known = true;
    OnHostThreads(x.numel() / x.size(-1), x.size(-1), [&](int64_t begin, int64_t end) {
      if (!SortMagnitudesOnHost(x.const_data_ptr<T>(), sorted.mutable_data_ptr<T>(), x.size(-1),
                                begin, end))
        known = false;
    });
    return known.load();
  });
  if (!complete) return std::nullopt;
  return sorted;
}

namespace {

// Logits in the form that kernels read. Holds the tensors that the arguments point to.
struct KernelLogits {
  KernelLogits(const CacheLogits& cache, const at::Tensor& sinks) {
    const bool mixes = cache.logits.is_cpu() && cache.kept.defined();
    x = (mixes ? cache.logits : cache.Read()).contiguous();
    if (sinks.defined()) of_heads = sinks.to(x.scalar_type()).flatten().contiguous();
    shape = x.sizes().slice(0, static_cast<size_t>(x.dim() - 1)).vec();
    if (!mixes) return;
    kept = cache.kept.contiguous();
    if (cache.exact.defined()) exact = cache.exact.contiguous();
  }
  int64_t rows() const { return x.numel() / x.size(-1); }

  template <typename T>
  LogitComparisonArguments<T> Arguments() const {
    LogitComparisonArguments<T> a{};
    a.logits = x.const_data_ptr<T>();
    a.sinks = Readable<T>(of_heads);
    a.rows = a.reference_rows = rows();
    a.tokens = x.size(-1);
    a.num_heads = x.size(-4) * x.size(-3);
    a.rows_per_head = x.size(-2);
    if (!kept.defined()) return a;
    a.kept = kept.const_data_ptr<bool>();
    a.rows_of_sequence = a.num_heads * a.rows_per_head;
    a.sequences = kept.numel() / (a.rows_per_head * a.tokens);
    OSCAR_CHECK_EQ(a.sequences * a.rows_per_head * a.tokens, kept.numel());
    a.exact = Readable<T>(exact);
    if (exact.defined()) a.exact_rows = exact.numel() / a.tokens;
    return a;
  }

  at::Tensor x, of_heads, kept, exact;
  std::vector<int64_t> shape;
};

}  // namespace

std::optional<LogAndScores> SoftmaxInOneKernel(const CacheLogits& cache, const at::Tensor& sinks) {
  if (!cache.logits.is_cpu() || !IsSupported(cache.logits)) return std::nullopt;
  const KernelLogits logits(cache, sinks);
  std::vector<int64_t> with_columns = logits.shape;
  with_columns.push_back(logits.x.size(-1) + (sinks.defined() ? 1 : 0));
  const at::Tensor log = at::empty(with_columns, logits.x.options());
  LogAndScores softmax{log, at::empty_like(log)};
  WithTypeOf(logits.x, [&]<typename T>(T) {
    LogitComparisonArguments<T> arguments = logits.Arguments<T>();
    arguments.scores = softmax.scores.mutable_data_ptr<T>();
    OnHostThreads(arguments.rows, arguments.tokens, [&](int64_t begin, int64_t end) {
      SoftmaxOnHost(arguments, log.mutable_data_ptr<T>(), begin, end);
    });
  });
  return softmax;
}

std::optional<LogitComparison> CompareLogitsInOneKernel(const ReferenceLogits& own,
                                                        const CacheLogits& cache,
                                                        const at::Tensor& sinks,
                                                        const LogitParts& parts) {
  if (!IsSupported(cache.logits)) return std::nullopt;
  const KernelLogits logits(cache, sinks);
  const at::Tensor log_p = own.p.log.contiguous(), p = own.p.scores.contiguous();
  const at::Tensor reference = parts.logit_errors ? own.logits.contiguous() : at::Tensor();
  std::vector<int64_t> with_columns = logits.shape;
  with_columns.push_back(log_p.size(-1));
  const auto empty = [&](bool wanted, at::IntArrayRef of_shape) {
    return wanted ? at::empty(of_shape, logits.x.options()) : at::Tensor();
  };
  const LogitComparison result{.kl = empty(true, logits.shape),
                               .scores = empty(parts.scores, with_columns),
                               .kl_terms = empty(parts.kl_terms, with_columns),
                               .logit_errors_sq = empty(parts.logit_errors, logits.shape)};
  WithTypeOf(logits.x, [&]<typename T>(T) {
    LogitComparisonArguments<T> arguments = logits.Arguments<T>();
    arguments.log_p = log_p.const_data_ptr<T>();
    arguments.p = p.const_data_ptr<T>();
    arguments.reference_logits = Readable<T>(reference);
    arguments.reference_rows = log_p.numel() / log_p.size(-1);
    arguments.kl = Writable<T>(result.kl);
    arguments.scores = Writable<T>(result.scores);
    arguments.kl_terms = Writable<T>(result.kl_terms);
    arguments.logit_errors_sq = Writable<T>(result.logit_errors_sq);
    if (!logits.x.is_cpu()) return GpuKernelsOf<T>()->compare(arguments, logits.x.device());
    OnHostThreads(arguments.rows, arguments.tokens,
                  [&](int64_t begin, int64_t end) { CompareLogitsOnHost(arguments, begin, end); });
  });
  return result;
}

}  // namespace oscar
