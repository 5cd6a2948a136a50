// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The decode kernel. A CTA serves one unit (up to 8 query heads of one KV head) of one request, on
// one split of its tokens. The warps process shares of equal cost and merge their results at the
// end. The shares are computed on the device from the current lengths, so that a captured graph
// stays valid while sequences grow.
#pragma once

#include "export/cuda/decode/decode_merge.cuh"
#include "export/cuda/decode/decode_types.cuh"
#include "export/cuda/decode/quantized_tiles.cuh"
#include "export/cuda/decode/window_tiles.cuh"

namespace oscar {

// Byte offsets in shared memory: query rows in fp16 (fragments in a narrow instance), query rows in
// bf16, their sums, scratch space, the windows, the barriers, and the ring.
template <class Shape>
struct DecodeSharedLayout {
  static constexpr int kRows = 0;
  static constexpr int kBf16Rows =
      kRows + (Shape::kNarrow ? Shape::kQueryWords * 32 * 4 : kUnitHeads * Shape::kQueryStride * 2);
  static constexpr int kSums = kBf16Rows + Shape::kUnit * Shape::kQueryStride * 2;
  static constexpr int kSumDims = Shape::kK / Shape::kKeyGranules < 32 ? 16 : 32;  // dims per sum
  static constexpr int kScratch = kSums + kUnitHeads * (Shape::kK / kSumDims) * 4;
  static constexpr int kWindows = (kScratch + 4 * kScratchWords + 7) / 8 * 8;
  static constexpr int kBarriers = kWindows + static_cast<int>(sizeof(WindowView));
  static constexpr int kRing = (kBarriers + 8 * kDecodeWarps * kRingStages + 127) / 128 * 128;
  static constexpr int Bytes(int record_bytes) {
    const int ring = kDecodeWarps * kRingStages * Shape::StageBytes(record_bytes);
    const int merge = MergeBuffers<Shape>::kBytes;
    return kRing + (ring > merge ? ring : merge);
  }
};

// Loads the unit's queries into shared memory in three forms: the bf16 rows; fp16 rows, multiplied
// by 4^-(octet % 4) and by a power of two that brings the largest value into [2^14, 2^15); and sums
// over kSumDims dims, multiplied by that power and 2^-24. Returns the power. All threads must call
// it.
template <class Shape>
__device__ inline float PrepareQuery(const __nv_bfloat16* q, int heads, uint8_t* shared) {
  using Layout = DecodeSharedLayout<Shape>;
  __half* rows = reinterpret_cast<__half*>(shared + Layout::kRows);
  __nv_bfloat16* bf16_rows = reinterpret_cast<__nv_bfloat16*>(shared + Layout::kBf16Rows);
  float* sums = reinterpret_cast<float*>(shared + Layout::kSums);
  float* scratch = reinterpret_cast<float*>(shared + Layout::kScratch);
  constexpr int kSumDims = Layout::kSumDims;
  constexpr int kGranules = Shape::kK / 32, kHeads = kUnitHeads / kDecodeWarps;  // heads per warp
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float x[kHeads][kGranules];
  float largest = 0;
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const int head = warp + h * kDecodeWarps;
#pragma unroll
    for (int n = 0; n < kGranules; ++n) {
      __nv_bfloat16 value = __float2bfloat16_rn(0);
      if (head < heads) value = q[head * Shape::kK + 32 * n + lane];
      bf16_rows[head * Shape::kQueryStride + 32 * n + lane] = value;
      x[h][n] = __bfloat162float(value);
      largest = fmaxf(largest, fabsf(x[h][n]));
    }
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(~0U, largest, step));
  if (lane == 0) scratch[warp] = largest;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kDecodeWarps; ++w) largest = fmaxf(largest, scratch[w]);
  // 2^(14 - floor(log2 largest)); 1 if `largest` is below 2^-107 or not finite.
  const int exponent = __float_as_int(largest) >> 23;
  const bool usable = exponent >= 20 && exponent < 255;
  const float scale = usable ? __int_as_float((127 + 14 + 127 - exponent) << 23) : 1.F;
  const float fold = scale / static_cast<float>(1 << 2 * (lane / 8));
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const int head = warp + h * kDecodeWarps;
#pragma unroll
    for (int n = 0; n < kGranules; ++n) {
      rows[head * Shape::kQueryStride + 32 * n + lane] = __float2half_rn(x[h][n] * fold);
      float sum = x[h][n] * (scale * 0x1p-24F);
      if (head < heads) {
#pragma unroll
        for (int step = kSumDims / 2; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
      }
      if (lane % kSumDims == 0) sums[(head * Shape::kK + 32 * n + lane) / kSumDims] = sum;
    }
  }
  __syncthreads();
  return scale;
}

// Finds the request of a CTA: first_split[request] <= cta < first_split[request + 1].
__device__ inline int FindRequest(const DecodeKernelArguments& args, int cta) {
  int low = 0, high = args.call.cache.num_requests;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (args.first_split[middle] <= cta ? low : high) = middle;
  }
  return low;
}

template <class Shape>
__global__ void __launch_bounds__(kDecodeThreads, Shape::kCtasPerSm)
    DecodeKernel(const __grid_constant__ DecodeKernelArguments args) {
  using Layout = DecodeSharedLayout<Shape>;
  extern __shared__ __align__(128) uint8_t shared[];
  const CacheView& cache = args.call.cache;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  LaunchDependents();

  const int request = FindRequest(args, static_cast<int>(blockIdx.x));
  const int splits = args.first_split[request + 1] - args.first_split[request];
  const int split = static_cast<int>(blockIdx.x) - args.first_split[request];
  const int kv_head = blockIdx.z, unit = kv_head * gridDim.y + blockIdx.y;
  const int first_in_ratio = blockIdx.y * args.heads_per_unit;
  const int heads = min(args.heads_per_unit, args.gqa_ratio - first_in_ratio);
  const int first_head = kv_head * args.gqa_ratio + first_in_ratio;

  const int length = __ldg(cache.lengths + request);
  const int quantized = __ldg(cache.quantized + request);

  // Finds the tiles that this warp attends to.
  const int first_position = args.call.rule.window > 0 ? max(length - args.call.rule.window, 0) : 0;
  WindowView windows;
  windows.tiles = FindWindowTiles(cache, length, quantized, first_position);
  TileRange range;
  range.first_token = min(max(first_position - cache.sink_tokens, 0), quantized);
  range.end_token = quantized;
  // Distributes quantized tiles in pairs. If there are at least as many window tiles as shares,
  // every share gets the same number of pairs and of window tiles. Otherwise window tiles come
  // first, and each replaces `cost` pairs.
  const int num_tiles = (quantized + kTileTokens - 1) / kTileTokens;
  const int first_pair = range.first_token / (2 * kTileTokens);
  const int num_pairs = (num_tiles + 1) / 2 - first_pair;
  const int cost = Shape::kGeneral ? args.window_tile_cost : Shape::kWindowTileCost;
  const unsigned shares = splits * kDecodeWarps, share = split * kDecodeWarps + warp;
  const int num_windows = windows.tiles.count();
  const bool spread = num_windows >= static_cast<int>(shares);
  const int window_cost = spread ? 0 : num_windows * cost;
  const unsigned amount = spread && (lane & 2) ? num_windows : window_cost + num_pairs;
  // Lanes 0 to 3 compute one bound each, because divisions are slow.
  const int bound = static_cast<int>(amount * (share + lane % 2) / shares);
  const int begin = __shfl_sync(~0U, bound, 0), end = __shfl_sync(~0U, bound, 1);
  int first_window = min((begin + cost - 1) / cost, num_windows);
  int last_window = min((end + cost - 1) / cost, num_windows);
  if (spread) {
    first_window = __shfl_sync(~0U, bound, 2);
    last_window = __shfl_sync(~0U, bound, 3);
  }
  range.first = 2 * (first_pair + max(begin - window_cost, 0));
  range.last = min(2 * (first_pair + max(end - window_cost, 0)), num_tiles);
  range.pages = cache.page_table + int64_t{request} * cache.page_table_stride;
  range.head = kv_head;

  WindowView& kept = *reinterpret_cast<WindowView*>(shared + Layout::kWindows);
  RecordRing<Shape> ring(
      args, range,
      shared + Layout::kRing + warp * kRingStages * Shape::StageBytes(args.record_bytes),
      reinterpret_cast<uint64_t*>(shared + Layout::kBarriers) + warp * kRingStages, kept, lane);
  ring.Start();
  if (num_windows > 0) {
    FindOldestSlot(cache, windows.tiles);
    const int64_t slab = int64_t{__ldg(cache.window_of_request + request)} * cache.num_kv_heads;
    windows.keys = cache.windows + (slab + kv_head) * WindowHeadValues(cache);
    windows.values = windows.keys + int64_t{WindowSlots(cache)} * Shape::kK;
    if (threadIdx.x == 0) kept = windows;
    // Prefetches the first window tile into the L2 cache, even if it is still being written. This
    // gains nothing if windows are a large part of the data.
    if (!spread && first_window < last_window)
      WindowPieces<Shape>::Prefetch(cache, windows, first_window, lane);
  }

  WaitForPreviousKernel();
  ring.AddWindows(windows, first_window, last_window);
  const __nv_bfloat16* q =
      args.call.q + (int64_t{request} * args.num_q_heads + first_head) * Shape::kK;
  QueryFragments<Shape> query;
  float query_scale = 0;
  if constexpr (Shape::kNarrow)
    PrepareNarrowQuery(q, heads, args.call.rule.scale,
                       reinterpret_cast<__nv_bfloat16*>(shared + Layout::kBf16Rows),
                       reinterpret_cast<uint32_t*>(shared + Layout::kRows),
                       reinterpret_cast<uint32_t*>(shared + Layout::kScratch), query.narrow);
  else
    query_scale = PrepareQuery<Shape>(q, heads, shared);

  Softmax<Shape> state;
  state.Clear(Shape::kBytes ? kMostByteValueScale : 0x1p60F);
  if (range.first < range.last) {
    if constexpr (!Shape::kNarrow) {
      query.rows = reinterpret_cast<const __half*>(shared + Layout::kRows);
      query.factor = args.call.rule.scale * kLog2E * 0x1p24F / query_scale;
      const float* sums = reinterpret_cast<const float*>(shared + Layout::kSums);
      constexpr int kSums = Shape::kK / Layout::kSumDims;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int n = 0; n < Shape::kKeyGranules; ++n) query.sums[n][h] = 0;
#pragma unroll
        for (int n = 0; n < kSums; ++n)
          query.sums[n * Shape::kKeyGranules / kSums][h] += sums[(2 * (lane % 4) + h) * kSums + n];
      }
      query.Load(lane);
    }
    AttendQuantized<Shape>(args, range, query, ring, lane, state);
  }
  FinishCodes<Shape>(state);
  for (int tile = first_window; tile < last_window; ++tile) {
    const int slot = WindowTileSlot(kept.tiles, cache, tile);
    AttendWindowTile<Shape>(args.call.rule, ValidSlots(kept.tiles, cache, tile, slot, lane),
                            SharedAddress(shared + Layout::kBf16Rows), ring, lane, state);
  }

  __syncthreads();  // the rings become merge buffers
  const MergeBuffers<Shape> buffers(shared + Layout::kRing, heads);
  StoreWarp<Shape>(buffers, heads, warp, lane, state);
  __syncthreads();
  const DecodeResult result{args, request, first_head};
  const int cta = unit * gridDim.x + blockIdx.x;
  MergeWarps<Shape>(buffers, result, heads, cta, splits == 1);
  if (splits == 1) return;

  // Publishes this CTA's part. The barrier puts the stores of all threads before thread 0's atomic
  // operation, which releases them and acquires the stores of the other CTAs.
  int* is_last = reinterpret_cast<int*>(shared + Layout::kScratch);
  __syncthreads();
  if (threadIdx.x == 0) {
    int* arrivals = args.arrivals + request * gridDim.y * gridDim.z + unit;
    int before;
    asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], 1;"
                 : "=r"(before)
                 : "l"(arrivals)
                 : "memory");
    *is_last = before == splits - 1;
    if (*is_last) *arrivals = 0;
  }
  __syncthreads();
  if (!*is_last) return;
  MergeSplits<Shape>(result, heads, cta - split, splits,
                     reinterpret_cast<float*>(shared + Layout::kRing));
}

}  // namespace oscar
