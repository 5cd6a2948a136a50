// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/statistics/attention_rows.h"

#include <fmt/format.h>

#include "linalg/error.h"

namespace oscar {

AttentionRows ContiguousRows(const void* data, RowType type, int64_t num_tokens, int num_heads,
                             int num_kv_heads, int dim) {
  return {.data = data,
          .type = type,
          .num_tokens = num_tokens,
          .num_heads = num_heads,
          .num_kv_heads = num_kv_heads,
          .dim = dim,
          .token_stride = int64_t{num_heads} * dim,
          .head_stride = dim};
}

std::string WhyUnsupported(const AttentionRows& rows) {
  if (rows.dim < kMinRowDim || rows.dim > kMaxRowDim || rows.dim % 8 != 0)
    return fmt::format(
        "statistics of rows of {} values; supported are multiples of 8 from {} to {}", rows.dim,
        kMinRowDim, kMaxRowDim);
  if (rows.num_kv_heads < 1 || rows.num_heads < rows.num_kv_heads ||
      rows.num_heads % rows.num_kv_heads != 0 || rows.num_heads > kMaxRowHeads)
    return fmt::format(
        "statistics of {} heads over {} KV heads; supported are up to {} heads, a "
        "multiple of the KV heads",
        rows.num_heads, rows.num_kv_heads, kMaxRowHeads);
  if (rows.num_tokens < 0 || rows.num_tokens > kMaxRowTokens)
    return fmt::format("statistics of {} tokens; supported are 0 to {} in one call",
                       rows.num_tokens, kMaxRowTokens);
  if (rows.token_stride % 8 != 0 || rows.head_stride % 8 != 0 || rows.token_stride < 0 ||
      rows.head_stride < 0 || reinterpret_cast<uintptr_t>(rows.data) % 16 != 0)
    return fmt::format(
        "statistics of rows at {}, {} values from token to token and {} from head "
        "to head; rows must begin at multiples of 16 bytes, strides be multiples of "
        "8 values",
        rows.data, rows.token_stride, rows.head_stride);
  return "";
}

void CheckAttentionRows(const AttentionRows& rows) {
  if (const std::string why = WhyUnsupported(rows); !why.empty()) throw UsageError(why);
}

void CheckKeyRows(const AttentionRows& rows) {
  CheckAttentionRows(rows);
  if (rows.num_heads != rows.num_kv_heads)
    throw UsageError(
        fmt::format("weights of rows of {} heads over {} KV heads; supported are keys "
                    "and values, one head each",
                    rows.num_heads, rows.num_kv_heads));
}

}  // namespace oscar
