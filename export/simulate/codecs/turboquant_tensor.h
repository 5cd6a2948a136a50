// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The codecs of linalg/sphere_codec.h for tensors on any device. On a CPU, norms, codes and the
// values of SphereRoundTrip equal the scalar ones bit for bit. ProductRoundTrip multiplies by a
// Gaussian matrix S with LibTorch, which sums in another order, so the last bits of its values
// differ.
#pragma once

#include <ATen/core/Tensor.h>

#include "linalg/sphere_codec.h"

namespace oscar {

// Returns norms [..., 1] of rows [..., dim], float32 or float64.
at::Tensor RowNorms(const at::Tensor& rows);

// Returns rows [..., dim] as read back. They must already be rotated.
at::Tensor SphereRoundTrip(const at::Tensor& rows, const SphereRule& rule);
// `s`: [dim, dim], standard normal, in the type of the rows.
at::Tensor ProductRoundTrip(const at::Tensor& rows, const SphereRule& rule, const at::Tensor& s);

}  // namespace oscar
