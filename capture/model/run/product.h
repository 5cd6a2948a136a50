// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products whose results have the same bits for any number of host threads. A BLAS splits a
// product into as many pieces as there are threads, and the shape of a piece decides the order in
// which its terms are added. (With few rows, MKL does so even in its reproducible modes.) On a CPU
// these functions use tiles whose size depends only on the product, and one thread computes each
// tile. On other devices, for 16-bit types and if gradients are needed, they call LibTorch.
#pragma once

#include <ATen/core/Tensor.h>

namespace oscar {

// x Wᵀ + b.  // [..., in], weight [out, in], bias [out] or undefined -> [..., out]
at::Tensor LinearProduct(const at::Tensor& x, const at::Tensor& weight,
                         const at::Tensor& bias = {});

// Returns a b for each matrix in a batch. There must be at least one leading dimension, and leading
// dimensions must be equal.
// [..., m, k], [..., k, n] -> [..., m, n]
at::Tensor BatchProduct(const at::Tensor& a, const at::Tensor& b);

// sum = a b, or if `add` sum + a b.  // [batch, m, k], [batch, k, n], sum [batch, m, n]
void BatchProductInto(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b, bool add);

}  // namespace oscar
