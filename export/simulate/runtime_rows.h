// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Quantizes rotated rows as serving runtimes do, on tensors of any device. On a CPU, each result
// equals a scalar reference in linalg/ bit for bit. Trap: runtimes compute the clip threshold for a
// ratio in three different ways. One runtime uses two of them, depending on the kernel that writes
// the token.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace oscar {

enum class ClipVariant {
  kSort,         // an order statistic of |row| (percentile_clip.h)
  kBisect,       // ceil(log2 dim) bisection steps towards the statistic below it
  kInterpolate,  // torch.quantile(|row|, ratio)
};

enum class RowCodec {
  kAffine,    // affine_codec.h: float32 scale and zero per quantization group
  kLloydMax,  // SGLANG_LLOYD_MAX=1: equidistant levels around the mean for whole rows, else kAffine
  kHalfOffset,  // vLLM: float16 scale and minimum, whole rows
  kLlamaQ2,     // llama.cpp's q2_0: blocks of 32 with float16 sigma and mean, clips itself
};

struct RowWriter {
  RowCodec codec = RowCodec::kAffine;
  ClipVariant clip = ClipVariant::kSort;
};

// Returns clip thresholds [..., 1] for rows [..., dim], which are float32 or, except for
// kInterpolate, float64. Undefined if the ratio does not clip (<= 0).
at::Tensor RowThresholds(const at::Tensor& rows, double ratio, ClipVariant variant);

// Returns rows [..., dim] float32, contiguous, as read back after clipping and quantization.
at::Tensor WriteAndRead(const RowWriter& writer, const at::Tensor& rows, double clip_ratio,
                        int64_t quant_group_size);

}  // namespace oscar
