// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Device versions of linalg/affine_group.h and linalg/affine_metadata.h, and the storing of
// metadata in records, with one rounding per operation. Nvcc may contract a * b + c, so nothing
// here uses plain operators.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "export/cuda/cache/cache_format.h"
#include "linalg/affine_group.h"
#include "linalg/affine_metadata.h"

namespace oscar {

// `min` and `max` are the extremes after clipping.
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

// Rounds to the values that a reader gets (StoredAffine of linalg/affine_metadata.h).
__device__ inline AffineGroup<float> AsStored(const AffineGroup<float>& affine, MetadataType type,
                                              int bits) {
  if (type == MetadataType::kFloat32) return affine;
  if (type == MetadataType::kBFloat16)
    return {__bfloat162float(__float2bfloat16_rn(affine.scale)),
            __bfloat162float(__float2bfloat16_rn(affine.zero))};
  const float clamped = fminf(fmaxf(affine.scale, kMinByteScale), kMaxByteScale);
  const uint32_t exponent = max(__float_as_uint(clamped) >> 23, 127U - 14U);
  const float anchor = __uint_as_float((exponent + 20U) << 23);
  const float middle = static_cast<float>(MaxCode(bits)) / 2,
              steps = static_cast<float>(ScaleSteps(bits)), limit = kMaxScaleSteps;
  const float zero =
      rintf(fminf(fmaxf(__fmul_rn(__fsub_rn(affine.zero, middle), steps), -limit), limit));
  return {__fsub_rn(__fadd_rn(clamped, anchor), anchor),
          __fadd_rn(middle, __fmul_rn(zero, 1 / steps))};  // steps are a power of two
}

// Returns the byte of a scale and, in the next higher byte, that of a zero, both as rounded by
// AsStored. A NaN scale gives the byte of NaN and a zero of 0.
__device__ inline uint32_t AffineBytes(const AffineGroup<float>& affine, int bits) {
  const uint32_t scale =
      affine.scale == affine.scale ? __half_as_ushort(__float2half_rn(affine.scale)) >> 7 : 0xFF;
  const auto zero =
      static_cast<int>(__fmul_rn(__fsub_rn(affine.zero, static_cast<float>(MaxCode(bits)) / 2),
                                 static_cast<float>(ScaleSteps(bits))));
  return scale | (static_cast<uint32_t>(zero) & 0xFF) << 8;
}

// Whether the stored scale and zero are finite. Byte metadata always is, unless the input is NaN.
__device__ inline bool IsStorable(const AffineGroup<float>& affine, MetadataType type) {
  if (type == MetadataType::kByte)
    return affine.scale == affine.scale && affine.zero == affine.zero;
  // The largest float that rounds to a finite bfloat16, or the largest float.
  const float limit =
      type == MetadataType::kBFloat16 ? __uint_as_float(0x7F7F7FFFU) : __uint_as_float(0x7F7FFFFFU);
  return (affine.scale <= limit) & (fabsf(affine.zero) <= limit);
}

// Stores the scale and zero of token t and a group, rounded to the metadata type. For byte metadata
// they must come from AsStored; NaN is stored as NaN and 0.
__device__ inline void StoreAffine(uint8_t* metadata, const PagedSide& side, MetadataType type,
                                   int t, int group, const AffineGroup<float>& affine) {
  const int index = MetadataIndex(side, type, t, group);
  if (type == MetadataType::kFloat32) {
    reinterpret_cast<float2*>(metadata)[index / 2] = make_float2(affine.scale, affine.zero);
  } else if (type == MetadataType::kBFloat16) {
    reinterpret_cast<__nv_bfloat162*>(metadata)[index / 2] =
        __floats2bfloat162_rn(affine.scale, affine.zero);
  } else {
    reinterpret_cast<uint16_t*>(metadata)[index / 2] =
        static_cast<uint16_t>(AffineBytes(affine, side.bits));
  }
}

__device__ inline float LowBf16(uint32_t word) { return __uint_as_float(word << 16); }
__device__ inline float HighBf16(uint32_t word) { return __uint_as_float(word & 0xFFFF0000U); }

}  // namespace oscar
