// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/typed_cache.h"

#include <ATen/ATen.h>

#include "export/simulate/codecs/float4_tensor.h"
#include "export/simulate/codecs/float8_tensor.h"

namespace oscar {

RotatedQuantizer TypedSide(CacheType type, float largest) {
  switch (type) {
    case CacheType::kNvfp4:
      return {.codec = [scale = largest > 0 ? Nvfp4Scale(largest) : 1](const at::Tensor& rows) {
        return Nvfp4RoundTrip(rows, scale);
      }};
    case CacheType::kFp8:
      return {.codec = [scale = largest > 0 ? Float8Scale(largest, Float8Type::kE4M3)
                                            : 1](const at::Tensor& rows) {
        return Float8RoundTrip(rows, at::full({}, scale, rows.options()), Float8Type::kE4M3);
      }};
    case CacheType::kBf16:
      break;
  }
  return {.codec = [](const at::Tensor& rows) { return rows; }};
}

RotatedSides TypedSides(const LayerTypes& types, const LargestMagnitudes& largest) {
  return {TypedSide(types.k, largest.k), TypedSide(types.v, largest.v)};
}

}  // namespace oscar
