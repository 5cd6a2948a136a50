// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention scores: softmax rows for chosen queries and the log-sum-exp of every row, in float32
// for any compute dtype. Softmax rows for R queries, H heads and T keys take 4 R H T bytes.
// Temporaries take less, because rows are processed in pieces.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "capture/model/spec/model_spec.h"

namespace oscar {

// Natural log of sum_j exp(scale * q[i, h] . k[j]) over the keys that query i sees. If the layer
// has a soft cap, logits are capped first. If it has sinks [num_q_heads], the sum includes them.
// q [T, num_q_heads, head_dim], k [T, num_kv_heads, head_dim] of one sequence
// -> [T, num_q_heads] float32, on the device
at::Tensor LogSumExpRows(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                         const at::Tensor& sinks = {});

// Softmax rows for the queries at `rows` (token positions in the sequence, in [0, T)). Keys that a
// query does not see have 0. If the layer has sinks, a row sums to less than 1, because the sink's
// share is not included.
// -> [rows, num_q_heads, T] float32, on the device
at::Tensor SoftmaxRows(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                       std::span<const int64_t> rows, const at::Tensor& sinks = {});

// The same for rows [n] int64 on the device of q. Their queries see at most the first `num_keys`
// keys. Does not wait for the device.
// -> [n, num_q_heads, num_keys] float32
at::Tensor SoftmaxRows(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& rows, int64_t num_keys, const at::Tensor& sinks = {});

}  // namespace oscar
