// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// One sequence of one layer in a cache that the CUDA kernels write and read. The write kernel
// writes prefixes of the sequence (states), and the decode kernel reads each of them. States share
// the pages, because a longer state only adds to them; each state has its own windows.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "capture/model/spec/model_spec.h"
#include "export/cuda/cache/cache_view.h"
#include "export/cuda/write/write_cache.h"
#include "linalg/cache_windows.h"  // CacheWindows

namespace oscar {

// A layer's rotations and clip ratios in the form that the kernels take.
struct KernelRotations {
  at::Tensor k, v;  // [num_kv_heads or 1, dim, dim] bf16, device
  double k_clip = 0, v_clip = 0;
};

// Returns the number of tokens that a sequence of `length` tokens has in pages: those outside the
// windows, rounded down to a multiple of eight.
int64_t QuantizedTokens(int64_t length, const CacheWindows& windows);

class KernelCache {
 public:
  // Writes the whole sequence on LibTorch's stream. `k` [T, num_kv_heads, head_dim] and `v` [T,
  // num_kv_heads, v_head_dim] are contiguous bf16 on one GPU. `lengths` are the states' lengths, in
  // ascending order up to T. Throws UsageError for a shape or format that the kernels do not
  // support, NumericalError for values that are not finite.
  KernelCache(const AttentionSpec& spec, const CacheFormat& format, const CacheWindows& windows,
              const KernelRotations& rotations, const at::Tensor& k, const at::Tensor& v,
              const std::vector<int64_t>& lengths);

  struct Decoded {
    at::Tensor q;    // [lengths, num_q_heads, head_dim] bf16: the rotated queries
    at::Tensor out;  // [lengths, num_q_heads, v_head_dim] float32, rotated
    double us = 0;   // time of the launch
  };
  // `q` [lengths, num_q_heads, head_dim] bf16 holds the query of each state's last token. `sinks`
  // [num_q_heads] float32 on the device are given if the layer has attention sinks.
  Decoded Decode(const at::Tensor& q, const at::Tensor& sinks = {}) const;

  const at::Tensor& rotated_k() const { return rotated_k_; }  // [T, num_kv_heads, head_dim] bf16
  const at::Tensor& rotated_v() const { return rotated_v_; }
  const at::Tensor& pages() const { return pages_; }  // [bytes] uint8
  double write_us() const { return write_us_; }       // for the whole sequence

 private:
  CacheView View(size_t first, size_t count) const;  // shows `count` states from `first` on

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
