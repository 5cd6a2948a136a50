// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A cache of plausible random numbers for tests and benchmarks of kernels that read it. Pages are
// in random order, and every slot without a token holds NaN. Tensors are filled on the device from
// a hash of position and seed, so equal seeds give equal caches for any page size.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "export/cuda/cache/cache_view.h"
#include "export/cuda/device/device_array.h"

namespace oscar {

struct RandomCacheOptions {
  CacheFormat format;
  int num_kv_heads = 8;
  std::vector<int> lengths = {1024};  // tokens per request
  int sink_tokens = 64;
  int recent_tokens = 256;  // tokens in bf16; up to 7 more, as 8 are quantized at a time
  int recent_slots = 272;
  uint64_t seed = 1;
  double outlier_share = 0.002;  // share of tokens whose keys are 20 times as large
  // If not null, the new cache shares the lengths and the page table of this cache, as the layers
  // of a model do. Both need the same options, and the shared tables must outlive the new cache.
  const CacheView* same_tables = nullptr;
};

class RandomCache {
 public:
  explicit RandomCache(const RandomCacheOptions& options);
  const CacheView& view() const { return view_; }
  // Returns the bytes that one decode step reads: records of quantized tokens, and bf16 rows.
  double bytes() const { return bytes_; }

 private:
  DeviceArray<uint8_t> pages_;
  DeviceArray<__nv_bfloat16> windows_;
  DeviceArray<int32_t> page_table_, lengths_, quantized_, window_of_request_;
  CacheView view_;
  double bytes_ = 0;
};

// Fills values [size] with standard normal numbers times `scale`.
void FillNormal(__nv_bfloat16* values, size_t size, double scale, uint64_t seed);

}  // namespace oscar
