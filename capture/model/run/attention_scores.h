// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Scores inside attention: softmax rows of chosen queries and the log-sum-exp of every row, in
// float32 for any compute dtype. Each row has T values, so R rows of H heads take 4 R H T bytes.
// The functions work in pieces, but the result has that size.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "capture/model/spec/model_spec.h"

namespace oscar {

// Natural log of sum_j exp(scale * q[i, h] . k[j]) over the keys that query i sees. If the
// layer has them, logits are capped and sinks [num_q_heads] add one term. q [T, num_q_heads,
// head_dim], k [T, num_kv_heads, head_dim] of one sequence -> [T, num_q_heads] float32,
// device
at::Tensor LogSumExpRows(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                         const at::Tensor& sinks = {});

// Softmax rows of the queries at `rows` (token positions in the sequence, in [0, T)); 0 for keys
// that a query does not see. The share of a sink is missing from their sums. -> [rows, num_q_heads,
// T] float32, device
at::Tensor SoftmaxRows(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                       std::span<const int64_t> rows, const at::Tensor& sinks = {});

// SoftmaxRows for rows on the device of q, [n] int64, which read at most the first `num_keys` keys.
// -> [n, num_q_heads, num_keys] float32; does not wait for the device
at::Tensor SoftmaxRows(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& rows, int64_t num_keys, const at::Tensor& sinks = {});

}  // namespace oscar
