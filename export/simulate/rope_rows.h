// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Removes and restores the rotary embedding of keys, for methods that quantize keys before rope.
// Cached keys contain the embedding, so it is undone before quantization and applied again when
// keys are read. The model may have computed cosines in bfloat16, so undoing the embedding gives
// the model's projections only up to that rounding.
#pragma once

#include <ATen/core/Tensor.h>

#include "capture/model/spec/rope_spec.h"

namespace oscar {

// Rows [tokens, heads, head_dim], float32 or float64, are at consecutive positions. Rope rotates
// the first rope.rotary_dim dimensions of a head. Angles are float32 products as in the model;
// cosines and sines have the rows' type.
at::Tensor UndoRope(const at::Tensor& rows, const RopeSpec& rope);
at::Tensor ApplyRope(const at::Tensor& rows, const RopeSpec& rope);

}  // namespace oscar
