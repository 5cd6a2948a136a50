// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// One sequence of one layer in a real cache. The write kernel writes its state at several
// positions, and the decode kernel reads each state. The states share their pages, to which a
// longer state only adds, but each has its own windows.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "capture/model/spec/model_spec.h"
#include "export/cuda/cache/cache_view.h"
#include "export/cuda/write/write_cache.h"
#include "linalg/cache_windows.h"  // CacheWindows

namespace oscar {

// A layer's rotations in the form that kernels take.
struct KernelRotations {
  at::Tensor k, v;  // [num_kv_heads or 1, dim, dim] bf16, device
  double k_clip = 0, v_clip = 0;
};

// Returns how many tokens are in pages for a sequence of `length`: those outside the windows, in
// groups of eight.
int64_t QuantizedTokens(int64_t length, const CacheWindows& windows);

class KernelCache {
 public:
  // Writes the whole sequence on LibTorch's stream. Tensors are contiguous bf16 on one GPU: k [T,
  // num_kv_heads, head_dim], v [T, num_kv_heads, v_head_dim]. `lengths` are ascending; the last is
  // T. Throws UsageError for a shape or format that the kernels do not support, NumericalError for
  // values that are not finite.
  KernelCache(const AttentionSpec& spec, const CacheFormat& format, const CacheWindows& windows,
              const KernelRotations& rotations, const at::Tensor& k, const at::Tensor& v,
              const std::vector<int64_t>& lengths);

  struct Decoded {
    at::Tensor q;    // [lengths, num_q_heads, head_dim] bf16: the rotated queries
    at::Tensor out;  // [lengths, num_q_heads, v_head_dim] float32, rotated
    double us = 0;   // time of the launch
  };
  // `q`: [lengths, num_q_heads, head_dim] bf16, the query of each state's last token. `sinks`:
  // [num_q_heads] float32 on the device, if the layer has them.
  Decoded Decode(const at::Tensor& q, const at::Tensor& sinks = {}) const;

  const at::Tensor& rotated_k() const { return rotated_k_; }  // [T, num_kv_heads, head_dim] bf16
  const at::Tensor& rotated_v() const { return rotated_v_; }
  const at::Tensor& pages() const { return pages_; }  // [bytes] uint8
  double write_us() const { return write_us_; }       // for the whole sequence

 private:
  CacheView View(size_t first, size_t count) const;  // shows states first, first + 1, ...

  const AttentionSpec& spec_;
  CacheFormat format_;
  CacheWindows windows_;
  const KernelRotations& rotations_;
  std::vector<int64_t> lengths_;
  int64_t page_table_stride_ = 0;
  at::Tensor pages_, windows_memory_;                           // bytes; bf16
  at::Tensor page_table_, state_lengths_, quantized_, window_;  // int32
  at::Tensor rotated_k_, rotated_v_;
  double write_us_ = 0;
};

}  // namespace oscar
