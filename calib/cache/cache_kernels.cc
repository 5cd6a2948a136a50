// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/cache/cache_kernels.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <vector>

#include "calib/cache/cuda/affine_round_trip.h"
#include "calib/cache/cuda/feedback_round_trip.h"
#include "calib/cache/cuda/logit_kernel.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

bool IsReal(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
}

// Calls `launch` for the type of `x` on the current stream of its device.
template <typename Launch>
void OnItsGpu(const at::Tensor& x, const Launch& launch) {
  const c10::cuda::CUDAGuard guard(x.device());
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(x.device().index()).stream();
  C10_CUDA_CHECK(x.scalar_type() == at::kFloat ? launch(float{}, stream)
                                               : launch(double{}, stream));
}

template <typename T>
T* Writable(const at::Tensor& x) {
  return x.defined() ? x.mutable_data_ptr<T>() : nullptr;
}

bool HasKernel(const at::Tensor& rows, const AffineFormat& format) {
  return rows.is_cuda() && IsReal(rows) && format.quant_group_size <= kMaxKernelGroup &&
         rows.numel() > 0;
}

// Launches the round trip of contiguous rows. Skips outputs that are undefined.
void RoundTripOf(const at::Tensor& x, const at::Tensor& thresholds, const AffineFormat& format,
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
  OnItsGpu(x, [&]<typename T>(T, cudaStream_t stream) {
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
    return LaunchAffineRoundTrip(arguments, format, stream);
  });
}

}  // namespace

std::optional<at::Tensor> AffineRoundTripInOneKernel(const at::Tensor& rows,
                                                     const at::Tensor& thresholds,
                                                     const AffineFormat& format) {
  if (!HasKernel(rows, format)) return std::nullopt;
  const at::Tensor x = rows.contiguous(), read = at::empty_like(x);
  RoundTripOf(x, thresholds, format, read, {}, {});
  return read;
}

std::optional<at::Tensor> FeedbackRoundTripInTwoKernels(const at::Tensor& rows,
                                                        const at::Tensor& thresholds,
                                                        const AffineFormat& format,
                                                        const at::Tensor& factor) {
  const int64_t dim = rows.size(-1), heads = factor.size(0);
  if (!HasKernel(rows, format) || dim > kMaxFeedbackDim) return std::nullopt;
  OSCAR_CHECK(factor.scalar_type() == rows.scalar_type() && factor.is_cuda());
  OSCAR_CHECK(heads == 1 || rows.size(-3) == heads);
  const int64_t groups = dim / format.quant_group_size;
  const at::Tensor x = rows.contiguous(), f = factor.contiguous(), read = at::empty_like(x),
                   scales = at::empty({x.numel() / dim, groups}, x.options()),
                   zeros = at::empty_like(scales);
  RoundTripOf(x, thresholds, format, {}, scales, zeros);
  OnItsGpu(x, [&]<typename T>(T, cudaStream_t stream) {
    return LaunchFeedbackRoundTrip<T>({.rows = x.const_data_ptr<T>(),
                                       .scales = scales.const_data_ptr<T>(),
                                       .zeros = zeros.const_data_ptr<T>(),
                                       .factor = f.const_data_ptr<T>(),
                                       .read = read.mutable_data_ptr<T>(),
                                       .num_rows = x.numel() / dim,
                                       .rows_of_head = heads == 1 ? 1 : x.size(-2),
                                       .dim = static_cast<int>(dim),
                                       .groups = static_cast<int>(groups),
                                       .heads = static_cast<int>(heads),
                                       .bits = format.bits},
                                      stream);
  });
  return read;
}

std::optional<LogitComparison> CompareLogitsInOneKernel(const ReferenceLogits& own,
                                                        const at::Tensor& logits,
                                                        const at::Tensor& sinks,
                                                        const LogitParts& parts) {
  if (!logits.is_cuda() || !IsReal(logits) || logits.numel() == 0) return std::nullopt;
  const at::Tensor x = logits.contiguous(), log_p = own.p.log.contiguous(),
                   p = own.p.scores.contiguous();
  const at::Tensor reference = parts.logit_errors ? own.logits.contiguous() : at::Tensor();
  const at::Tensor of_heads =
      sinks.defined() ? sinks.to(x.scalar_type()).flatten().contiguous() : sinks;
  const at::IntArrayRef shape = x.sizes().slice(0, static_cast<size_t>(x.dim() - 1));
  std::vector<int64_t> with_columns = shape.vec();
  with_columns.push_back(log_p.size(-1));
  const auto empty = [&](bool wanted, at::IntArrayRef of_shape) {
    return wanted ? at::empty(of_shape, x.options()) : at::Tensor();
  };
  const LogitComparison result{.kl = empty(true, shape),
                               .scores = empty(parts.scores, with_columns),
                               .kl_terms = empty(parts.kl_terms, with_columns),
                               .logit_errors_sq = empty(parts.logit_errors, shape)};
  OnItsGpu(x, [&]<typename T>(T, cudaStream_t stream) {
    return LaunchLogitComparison<T>(
        {.log_p = log_p.const_data_ptr<T>(),
         .p = p.const_data_ptr<T>(),
         .reference_logits = reference.defined() ? reference.const_data_ptr<T>() : nullptr,
         .logits = x.const_data_ptr<T>(),
         .sinks = of_heads.defined() ? of_heads.const_data_ptr<T>() : nullptr,
         .rows = x.numel() / x.size(-1),
         .reference_rows = log_p.numel() / log_p.size(-1),
         .tokens = x.size(-1),
         .num_heads = x.size(-4) * x.size(-3),
         .rows_per_head = x.size(-2),
         .kl = Writable<T>(result.kl),
         .scores = Writable<T>(result.scores),
         .kl_terms = Writable<T>(result.kl_terms),
         .logit_errors_sq = Writable<T>(result.logit_errors_sq)},
        stream);
  });
  return result;
}

}  // namespace oscar
