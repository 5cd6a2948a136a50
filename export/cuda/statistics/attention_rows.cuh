// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Device side of attention_rows.h: walking the rows of one KV head and reading eight values of one.
// Row r of a KV head is query head r % gqa_ratio of token r / gqa_ratio.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "export/cuda/statistics/attention_rows.h"

namespace oscar {

// AttentionRows in bytes.
struct RowsView {
  const char* data;
  int64_t token_bytes, head_bytes;  // strides
  int num_tokens, num_kv_heads, gqa_ratio, dim;
  RowType type;
};

inline RowsView ViewOf(const AttentionRows& rows) {
  const int size = RowTypeBytes(rows.type);
  return {.data = static_cast<const char*>(rows.data),
          .token_bytes = rows.token_stride * size,
          .head_bytes = rows.head_stride * size,
          .num_tokens = static_cast<int>(rows.num_tokens),
          .num_kv_heads = rows.num_kv_heads,
          .gqa_ratio = rows.gqa_ratio(),
          .dim = rows.dim,
          .type = rows.type};
}

// Tokens [first, first + count) of a split, of equal lengths but the last.
struct TokenRange {
  int first, count;
};
__device__ inline TokenRange TokensOfSplit(int num_tokens, int tokens_per_split, int split) {
  const int first = split * tokens_per_split;
  return {first, min(tokens_per_split, num_tokens - first)};
}

// Every kStride-th row of one KV head over a range of tokens, beginning with `row`.
template <int kStride>
class RowCursor {
 public:
  __device__ RowCursor(const RowsView& rows, int kv_head, TokenRange tokens, int row)
      : token_(tokens.first + row / rows.gqa_ratio),
        head_(row % rows.gqa_ratio),
        left_(tokens.count * rows.gqa_ratio - row),
        token_step_(kStride / rows.gqa_ratio),
        head_step_(kStride % rows.gqa_ratio),
        data_(rows.data +
              (static_cast<int64_t>(kv_head) * rows.gqa_ratio + head_) * rows.head_bytes +
              token_ * rows.token_bytes),
        step_bytes_(token_step_ * rows.token_bytes + head_step_ * rows.head_bytes) {}

  __device__ bool valid() const { return left_ > 0; }
  __device__ const char* data() const { return data_; }
  __device__ int token() const { return token_; }

  __device__ void Advance(const RowsView& rows) {
    left_ -= kStride;
    token_ += token_step_;
    head_ += head_step_;
    data_ += step_bytes_;
    if (head_ >= rows.gqa_ratio) {
      head_ -= rows.gqa_ratio;
      ++token_;
      data_ += rows.token_bytes - rows.gqa_ratio * rows.head_bytes;
    }
  }

 private:
  int token_, head_, left_, token_step_, head_step_;
  const char* data_;
  int64_t step_bytes_;
};

// Eight values as they lie in memory.
template <RowType kType>
struct RawValues {
  uint4 words[RowTypeBytes(kType) / 2];

  __device__ uint32_t word(int i) const {
    const uint4& four = words[i / 4];
    return i % 4 == 0 ? four.x : i % 4 == 1 ? four.y : i % 4 == 2 ? four.z : four.w;
  }
};

// Zeros where there are none.
template <RowType kType>
__device__ inline RawValues<kType> LoadRaw(const char* values, bool exists) {
  RawValues<kType> raw;
#pragma unroll
  for (int i = 0; i < RowTypeBytes(kType) / 2; ++i) {
    raw.words[i] = {0, 0, 0, 0};
    if (exists) raw.words[i] = __ldg(reinterpret_cast<const uint4*>(values) + i);
  }
  return raw;
}

// Values 2 i and 2 i + 1; exact.
template <RowType kType>
__device__ inline float2 PairOf(const RawValues<kType>& raw, int i) {
  if constexpr (kType == RowType::kFloat32) {
    return {__uint_as_float(raw.word(2 * i)), __uint_as_float(raw.word(2 * i + 1))};
  } else if constexpr (kType == RowType::kBFloat16) {
    return {__uint_as_float(raw.word(i) << 16), __uint_as_float(raw.word(i) & 0xffff0000u)};
  } else {
    const uint32_t word = raw.word(i);
    return __half22float2(reinterpret_cast<const __half2&>(word));
  }
}

// Calls visit(std::integral_constant<RowType, type>).
template <typename Visit>
auto WithRowType(RowType type, const Visit& visit) {
  switch (type) {
    case RowType::kBFloat16:
      return visit(std::integral_constant<RowType, RowType::kBFloat16>());
    case RowType::kFloat16:
      return visit(std::integral_constant<RowType, RowType::kFloat16>());
    case RowType::kFloat32:
      break;
  }
  return visit(std::integral_constant<RowType, RowType::kFloat32>());
}

}  // namespace oscar
