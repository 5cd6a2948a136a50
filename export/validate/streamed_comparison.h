// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures the same as RowComparison for all rows of a sequence, without a score matrix as wide as
// the context. The kernel of export/cuda/attention_kl measures quantized keys; tensors measure the
// few keys that a row reads exactly. A row's softmax is cut into these parts and the sink: KL(S ||
// S^) is the KL of the parts' weights plus the weighted KL within each part. Keys and values go to
// the kernel as two bf16 numbers each, so results have float32 precision.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "calib/cache/row_comparison.h"

namespace oscar {

class StreamedComparison {
 public:
  // Whether the kernel supports the reference's rows, [tokens, heads, dim] each: bf16 on a GPU, key
  // head dims up to 128 (64 if shared memory is short), value head dims up to 168, no latents.
  // False in a build without the kernel.
  static bool Takes(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                    const at::Tensor& v);

  StreamedComparison(const AttentionSpec& spec, const at::Tensor& q, const at::Tensor& k,
                     const at::Tensor& v);

  const ReferenceRows& reference() const { return reference_; }
  RowErrors NoErrors() const;  // errors of the reference itself
  // Works like RowComparison::Compare. Own queries are [tokens, num_q_heads, dim] in bf16.
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
