// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// How serving runtimes quantize rotated rows, on tensors of any device; each equals a scalar
// reference of linalg/ bit for bit on a CPU. Trap: the same threshold has three definitions, and
// one runtime uses two of them, by the kernel that writes the token.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace oscar {

enum class ClipVariant {
  kSort,         // an order statistic of |row| (percentile_clip.h)
  kBisect,       // ceil(log2 dim) halvings towards the one below it
  kInterpolate,  // torch.quantile(|row|, ratio)
};

enum class RowCodec {
  kAffine,    // affine_codec.h: float32 scale and zero per quantization group
  kLloydMax,  // SGLANG_LLOYD_MAX=1: equidistant levels around the mean, whole rows; groups: kAffine
  kHalfOffset,  // vLLM: half scale and minimum, whole rows
  kLlamaQ2,     // llama.cpp's q2_0: blocks of 32 with half sigma and mean, clipped inside
};

struct RowWriter {
  RowCodec codec = RowCodec::kAffine;
  ClipVariant clip = ClipVariant::kSort;
};

// [..., 1] of rows [..., dim] float32, or float64 where nothing interpolates; undefined for a ratio
// that clips nothing (<= 0).
at::Tensor RowThresholds(const at::Tensor& rows, double ratio, ClipVariant variant);

// Returns rows [..., dim] float32, contiguous, as a reader gets them: clipped, quantized and back.
at::Tensor WriteAndRead(const RowWriter& writer, const at::Tensor& rows, double clip_ratio,
                        int64_t quant_group_size);

}  // namespace oscar
