// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures the same as RowComparison for all rows of a sequence, without a score matrix as wide as
// the context. The kernel of export/cuda/attention_kl compares quantized keys; tensor operations
// compare the few keys that a row reads exactly.
//
// A row's softmax consists of these two parts and the attention sink. KL(S || S^) is the KL between
// the weights of the parts, plus the weighted KL within each part. The kernel gets keys and values
// as two bf16 numbers each, so results have float32 precision.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "calib/cache/row_comparison.h"

namespace oscar {

class StreamedComparison {
 public:
  // Whether the kernel supports the reference's rows, [tokens, heads, dim] each. It needs bf16 on a
  // GPU, key heads of up to 128 values (64 if the GPU has little shared memory), value heads of up
  // to 168, and no latent attention. Returns false in a build without the kernel.
  static bool Takes(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                    const at::Tensor& v);

  StreamedComparison(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v);

  const ReferenceRows& reference() const { return reference_; }
  RowErrors NoErrors() const;  // errors of the reference itself
  // Works like RowComparison::Compare. `own_queries` are [tokens, num_q_heads, dim] in bf16.
  std::vector<RowErrors> Compare(const StoredCache& stored, const at::Tensor& own_queries,
                                 std::span<const ExactSides> exact) const;

 private:
  struct Part;
  struct Reach;
  struct Operands;

  Part QuantizedPart(int64_t begin, int64_t end, const Reach& reach,
                     const Operands& operands) const;
  Part ExactPart(int64_t begin, int64_t end, const Reach& reach, const StoredCache& stored,
                 const at::Tensor& own_queries, const ExactSides& exact) const;
  at::Tensor Merge(std::span<const Part> parts) const;
  at::Tensor CompareRows(const StoredCache& stored, const at::Tensor& own_queries,
                         const ExactSides& exact) const;
  at::Tensor Logits(const at::Tensor& queries, const at::Tensor& keys) const;

  AttentionSpec spec_;
  at::Tensor q_, k_, v_;                  // rows of the reference
  at::Tensor q_twice_, k_wide_, v_wide_;  // [q | q], [k | 0], [v | 0 | 0]
  at::Tensor sinks_;                      // [num_kv_heads, gqa_ratio, 1, 1] float32, or undefined
  ReferenceRows reference_;
};

}  // namespace oscar
