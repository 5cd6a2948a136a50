// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The codecs of linalg/sphere_codec.h on tensors of any device: norms, codes and mse values equal
// the scalar ones bit for bit on a CPU. Products with S are library matrix products with their own
// order of summation, so their last bits differ.
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
