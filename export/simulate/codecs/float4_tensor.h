// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// linalg/float4.h on tensors of any device: the same operations in the same order, so values equal
// the scalar ones bit for bit.
#pragma once

#include <ATen/core/Tensor.h>

#include "linalg/float4.h"

namespace oscar {

// Returns rows [..., dim] read back: float32 or float64, finite, dim a multiple of 16. `scale`: g.
at::Tensor Nvfp4RoundTrip(const at::Tensor& rows, float scale);

}  // namespace oscar
