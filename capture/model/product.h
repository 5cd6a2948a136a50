// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products with the same bytes for any number of host threads. A BLAS cuts a product into as
// many pieces as there are threads, and the shape of a piece decides in which order its terms are
// added (MKL does so for few rows in its modes of reproducibility too). On a CPU these are cut
// into tiles whose size depends on the product alone, each of them multiplied by one thread. On
// other devices, in 16 bits and where gradients are wanted they are LibTorch's.
#pragma once

#include <ATen/core/Tensor.h>

namespace oscar {

// x Wᵀ + b.  // [..., in], weight [out, in], bias [out] or undefined -> [..., out]
at::Tensor LinearProduct(const at::Tensor& x, const at::Tensor& weight,
                         const at::Tensor& bias = {});

// a b, one for each of a batch.  // [..., m, k], [..., k, n] -> [..., m, n], the dots alike and at
// least one
at::Tensor BatchProduct(const at::Tensor& a, const at::Tensor& b);

// sum = a b, or where `add` sum + a b.  // [batch, m, k], [batch, k, n], sum [batch, m, n]
void BatchProductInto(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b, bool add);

}  // namespace oscar
