// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// One side of a cache that rotates each row, clips it, quantizes it, and undoes all that on the way
// out: x -> D(Q(clip(x R))) R^T. Trap: tokens are row vectors, so a rotated token is x R.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace oscar {

struct RotatedQuantizer {
  at::Tensor rotation;           // [num_kv_heads or 1, dim, dim] float32; undefined: the identity
  int bits = 2;                  // 0: nothing is quantized
  double clip_ratio = 0;         // percentile of each row; <= 0 clips nothing
  int64_t quant_group_size = 0;  // values per scale; 0: the whole head
};

// What the cache gives back for rows [tokens, num_kv_heads, dim]: float64 for float64 rows, else
// computed in float32, as runtimes do.
at::Tensor RoundTrip(const RotatedQuantizer& quantizer, const at::Tensor& rows);

}  // namespace oscar
