// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The quantizer of calib/cache/affine_tensor.h with a gradient: rounding and the range of codes
// pass it on unchanged, scale and zero pass their own, the clip threshold is a constant (OptR,
// arXiv 2608.02691). Values equal AffineRoundTrip's up to rounding and not bit for bit.
#pragma once

#include <ATen/core/Tensor.h>

#include "calib/search/rotation_refinement.h"  // RefinedQuantizer

namespace oscar {

// `rows` [..., dim] float32 or float64, transformed already; [num_kv_heads, ..., dim] where
// heads have ratios of their own.
at::Tensor StraightThroughRoundTrip(const at::Tensor& rows, const RefinedQuantizer& quantizer);

}  // namespace oscar
