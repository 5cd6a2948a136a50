// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The decode kernel: a CTA serves one unit (up to 8 query heads of one KV head) of one request on
// one split of its tokens; its warps walk their own shares and meet at the end. Trap: shares are
// counted in costs, window tiles first, and computed from the lengths on the device, so that a
// captured graph stays right while sequences grow.
#pragma once

#include "export/cuda/decode/decode_merge.cuh"
#include "export/cuda/decode/decode_types.cuh"
#include "export/cuda/decode/quantized_tiles.cuh"
#include "export/cuda/decode/window_tiles.cuh"

namespace oscar {

// Shared memory: query rows in fp16 and bf16, sums of their granules, then the ring.
template <class Shape>
struct DecodeSharedLayout {
  static constexpr int kRows = 0;
  static constexpr int kBf16Rows = kRows + kUnitHeads * Shape::kQueryStride * 2;
  static constexpr int kSums = kBf16Rows + kUnitHeads * Shape::kQueryStride * 2;
  static constexpr int kScratch = kSums + kUnitHeads * (Shape::kK / 32) * 4;
  static constexpr int kRing = (kScratch + 4 * kDecodeWarps + 16 + 127) / 128 * 128;
  static constexpr int kRingBytes = kDecodeWarps * Shape::kRingTiles * Shape::kMaxRecord;
  static constexpr int kBytes =
      kRing + (kRingBytes > MergeBuffers<Shape>::kBytes ? kRingBytes : MergeBuffers<Shape>::kBytes);
  // A warp reorders its window output in its own ring.
  static_assert(Shape::kRingTiles * Shape::kMaxRecord >= Shape::kV * kUnitHeads * 4);
};

// Loads the unit's queries and leaves in shared memory: fp16 rows scaled by a power of two so that
// the largest value lies in [2^14, 2^15), and by 4^-(octet % 4); the rows as they are; sums of the
// scaled values over granules of 32 dims. Returns the power of two. All threads.
template <class Shape>
__device__ inline float PrepareQuery(const __nv_bfloat16* q, int heads, uint8_t* shared) {
  using Layout = DecodeSharedLayout<Shape>;
  __half* rows = reinterpret_cast<__half*>(shared + Layout::kRows);
  __nv_bfloat16* bf16_rows = reinterpret_cast<__nv_bfloat16*>(shared + Layout::kBf16Rows);
  float* sums = reinterpret_cast<float*>(shared + Layout::kSums);
  float* scratch = reinterpret_cast<float*>(shared + Layout::kScratch);
  constexpr int kPieces = Shape::kK / 8;  // of a row, 16 bytes each
  float largest = 0;
  for (int i = threadIdx.x; i < kUnitHeads * kPieces; i += kDecodeThreads) {
    const int head = i / kPieces, piece = i % kPieces;
    uint4 x = make_uint4(0, 0, 0, 0);
    if (head < heads) x = __ldg(reinterpret_cast<const uint4*>(q + head * Shape::kK) + piece);
    *reinterpret_cast<uint4*>(bf16_rows + head * Shape::kQueryStride + 8 * piece) = x;
    const __nv_bfloat16* values = reinterpret_cast<const __nv_bfloat16*>(&x);
#pragma unroll
    for (int j = 0; j < 8; ++j) largest = fmaxf(largest, fabsf(__bfloat162float(values[j])));
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, step));
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = largest;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kDecodeWarps; ++w) largest = fmaxf(largest, scratch[w]);
  // 2^(14 - floor(log2 largest)); 1 for a zero or infinite query.
  const int exponent = __float_as_int(largest) >> 23;
  const bool usable = exponent >= 20 && exponent < 255;
  const float scale = usable ? __int_as_float((127 + 14 + 127 - exponent) << 23) : 1.F;
  for (int i = threadIdx.x; i < kUnitHeads * (Shape::kK / 32); i += kDecodeThreads) {
    const int head = i / (Shape::kK / 32), granule = i % (Shape::kK / 32);
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 32; ++j) {
      const int at = head * Shape::kQueryStride + 32 * granule + j;
      const float x = __bfloat162float(bf16_rows[at]) * scale;
      rows[at] = __float2half_rn(x / static_cast<float>(1 << 2 * (j / 8)));
      sum += x;
    }
    sums[i] = sum * 0x1p-24F;
  }
  __syncthreads();
  return scale;
}

template <class Shape>
__global__ void __launch_bounds__(kDecodeThreads, Shape::kCtasPerSm)
    DecodeKernel(const __grid_constant__ DecodeKernelArguments args) {
  using Layout = DecodeSharedLayout<Shape>;
  extern __shared__ __align__(128) uint8_t shared[];
  const CacheView& cache = args.call.cache;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  int request = 0;
  while (request + 1 < cache.num_requests &&
         args.first_split[request + 1] <= static_cast<int>(blockIdx.x))
    ++request;
  const int splits = args.first_split[request + 1] - args.first_split[request];
  const int split = static_cast<int>(blockIdx.x) - args.first_split[request];
  const int unit = blockIdx.y;
  const int kv_head = unit / args.units_per_kv_head;
  const int gqa_ratio = args.num_q_heads / cache.num_kv_heads;
  const int first_in_ratio = unit % args.units_per_kv_head * args.heads_per_unit;
  const int heads = min(args.heads_per_unit, gqa_ratio - first_in_ratio);
  const int first_head = kv_head * gqa_ratio + first_in_ratio;

  const int length = __ldg(cache.lengths + request);
  const int quantized = __ldg(cache.quantized + request);
  const int window_id = __ldg(cache.window_of_request + request);

  const float query_scale = PrepareQuery<Shape>(
      args.call.q + (int64_t{request} * args.num_q_heads + first_head) * Shape::kK, heads, shared);

  // This warp's share.
  const int first_position = args.call.rule.window > 0 ? max(length - args.call.rule.window, 0) : 0;
  const WindowTiles windows = FindWindowTiles(cache, length, quantized, first_position);
  TileRange range;
  range.first_token = min(max(first_position - cache.sink_tokens, 0), quantized);
  range.end_token = quantized;
  const int first_tile = range.first_token / kTileTokens;
  const int num_tiles = (quantized + kTileTokens - 1) / kTileTokens - first_tile;
  const int cost = args.window_tile_cost;
  const int window_cost = windows.count() * cost;
  const int64_t total = window_cost + num_tiles;
  const int share = split * kDecodeWarps + warp, shares = splits * kDecodeWarps;
  const int begin = static_cast<int>(total * share / shares);
  const int end = static_cast<int>(total * (share + 1) / shares);
  range.first = first_tile + max(begin - window_cost, 0);
  range.last = first_tile + max(end - window_cost, 0);
  range.pages = cache.page_table + int64_t{request} * cache.page_table_stride;
  range.head = kv_head;

  uint8_t* ring = shared + Layout::kRing + warp * Shape::kRingTiles * Shape::kMaxRecord;
  Softmax<Shape> state;
  state.Clear();
  const int first_window = min((begin + cost - 1) / cost, windows.count());
  const int last_window = min((end + cost - 1) / cost, windows.count());
  if (first_window < last_window) {
    const int slots = WindowSlots(cache);
    const __nv_bfloat16* head_windows =
        cache.windows +
        (int64_t{window_id} * cache.num_kv_heads + kv_head) * WindowHeadValues(cache);
    for (int tile = first_window; tile < last_window; ++tile) {
      uint32_t valid;
      const int slot = WindowTileSlots(windows, cache, tile, valid);
      AttendWindowTile<Shape>(
          args.call.rule, head_windows + int64_t{slot} * Shape::kK,
          head_windows + int64_t{slots} * Shape::kK + int64_t{slot} * Shape::kV, valid,
          reinterpret_cast<const __nv_bfloat16*>(shared + Layout::kBf16Rows), lane, state);
    }
    ReorderWindowOutput<Shape>(reinterpret_cast<float*>(ring), lane, state);
  }

  if (range.first < range.last) {
    QueryFragments<Shape> query;
    query.rows = reinterpret_cast<const __half*>(shared + Layout::kRows);
    query.factor = args.call.rule.scale * kLog2E * 0x1p24F / query_scale;
    const float* sums = reinterpret_cast<const float*>(shared + Layout::kSums);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int n = 0; n < Shape::kKeyGranules; ++n) query.sums[n][h] = 0;
#pragma unroll
      for (int n = 0; n < Shape::kK / 32; ++n)
        query.sums[Shape::kKeyGranules == 1 ? 0 : n][h] +=
            sums[(2 * (lane % 4) + h) * (Shape::kK / 32) + n];
    }
    query.Load(lane);
    AttendQuantized<Shape>(args, range, query, ring, lane, state);
  }

  __syncthreads();  // rings become merge buffers
  const MergeBuffers<Shape> buffers(shared + Layout::kRing, heads);
  StoreWarp<Shape>(buffers, heads, warp, lane, state);
  __syncthreads();
  const DecodeResult result{args, request, first_head};
  const int cta = blockIdx.y * gridDim.x + blockIdx.x;
  MergeWarps<Shape>(buffers, result, heads, cta, splits == 1);
  if (splits == 1) return;

  int* is_last = reinterpret_cast<int*>(shared + Layout::kScratch);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    int* arrivals = args.arrivals + request * gridDim.y + blockIdx.y;
    *is_last = atomicAdd(arrivals, 1) == splits - 1;
    if (*is_last) *arrivals = 0;
  }
  __syncthreads();
  if (!*is_last) return;
  __threadfence();
  MergeSplits<Shape>(result, heads, cta - split, splits,
                     reinterpret_cast<float*>(shared + Layout::kRing));
}

}  // namespace oscar
