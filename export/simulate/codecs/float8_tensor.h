// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The codecs of linalg/float8.h for tensors on any device: rows stored in 8-bit floats and read
// back.
#pragma once

#include <ATen/core/Tensor.h>

#include "linalg/float8.h"

namespace oscar {

// `rows`: float32 or float64, finite. `scales`: of the same type, broadcast over the rows.
at::Tensor Float8RoundTrip(const at::Tensor& rows, const at::Tensor& scales, Float8Type type);

}  // namespace oscar
