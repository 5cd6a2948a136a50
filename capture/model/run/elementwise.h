// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Elementwise functions whose results have the same bits for any number of host threads. On a CPU,
// LibTorch computes eight exponentials at once. Those left over at the end of a thread's share are
// computed one by one, with a different last digit. So these functions split tensors into pieces of
// fixed size.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softplus.h>

#include <algorithm>

#include "capture/model/run/tensor_pieces.h"

namespace oscar {

// Small enough for LibTorch to use one thread: below at::internal::GRAIN_SIZE.
inline constexpr int64_t kPieceOfValues = 16384;

// Whether x is split: only on a CPU and if no gradient is needed.
inline bool IsCut(const at::Tensor& x) {
  return x.is_cpu() && x.numel() > kPieceOfValues && !x.requires_grad();
}

template <typename Piece>  // calls piece(first, count)
void ForEachPiece(int64_t size, const Piece& piece) {
  const int64_t pieces = (size + kPieceOfValues - 1) / kPieceOfValues;
  ForEachTensorPiece(pieces, [&](int64_t index) {
    const int64_t first = index * kPieceOfValues;
    piece(first, std::min(kPieceOfValues, size - first));
  });
}

// Returns f(x) for an f that computes each value independently.
template <typename Function>
at::Tensor Elementwise(const at::Tensor& x, const Function& f) {
  if (!IsCut(x)) return f(x);
  const at::Tensor from = x.contiguous().view(-1), to = at::empty_like(from);
  ForEachPiece(x.numel(), [&](int64_t first, int64_t count) {
    to.narrow(0, first, count).copy_(f(from.narrow(0, first, count)));
  });
  return to.view(x.sizes());
}

// The same in place: f changes its argument.
template <typename Function>
void ElementwiseInPlace(at::Tensor& x, const Function& f) {
  if (!IsCut(x)) {
    f(x);
    return;
  }
  x = x.contiguous();
  const at::Tensor values = x.view(-1);
  ForEachPiece(x.numel(), [&](int64_t first, int64_t count) {
    at::Tensor piece = values.narrow(0, first, count);
    f(piece);
  });
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
