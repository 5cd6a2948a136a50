// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows that statistics are taken of: queries, keys, values or attention outputs of one layer where
// they lie. The rows of a KV head are those of all gqa_ratio query heads that read it.
#pragma once

#include <cstdint>
#include <string>

namespace oscar {

enum class RowType { kBFloat16, kFloat16, kFloat32 };
constexpr int RowTypeBytes(RowType type) { return type == RowType::kFloat32 ? 4 : 2; }

inline constexpr int kMinRowDim = 32, kMaxRowDim = 512;  // and multiples of 8 between
inline constexpr int64_t kMaxRowTokens = int64_t{1} << 24;
inline constexpr int kMaxRowHeads = 1024;

struct AttentionRows {
  const void* data = nullptr;  // [num_tokens, num_heads, dim] of `type`, device; dim is contiguous
  RowType type = RowType::kBFloat16;
  int64_t num_tokens = 0;
  int num_heads = 0;  // num_kv_heads * gqa_ratio; query head i belongs to KV head i / gqa_ratio
  int num_kv_heads = 0;
  int dim = 0;
  int64_t token_stride = 0;  // values, a multiple of 8
  int64_t head_stride = 0;   // values, a multiple of 8

  int gqa_ratio() const { return num_heads / num_kv_heads; }
};

// Contiguous rows.
AttentionRows ContiguousRows(const void* data, RowType type, int64_t num_tokens, int num_heads,
                             int num_kv_heads, int dim);

// What is not supported, and what is; empty where they are.
std::string WhyUnsupported(const AttentionRows& rows);
// Throws UsageError of that.
void CheckAttentionRows(const AttentionRows& rows);
// And refuses more than one head per KV head.
void CheckKeyRows(const AttentionRows& rows);

}  // namespace oscar
