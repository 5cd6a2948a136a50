// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Functions of each value by itself with the same bytes for any number of host threads. On a CPU
// LibTorch computes an exponential for eight values at once, and for those left over at the end of
// a thread's share one by one, with another last digit.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softplus.h>

#include <algorithm>

namespace oscar {

// f(x), where f gives each value what depends on it alone. On a CPU in pieces of a fixed size, so
// small that LibTorch gives each to one thread.
template <typename Function>
at::Tensor Elementwise(const at::Tensor& x, const Function& f) {
  constexpr int64_t kPiece = 16384;  // below at::internal::GRAIN_SIZE
  if (!x.is_cpu() || x.numel() <= kPiece || (at::GradMode::is_enabled() && x.requires_grad()))
    return f(x);
  const at::Tensor from = x.contiguous().view(-1), to = at::empty_like(from);
  at::parallel_for(0, (from.numel() + kPiece - 1) / kPiece, 1, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin * kPiece; first < std::min(end * kPiece, from.numel());
         first += kPiece) {
      const int64_t count = std::min(kPiece, from.numel() - first);
      to.narrow(0, first, count).copy_(f(from.narrow(0, first, count)));
    }
  });
  return to.view(x.sizes());
}

inline at::Tensor Sigmoid(const at::Tensor& x) {
  return Elementwise(x, [](const at::Tensor& v) { return at::sigmoid(v); });
}
inline at::Tensor Silu(const at::Tensor& x) {
  return Elementwise(x, [](const at::Tensor& v) { return at::silu(v); });
}
inline at::Tensor Softplus(const at::Tensor& x) {
  return Elementwise(x, [](const at::Tensor& v) { return at::softplus(v); });
}
inline at::Tensor Exp(const at::Tensor& x) {
  return Elementwise(x, [](const at::Tensor& v) { return at::exp(v); });
}

}  // namespace oscar
