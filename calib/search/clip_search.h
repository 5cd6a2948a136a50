// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Percentile clipping chosen by the error it leaves: for each candidate ratio, the quantization
// error of held-out rows weighted with the calibration importance, tr(C EᵀE) / tr(C XᵀX) summed
// over KV heads, E = X̂ - X. For keys with C = C_Q that is the expected squared logit error over the
// logits' own energy.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "calib/job/layer_result.h"
#include "linalg/matrix.h"

namespace oscar {

// [tokens, num_kv_heads, dim] in any dtype -> rotated [num_kv_heads, tokens, dim] float32
// contiguous.
at::Tensor RotateRows(const at::Tensor& rows, const at::Tensor& rotation);

// Candidates that a search works on at a time, each `values` float32 values.
int64_t CandidatesAtOnce(int64_t values, at::DeviceType device);

// `rows` [tokens, num_kv_heads, dim]: held out; `importance` per KV head [dim, dim]: from the
// fitted tokens. Fills side.clip_error (over `candidates`) and side.clip_ratio: the least error,
// the larger ratio on ties.
void SearchClip(const at::Tensor& rows, const std::vector<Matrix>& importance,
                const std::vector<double>& candidates, int64_t quant_group_size, SideResult& side);

// Fills side.clip_threshold: per KV head, element min(int(c n), n - 1) of all n values |x R| in
// ascending order.
void StaticThresholds(
    const std::vector<at::Tensor>& rows /* per sequence [tokens, num_kv_heads, dim] */,
    SideResult& side);

}  // namespace oscar
