// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The codecs of linalg/lloyd_max_codec.h for tensors on any device. They do the same operations in
// the same order, so codes and values equal the scalar ones bit for bit on a CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include "linalg/lloyd_max_codec.h"
#include "linalg/stored_float.h"

namespace oscar {

// Returns rows [..., dim] read back: float32 or float64, already rotated and clipped.
at::Tensor LloydMaxRoundTrip(const at::Tensor& rows, LloydMaxForm form,
                             StoredFloat metadata = StoredFloat::kFloat32);

}  // namespace oscar
