// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Keys before their rotary embedding, for methods that quantize there. Cached rows have the
// embedding, so it is undone and applied again. The model used cosines of its own type (perhaps
// bfloat16), so undoing it gives the model's projections only up to that rounding.
#pragma once

#include <ATen/core/Tensor.h>

#include "capture/model/spec/rope_spec.h"

namespace oscar {

// Rows [tokens, heads, head_dim], float32 or float64, are at positions 0, 1, ... Rope rotates the
// first rope.rotary_dim dimensions of a head. Angles are float32 products as in the model; cosines
// and sines have the rows' type.
at::Tensor UndoRope(const at::Tensor& rows, const RopeSpec& rope);
at::Tensor ApplyRope(const at::Tensor& rows, const RopeSpec& rope);

}  // namespace oscar
