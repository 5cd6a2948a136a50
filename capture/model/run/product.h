// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products with the same bytes for any number of host threads. A BLAS splits a product into
// as many pieces as there are threads, and the shape of a piece decides the order in which its
// terms are added. (With few rows, MKL does so even in its reproducible modes.) On a CPU these
// functions use tiles whose size depends only on the product, each multiplied by one thread. On
// other devices, in 16 bits and if gradients are needed they call LibTorch.
#pragma once

#include <ATen/core/Tensor.h>

namespace oscar {

// x Wᵀ + b.  // [..., in], weight [out, in], bias [out] or undefined -> [..., out]
at::Tensor LinearProduct(const at::Tensor& x, const at::Tensor& weight,
                         const at::Tensor& bias = {});

// Returns a b for each matrix in a batch.  // [..., m, k], [..., k, n] -> [..., m, n], with equal
// and at least one leading dimensions
at::Tensor BatchProduct(const at::Tensor& a, const at::Tensor& b);

// sum = a b, or if `add` sum + a b.  // [batch, m, k], [batch, k, n], sum [batch, m, n]
void BatchProductInto(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b, bool add);

}  // namespace oscar
