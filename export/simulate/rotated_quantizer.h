// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The keys or the values of a cache that transforms, clips and quantizes each row, and undoes the
// transform when reading: x -> D(Q(clip((x - mean) R))) R^-1 + mean, where D decodes the codes that
// Q makes. Tokens are row vectors, so a rotated token is x R.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "calib/cache_side.h"

namespace oscar {

struct RotatedQuantizer {
  at::Tensor rotation = {};    // [num_kv_heads or 1, dim, dim] float32; undefined: the identity
  AffineQuantizer codes = {};  // for rotated rows
  at::Tensor inverse = {};     // inverse of `rotation`, if that is not its transpose
  at::Tensor mean = {};        // [num_kv_heads, dim] float32; undefined: none
  at::Tensor feedback = {};    // [num_kv_heads or 1, dim, dim] float32; undefined: none
  // If set, replaces quantization by `codes`: maps rows [num_kv_heads, tokens, dim], already
  // clipped at the ratio in `codes`, to the rows that are read back.
  std::function<at::Tensor(const at::Tensor& rows)> codec = {};
};

// The keys and the values of a layer.
struct RotatedSides {
  RotatedQuantizer k, v;
  at::Tensor pair_scale = {};  // [num_kv_heads, d], folded into the checkpoint; undefined: none
};

// Moves the quantizer's tensors to the device of the rows, so that later sequences need no copy.
void GoTo(const at::Tensor& rows, RotatedQuantizer& quantizer);

// Returns rows [tokens, num_kv_heads, dim] as the cache returns them: float64 for float64 rows,
// else computed in float32, as in runtimes.
at::Tensor RoundTrip(const RotatedQuantizer& quantizer, const at::Tensor& rows);

// Does the middle step of RoundTrip on transformed rows [num_kv_heads, tokens, dim].
at::Tensor ClippedAndQuantized(const RotatedQuantizer& quantizer, const at::Tensor& rows);

}  // namespace oscar
