// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scores inside attention: softmax rows for chosen queries and the log-sum-exp of every row, in
// float32 for any compute dtype. Results for R rows, H heads and T keys take 4 R H T bytes;
// temporaries take less, because rows are processed in pieces.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "capture/model/spec/model_spec.h"

namespace oscar {

// Natural log of sum_j exp(scale * q[i, h] . k[j]) over the keys that query i sees. If the layer
// has a soft cap, logits are capped; if it has sinks [num_q_heads], they add a term. q [T,
// num_q_heads, head_dim], k [T, num_kv_heads, head_dim] of one sequence -> [T, num_q_heads]
// float32, device
at::Tensor LogSumExpRows(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                         const at::Tensor& sinks = {});

// Softmax rows for the queries at `rows` (token positions in the sequence, in [0, T)); 0 for keys
// that a query does not see. Their sums lack the share of a sink. -> [rows, num_q_heads, T]
// float32, device
at::Tensor SoftmaxRows(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                       std::span<const int64_t> rows, const at::Tensor& sinks = {});

// SoftmaxRows for rows [n] int64 on the device of q, which read at most the first `num_keys` keys.
// -> [n, num_q_heads, num_keys] float32; does not wait for the device
at::Tensor SoftmaxRows(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& rows, int64_t num_keys, const at::Tensor& sinks = {});

}  // namespace oscar
