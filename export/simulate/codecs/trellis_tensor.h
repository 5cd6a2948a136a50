// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The code of linalg/trellis_code.h for tensors on any device. The path is the best one for a row
// scaled to unit variance. The stored scale preserves the row's norm. It lies between the scale
// with the smallest error, which makes rows too short, and that of linalg/scale_fit.h.
#pragma once

#include <ATen/core/Tensor.h>

#include "linalg/trellis_code.h"

namespace oscar {

// Returns rows [..., dim] as read back: float32 or float64, already rotated. state_bits > 2.
at::Tensor TrellisRoundTrip(const at::Tensor& rows, int state_bits = kTrellisStateBits);

}  // namespace oscar
