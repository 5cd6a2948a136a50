// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Chooses the percentile clip ratio with the smallest error. The error of a ratio is the
// quantization error of held-out rows, weighted by the calibration importance: tr(C EᵀE) / tr(C
// XᵀX) summed over KV heads, E = X̂ - X. For keys, C = C_Q, so this is the expected squared logit
// error divided by the logits' energy.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "calib/job/layer_result.h"
#include "linalg/matrix.h"

namespace oscar {

// Rotates [tokens, num_kv_heads, dim] in any dtype to contiguous float32 [num_kv_heads, tokens,
// dim].
at::Tensor RotateRows(const at::Tensor& rows, const at::Tensor& rotation);

// Returns how many candidates a search processes at once, with `values` float32 values each.
int64_t CandidatesAtOnce(int64_t values, at::DeviceType device);

// Searches `candidates` on held-out `rows` [tokens, num_kv_heads, dim]. `importance`, per KV head
// [dim, dim], comes from the fitted tokens. Fills side.clip_error with the errors of `candidates`,
// and sets side.clip_ratio to the candidate with the smallest error (the largest one on ties).
void SearchClip(const at::Tensor& rows, const std::vector<Matrix>& importance,
                const std::vector<double>& candidates, int64_t quant_group_size, SideResult& side);

// Fills side.clip_threshold for each KV head with element min(int(c n), n - 1) of all its n values
// x R| in ascending order, where c is the clip ratio.
void StaticThresholds(
    const std::vector<at::Tensor>& rows /* per sequence [tokens, num_kv_heads, dim] */,
    SideResult& side);

}  // namespace oscar
