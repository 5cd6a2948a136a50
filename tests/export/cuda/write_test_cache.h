// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A device cache for tests of the write path, and the expected contents of its pages and windows.
// Those are built on the CPU from rotated rows with linalg/affine_codec.h and cache_format.h. Bytes
// that are never written start as 0xFF (NaN in every type) and must stay so.
#pragma once

#include <cuda_bf16.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "export/cuda/cache/cache_view.h"
#include "export/cuda/device/device_array.h"
#include "export/cuda/write/write_cache.h"
#include "linalg/affine_codec.h"

namespace oscar {

struct WriteTestShape {
  CacheFormat format;
  int num_kv_heads = 2;
  std::vector<int> lengths;    // tokens per request, after the write
  std::vector<int> quantized;  // tokens in pages per request, after the write
  int sink_tokens = 16;
  int recent_slots = 32;
};

using Bf16Rows = std::vector<__nv_bfloat16>;  // [tokens, num_kv_heads, dim]

class WriteTestCache {
 public:
  explicit WriteTestCache(const WriteTestShape& shape);
  const CacheView& view() const { return view_; }
  void SetCounters(const std::vector<int>& lengths, const std::vector<int>& quantized);
  // Makes Expect() apply error feedback to one side from now on. `factors`: [num_kv_heads, dim,
  // dim], row-major; empty: no feedback.
  void SetFeedback(bool values, std::vector<float> factors) {
    factors_[values ? 1 : 0] = std::move(factors);
  }
  int32_t* lengths() const { return lengths_.data(); }  // on the device
  int32_t* quantized() const { return quantized_.data(); }

  // Records the rows that the cache must hold after a write at `position` of `request`. `k` and
  // `v`: rotated rows [num_kv_heads, dim]. Rows that the codec refuses must be NaN and are counted.
  void Expect(int request, int position, const __nv_bfloat16* k, const __nv_bfloat16* v,
              const WriteOptions& options);
  int bad_rows() const { return bad_rows_; }

  // Compares every byte of pages and windows. In metadata, -0 equals +0.
  ::testing::AssertionResult Matches() const;

 private:
  void ExpectQuantized(int request, int token, int head, const __nv_bfloat16* row, bool values,
                       const WriteSide& side, ClipMethod method);
  uint8_t* ExpectedRecord(int request, int token, int head);

  CacheView view_;
  std::vector<int32_t> table_, window_of_request_, host_lengths_, host_quantized_;
  DeviceArray<uint8_t> pages_;
  DeviceArray<__nv_bfloat16> windows_;
  DeviceArray<int32_t> page_table_, lengths_, quantized_, window_of_;
  std::vector<uint8_t> expected_pages_;
  std::vector<__nv_bfloat16> expected_windows_;
  std::vector<float> factors_[2];
  int bad_rows_ = 0;
};

std::vector<float> ToFloats(const __nv_bfloat16* row, int dim);
// Returns [size] normal values. Every 37th is multiplied by 10.
Bf16Rows RandomBf16(size_t size, uint64_t seed, double scale = 1);

}  // namespace oscar
