// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A cache on the device for tests of what writes it, and the image that its pages and windows
// should have, built on the CPU from rotated rows by linalg/affine_codec.h and cache_format.h.
// Everything that nobody wrote is 0xFF (NaN in every type), and must still be afterwards.
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
  std::vector<int> lengths;    // of requests, after the write
  std::vector<int> quantized;  // likewise
  int sink_tokens = 16;
  int recent_slots = 32;
};

using Bf16Rows = std::vector<__nv_bfloat16>;  // [tokens, num_kv_heads, dim]

class WriteTestCache {
 public:
  explicit WriteTestCache(const WriteTestShape& shape);
  const CacheView& view() const { return view_; }
  void SetCounters(const std::vector<int>& lengths, const std::vector<int>& quantized);
  // From this call on, rows of a side are expected with error feedback: factors [num_kv_heads, dim,
  // dim], row-major; empty: without feedback.
  void SetFeedback(bool values, std::vector<float> factors) {
    factors_[values ? 1 : 0] = std::move(factors);
  }
  int32_t* lengths() const { return lengths_.data(); }  // device
  int32_t* quantized() const { return quantized_.data(); }

  // Records the rows that a write of position `position` of `request` must leave: `k` and `v` are
  // rotated, [num_kv_heads, dim]. Rows that the codec refuses are expected as NaN and counted.
  void Expect(int request, int position, const __nv_bfloat16* k, const __nv_bfloat16* v,
              const WriteOptions& options);
  int bad_rows() const { return bad_rows_; }

  // Compares every byte of pages and windows. Zeros of either sign are one value.
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
// [size] normal values, every 37th ten times as large.
Bf16Rows RandomBf16(size_t size, uint64_t seed, double scale = 1);

}  // namespace oscar
