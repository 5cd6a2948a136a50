// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The NVFP4 codec of linalg/float4.h for tensors on any device. It does the same operations in the
// same order, so values equal the scalar ones bit for bit.
#pragma once

#include <ATen/core/Tensor.h>

#include "linalg/float4.h"

namespace oscar {

// Returns rows [..., dim] as read back: float32 or float64, finite, dim a multiple of 16. `scale`
// is the tensor's scale.
at::Tensor Nvfp4RoundTrip(const at::Tensor& rows, float scale);

}  // namespace oscar
