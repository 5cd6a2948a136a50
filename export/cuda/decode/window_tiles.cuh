// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A warp's share of the bf16 windows, 16 slots at a time, from global memory straight into
// registers: a lane's loads are whole 8 or 16 byte pieces of a row, and the mma sees the dims in
// the order that gives. Trap: a slot that holds no token may hold anything, NaN too, so its value
// row is zeroed, not merely weighted by zero.
//
// Probabilities enter the product with V as the sum of two bf16 numbers, since these are the tokens
// with most of the attention.
#pragma once

#include "export/cuda/decode/decode_types.cuh"
#include "export/cuda/device/mma.cuh"

namespace oscar {

// The windows of one request as tiles: sink slots first, then the ring from its oldest token on.
struct WindowTiles {
  int first_sink, num_sink;   // tiles
  int num_recent;             // tiles of the ring; they wrap
  int recent;                 // recent tokens
  int oldest;                 // slot of the oldest of them, if FindOldestSlot was called
  int first_recent_position;  // of the oldest of them
  int first_position;         // positions before it are out of the sliding window
  int num_tokens;             // of the request

  __device__ int count() const { return num_sink + num_recent; }
};

__device__ inline WindowTiles FindWindowTiles(const CacheView& cache, int length, int quantized,
                                              int first_position) {
  WindowTiles w;
  w.num_tokens = length;
  w.first_position = first_position;
  w.first_sink = min(first_position, cache.sink_tokens) / kTileTokens;
  w.num_sink =
      max((min(length, cache.sink_tokens) + kTileTokens - 1) / kTileTokens - w.first_sink, 0);
  w.first_recent_position = cache.sink_tokens + quantized;
  w.recent = max(length - w.first_recent_position, 0);
  // The ring's size is a multiple of a tile, so this is where in its tile the oldest token lies.
  const int in_tile = quantized % kTileTokens;
  w.num_recent = w.recent == 0 ? 0
                               : min((in_tile + w.recent + kTileTokens - 1) / kTileTokens,
                                     cache.recent_slots / kTileTokens);
  return w;
}

// For WindowTileSlots. A division, so only for warps that have window tiles.
__device__ inline void FindOldestSlot(const CacheView& cache, WindowTiles& w) {
  w.oldest = (w.first_recent_position - cache.sink_tokens) % cache.recent_slots;
}

// The first slot of window tile `tile`.
__device__ inline int WindowTileSlot(const WindowTiles& w, const CacheView& cache, int tile) {
  if (tile < w.num_sink) return (w.first_sink + tile) * kTileTokens;
  int slot = w.oldest / kTileTokens * kTileTokens + (tile - w.num_sink) * kTileTokens;
  if (slot >= cache.recent_slots) slot -= cache.recent_slots;
  return cache.sink_tokens + slot;
}

// Which of the 16 slots from `slot` on, of window tile `tile`, hold tokens that count.
__device__ inline uint32_t ValidSlots(const WindowTiles& w, const CacheView& cache, int tile,
                                      int slot, int lane) {
  slot += lane % kTileTokens;
  if (tile < w.num_sink)
    return __ballot_sync(~0U,
                         slot < min(w.num_tokens, cache.sink_tokens) && slot >= w.first_position);
  int age = slot - cache.sink_tokens - w.oldest;
  if (age < 0) age += cache.recent_slots;
  return __ballot_sync(~0U, age < w.recent && w.first_recent_position + age >= w.first_position);
}

// A warp asks for `kValues` bf16 values to be brought into the L2 cache.
template <int kValues>
__device__ inline void PrefetchRows(const __nv_bfloat16* rows, int lane) {
#pragma unroll
  for (int at = 0; at < kValues; at += 32 * 64)
    if (at + 64 * lane < kValues) PrefetchL2(rows + at + 64 * lane);
}

__device__ inline uint32_t LowHalves(uint32_t a, uint32_t b) { return __byte_perm(a, b, 0x5410); }
__device__ inline uint32_t HighHalves(uint32_t a, uint32_t b) { return __byte_perm(a, b, 0x7632); }

// out[2 c + b][0..1] is dimension 32 c + 4 g + 2 b, [2..3] the next one, of sum p v.
// keys [16, kK], values [16, kV] of the tile; query: the row of this lane's column in shared
// memory, or null.
template <class Shape, class State>
__device__ inline void AttendWindowTile(const DecodeRule& rule, const __nv_bfloat16* keys,
                                        const __nv_bfloat16* values, uint32_t valid,
                                        const __nv_bfloat16* query, int lane, State& state) {
  const int g = lane / 4, t = lane % 4;
  const __nv_bfloat16* value = values + 2 * t * Shape::kV + 4 * g;
  const auto load_values = [&](int c, uint2(&v)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int token = i % 2 + 8 * (i / 2);
      v[i] = __ldcg(reinterpret_cast<const uint2*>(value + token * Shape::kV + 32 * c));
      if ((valid >> (2 * t + token) & 1) == 0) v[i] = make_uint2(0, 0);
    }
  };
  float product[4] = {0, 0, 0, 0};
  const __nv_bfloat16* key = keys + g * Shape::kK + 8 * t;
#pragma unroll
  for (int c = 0; c < Shape::kK / 32; ++c) {
    const uint4 k0 = __ldcg(reinterpret_cast<const uint4*>(key + 32 * c));
    const uint4 k8 = __ldcg(reinterpret_cast<const uint4*>(key + 8 * Shape::kK + 32 * c));
    uint4 b = make_uint4(0, 0, 0, 0);
    if (query != nullptr) b = *reinterpret_cast<const uint4*>(query + 8 * t + 32 * c);
    MmaBf16(product, k0.x, k8.x, k0.y, k8.y, b.x, b.y);
    MmaBf16(product, k0.z, k8.z, k0.w, k8.w, b.z, b.w);
  }

  constexpr int kHeads = Shape::kLaneHeads;
  float highest[kHeads], score[Shape::kScores];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    highest[h] = -INFINITY;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float x = Softcapped(product[2 * e + h] * (rule.scale * kLog2E), rule.softcap);
      if ((valid >> (g + 8 * e) & 1) == 0) x = -INFINITY;
      score[e * kHeads + h] = x;
      highest[h] = fmaxf(highest[h], x);
    }
  }
  bool rises = false;
#pragma unroll
  for (int h = 0; h < kHeads; ++h) rises |= highest[h] > state.reference[h] + kMaxRise;
  if (__any_sync(~0U, rises)) state.Adjust(highest, 0);

  float p[Shape::kScores], rest[Shape::kScores];
#pragma unroll
  for (int c = 0; c < Shape::kScores; ++c) {
    p[c] = Exp2(score[c] - state.reference[c % kHeads]);
    state.sum[c % kHeads] += p[c];
    rest[c] = p[c] - __bfloat162float(__float2bfloat16_rn(p[c]));
  }
  uint32_t leading[2], trailing[2];
  WeightOperand<Shape, PackBf16x2>(p, lane, leading);
  WeightOperand<Shape, PackBf16x2>(rest, lane, trailing);

#pragma unroll
  for (int c = 0; c < Shape::kV / 32; ++c) {
    uint2 v[4];
    load_values(c, v);
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const uint32_t x0 = b == 0 ? v[0].x : v[0].y, x1 = b == 0 ? v[1].x : v[1].y;
      const uint32_t x2 = b == 0 ? v[2].x : v[2].y, x3 = b == 0 ? v[3].x : v[3].y;
      const uint32_t a0 = LowHalves(x0, x1), a1 = HighHalves(x0, x1);
      const uint32_t a2 = LowHalves(x2, x3), a3 = HighHalves(x2, x3);
      MmaBf16(state.out[2 * c + b], a0, a1, a2, a3, leading[0], leading[1]);
      MmaBf16(state.out[2 * c + b], a0, a1, a2, a3, trailing[0], trailing[1]);
    }
  }
}

// From the order of window tiles to that of quantized tiles, through `scratch`: [kV, kUnitHeads].
template <class Shape, class State>
__device__ inline void ReorderWindowOutput(float* scratch, int lane, State& state) {
  const int g = lane / 4, t = lane % 4;
  __syncwarp();
#pragma unroll
  for (int b = 0; b < Shape::kV / 16; ++b)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int dim = 32 * (b / 2) + 4 * g + 2 * (b % 2) + i / 2;
      scratch[dim * kUnitHeads + 2 * t + i % 2] = state.out[b][i];
    }
  __syncwarp();
#pragma unroll
  for (int b = 0; b < Shape::kV / 16; ++b)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int octet = 2 * b + i / 2;
      state.out[b][i] = scratch[(8 * octet + g) * kUnitHeads + 2 * t + i % 2] *
                        (state.value_scale * static_cast<float>(1 << 2 * (octet % 4)) * 0x1p-24F);
    }
  __syncwarp();
}

}  // namespace oscar
