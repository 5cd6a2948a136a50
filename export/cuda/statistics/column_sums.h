// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums of rows in float64: the key mean, and the sums of weights. Same bytes as gram.h promises.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "export/cuda/statistics/attention_rows.h"

namespace oscar {

// Bytes of workspace; its content does not matter before or after. 8-byte aligned.
size_t ColumnSumsWorkspaceBytes(const AttentionRows& rows);

// sums += Σ x over the tokens and the query heads of each KV head; sums [num_kv_heads, dim]
// float64, device. Throws UsageError naming what is not supported, and what is.
void AccumulateColumnSums(const AttentionRows& rows, double* sums, void* workspace,
                          cudaStream_t stream);

}  // namespace oscar
