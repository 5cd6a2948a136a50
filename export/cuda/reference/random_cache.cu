// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <cuda_fp16.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "export/cuda/reference/random_cache.h"
#include "linalg/base/splitmix64.h"

namespace oscar {
namespace {

constexpr int kThreads = 256;

__device__ inline uint64_t Hash(uint64_t x) { return SplitMix64(x).Next(); }
__device__ inline float Uniform(uint64_t x) {  // in (0, 1]
  return static_cast<float>((Hash(x) >> 40) + 1) * 0x1p-24F;
}
__device__ inline float Normal(uint64_t x) {
  return sqrtf(-2 * logf(Uniform(2 * x))) * cospif(2 * Uniform(2 * x + 1));
}

// Zeros stored as bytes lie between code 0 and the largest code.
__device__ inline void StoreMetadata(uint8_t* metadata, const PagedSide& side, MetadataType type,
                                     int token, int group, float scale, float zero) {
  const int index = MetadataIndex(side, type, token, group);
  if (type == MetadataType::kFloat32) {
    reinterpret_cast<float2*>(metadata)[index / 2] = make_float2(scale, zero);
  } else if (type == MetadataType::kBFloat16) {
    reinterpret_cast<__nv_bfloat162*>(metadata)[index / 2] = __floats2bfloat162_rn(scale, zero);
  } else {
    const float middle = static_cast<float>((1 << side.bits) - 1) / 2;
    metadata[index] = static_cast<uint8_t>(__half_as_ushort(__float2half_rn(scale)) >> 7);
    metadata[index + 1] =
        static_cast<uint8_t>(static_cast<int8_t>((zero - middle) * (1 << (7 - side.bits))));
  }
}

// One CTA per tile; grid [tiles, num_kv_heads, requests].
__global__ void FillPages(const CacheView view, uint64_t seed, float outlier_share) {
  const int tile = blockIdx.x, head = blockIdx.y, request = blockIdx.z;
  const int quantized = view.quantized[request];
  if (tile * kTileTokens >= quantized) return;
  const CacheFormat& format = view.format;
  const int tiles = format.page_tokens / kTileTokens;
  const int page = view.page_table[request * view.page_table_stride + tile / tiles];
  uint8_t* record = view.pages + page * PageBytes(format, view.num_kv_heads) +
                    int64_t{head * tiles + tile % tiles} * RecordBytes(format);
  const uint64_t base =
      Hash(seed + ((uint64_t{static_cast<uint32_t>(request)} << 40) ^
                   (uint64_t{static_cast<uint32_t>(head)} << 32) ^ static_cast<uint32_t>(tile)));
  uint32_t* words = reinterpret_cast<uint32_t*>(record);
  for (int i = threadIdx.x; i < KMetadataOffset(format) / 4; i += kThreads)
    words[i] = static_cast<uint32_t>(Hash(base + i) >> 32);
  for (int side = 0; side < 2; ++side) {
    const PagedSide& s = side == 0 ? format.k : format.v;
    uint8_t* metadata = record + (side == 0 ? KMetadataOffset(format) : VMetadataOffset(format));
    for (int i = threadIdx.x; i < GroupsPerRow(s) * kTileTokens; i += kThreads) {
      const int token = i % kTileTokens, group = i / kTileTokens;
      if (tile * kTileTokens + token >= quantized) continue;  // stays NaN
      const uint64_t x = base + 100000 + 1000 * side + 2 * i;
      const float max_code = static_cast<float>((1 << s.bits) - 1);
      float scale = (0.5F + Uniform(x)) * 3 / max_code;
      if (side == 0 && Uniform(base + 90000 + token) < outlier_share) scale *= 20;
      StoreMetadata(metadata, s, format.metadata, token, group, scale,
                    (0.3F + 0.4F * Uniform(x + 1)) * max_code);
    }
  }
}

// Grid: [slots, num_kv_heads, requests].
__global__ void FillWindows(const CacheView view, uint64_t seed) {
  const int slot = blockIdx.x, head = blockIdx.y, request = blockIdx.z;
  const int length = view.lengths[request], quantized = view.quantized[request];
  if (slot < view.sink_tokens) {
    if (slot >= length) return;
  } else {
    int age = slot - view.sink_tokens - quantized % view.recent_slots;
    if (age < 0) age += view.recent_slots;
    if (age >= length - view.sink_tokens - quantized) return;
  }
  __nv_bfloat16* rows =
      view.windows + (int64_t{view.window_of_request[request]} * view.num_kv_heads + head) *
                         WindowHeadValues(view);
  const CacheFormat& format = view.format;
  const uint64_t base =
      Hash(seed + 77 +
           ((uint64_t{static_cast<uint32_t>(request)} << 40) ^
            (uint64_t{static_cast<uint32_t>(head)} << 32) ^ static_cast<uint32_t>(slot)));
  for (int d = threadIdx.x; d < format.k.dim; d += kThreads)
    rows[int64_t{slot} * format.k.dim + d] = __float2bfloat16_rn(Normal(base + d));
  rows += int64_t{WindowSlots(view)} * format.k.dim;
  for (int d = threadIdx.x; d < format.v.dim; d += kThreads)
    rows[int64_t{slot} * format.v.dim + d] = __float2bfloat16_rn(Normal(base + 5000 + d));
}

__global__ void FillNormalKernel(__nv_bfloat16* values, size_t size, float scale, uint64_t seed) {
  for (size_t i = blockIdx.x * size_t{kThreads} + threadIdx.x; i < size;
       i += size_t{gridDim.x} * kThreads)
    values[i] = __float2bfloat16_rn(scale * Normal(Hash(seed) + i));
}

}  // namespace

RandomCache::RandomCache(const RandomCacheOptions& options) {
  const CacheFormat& format = options.format;
  view_.format = format;
  view_.num_kv_heads = options.num_kv_heads;
  view_.num_requests = static_cast<int>(options.lengths.size());
  view_.sink_tokens = options.sink_tokens;
  view_.recent_slots = options.recent_slots;

  std::vector<int32_t> quantized, window_of_request;
  int most_pages = 1, num_pages = 0, most_quantized = 0;
  for (const int length : options.lengths) {
    const int beyond = std::max(length - options.sink_tokens - options.recent_tokens, 0);
    quantized.push_back(beyond / 8 * 8);
    const int pages = (quantized.back() + format.page_tokens - 1) / format.page_tokens;
    most_pages = std::max(most_pages, pages);
    most_quantized = std::max(most_quantized, quantized.back());
    num_pages += pages;
    window_of_request.push_back(
        static_cast<int32_t>(options.lengths.size() - window_of_request.size() - 1));
    bytes_ += options.num_kv_heads *
              (quantized.back() / static_cast<double>(kTileTokens) * RecordBytes(format) +
               2.0 * (length - quantized.back()) * (format.k.dim + format.v.dim));
  }
  std::vector<int32_t> order(num_pages + 3);  // leaves three pages unused
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(options.seed));
  view_.page_table_stride = most_pages;
  std::vector<int32_t> table(options.lengths.size() * most_pages, order[num_pages]);
  for (size_t r = 0, next = 0; r < options.lengths.size(); ++r)
    for (int i = 0; i * format.page_tokens < quantized[r]; ++i)
      table[r * most_pages + i] = order[next++];

  pages_ = DeviceArray<uint8_t>(order.size() * PageBytes(format, options.num_kv_heads));
  pages_.Fill(0xFF);
  view_.pages = pages_.data();
  windows_ = DeviceArray<__nv_bfloat16>(options.lengths.size() * WindowBytes(view_) / 2);
  windows_.Fill(0xFF);
  view_.windows = windows_.data();
  if (options.same_tables != nullptr) {
    const CacheView& other = *options.same_tables;
    view_.page_table = other.page_table;
    view_.lengths = other.lengths;
    view_.quantized = other.quantized;
    view_.window_of_request = other.window_of_request;
  } else {
    page_table_ = DeviceArray<int32_t>(table);
    lengths_ =
        DeviceArray<int32_t>(std::vector<int32_t>(options.lengths.begin(), options.lengths.end()));
    quantized_ = DeviceArray<int32_t>(quantized);
    window_of_request_ = DeviceArray<int32_t>(window_of_request);
    view_.page_table = page_table_.data();
    view_.lengths = lengths_.data();
    view_.quantized = quantized_.data();
    view_.window_of_request = window_of_request_.data();
  }
  CheckCacheView(view_);

  const unsigned heads = options.num_kv_heads, requests = view_.num_requests;
  if (most_quantized > 0) {
    const unsigned tiles = (most_quantized + kTileTokens - 1) / kTileTokens;
    FillPages<<<dim3(tiles, heads, requests), kThreads>>>(
        view_, options.seed, static_cast<float>(options.outlier_share));
    OSCAR_CUDA_CHECK_LAUNCH("random pages");
  }
  FillWindows<<<dim3(WindowSlots(view_), heads, requests), kThreads>>>(view_, options.seed);
  OSCAR_CUDA_CHECK_LAUNCH("random windows");
  OSCAR_CUDA_CHECK(cudaDeviceSynchronize());
}

void FillNormal(__nv_bfloat16* values, size_t size, double scale, uint64_t seed) {
  FillNormalKernel<<<1024, kThreads>>>(values, size, static_cast<float>(scale), seed);
  OSCAR_CUDA_CHECK_LAUNCH("random values");
  OSCAR_CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace oscar
