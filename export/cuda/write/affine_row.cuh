// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// linalg/affine_group.h and the metadata of a record on the device, one rounding per operation.
// Nvcc contracts a * b + c wherever it may, so nothing here uses plain operators.
#pragma once

#include <cuda_bf16.h>

#include "export/cuda/cache/cache_format.h"
#include "linalg/affine_group.h"

namespace oscar {

// min and max after clipping.
__device__ inline AffineGroup<float> FitAffineGroup(float min, float max, int max_code) {
  const float scale =
      __fdiv_rn(fmaxf(__fsub_rn(max, min), kMinAffineRange), static_cast<float>(max_code));
  return {scale, __fdiv_rn(-min, scale)};
}

__device__ inline float AffineCodeSum(float x, const AffineGroup<float>& affine) {
  return __fadd_rn(__fadd_rn(__fdiv_rn(x, affine.scale), affine.zero), 0.5F);
}

__device__ inline uint32_t ExactAffineCode(float x, const AffineGroup<float>& affine,
                                           int max_code) {
  const float t = truncf(AffineCodeSum(x, affine));
  return static_cast<uint32_t>(fminf(fmaxf(t, 0.0F), static_cast<float>(max_code)));
}

// Whether the stored scale and zero are finite.
__device__ inline bool IsStorable(const AffineGroup<float>& affine, MetadataType type) {
  // The largest float that rounds to a finite bfloat16, and the largest float.
  const float limit =
      type == MetadataType::kBFloat16 ? __uint_as_float(0x7F7F7FFFU) : __uint_as_float(0x7F7FFFFFU);
  return (affine.scale <= limit) & (fabsf(affine.zero) <= limit);
}

// Scale and zero of token t and a group, rounded to what is stored.
__device__ inline void StoreAffine(uint8_t* metadata, MetadataType type, int t, int group,
                                   const AffineGroup<float>& affine) {
  const int index = MetadataIndex(t, group);
  if (type == MetadataType::kFloat32) {
    reinterpret_cast<float2*>(metadata)[index / 2] = make_float2(affine.scale, affine.zero);
  } else {
    reinterpret_cast<__nv_bfloat162*>(metadata)[index / 2] =
        __floats2bfloat162_rn(affine.scale, affine.zero);
  }
}

__device__ inline float LowBf16(uint32_t word) { return __uint_as_float(word << 16); }
__device__ inline float HighBf16(uint32_t word) { return __uint_as_float(word & 0xFFFF0000U); }

}  // namespace oscar
