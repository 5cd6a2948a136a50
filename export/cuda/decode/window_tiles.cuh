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

// The first slot of window tile `tile`, and which of its 16 slots hold tokens that count.
__device__ inline int WindowTileSlots(const WindowTiles& w, const CacheView& cache, int tile,
                                      int lane, uint32_t& valid) {
  const int i = lane % kTileTokens;
  if (tile < w.num_sink) {
    const int slot = (w.first_sink + tile) * kTileTokens;
    valid = __ballot_sync(
        ~0U, slot + i < min(w.num_tokens, cache.sink_tokens) && slot + i >= w.first_position);
    return slot;
  }
  const int ring_tiles = cache.recent_slots / kTileTokens;
  const int oldest = (w.first_recent_position - cache.sink_tokens) % cache.recent_slots;
  int ring_tile = oldest / kTileTokens + tile - w.num_sink;
  if (ring_tile >= ring_tiles) ring_tile -= ring_tiles;
  int age = ring_tile * kTileTokens + i - oldest;
  if (age < 0) age += cache.recent_slots;
  valid = __ballot_sync(~0U, age < w.recent && w.first_recent_position + age >= w.first_position);
  return cache.sink_tokens + ring_tile * kTileTokens;
}

__device__ inline uint32_t LowHalves(uint32_t a, uint32_t b) { return __byte_perm(a, b, 0x5410); }
__device__ inline uint32_t HighHalves(uint32_t a, uint32_t b) { return __byte_perm(a, b, 0x7632); }

// out[2 c + b][0..1] is dimension 32 c + 4 g + 2 b, [2..3] the next one, of sum p v.
// keys [16, kK], values [16, kV] of the tile; query: bf16 rows [kUnitHeads, kQueryStride], shared.
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
  // All of a tile in flight at once where registers allow.
  constexpr int kEarly = Shape::kV <= 128 ? Shape::kV / 32 : 0;
  uint2 early[kEarly > 0 ? kEarly : 1][4];
#pragma unroll
  for (int c = 0; c < kEarly; ++c) load_values(c, early[c]);

  float product[4] = {0, 0, 0, 0};
  const __nv_bfloat16* key = keys + g * Shape::kK + 8 * t;
  const __nv_bfloat16* q = query + g * Shape::kQueryStride + 8 * t;
#pragma unroll
  for (int c = 0; c < Shape::kK / 32; ++c) {
    const uint4 k0 = __ldcg(reinterpret_cast<const uint4*>(key + 32 * c));
    const uint4 k8 = __ldcg(reinterpret_cast<const uint4*>(key + 8 * Shape::kK + 32 * c));
    const uint4 b = *reinterpret_cast<const uint4*>(q + 32 * c);
    MmaBf16(product, k0.x, k8.x, k0.y, k8.y, b.x, b.y);
    MmaBf16(product, k0.z, k8.z, k0.w, k8.w, b.z, b.w);
  }

  float highest[2] = {-INFINITY, -INFINITY};
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    product[c] = Softcapped(product[c] * (rule.scale * kLog2E), rule.softcap);
    if ((valid >> (g + 8 * (c / 2)) & 1) == 0) product[c] = -INFINITY;
    highest[c % 2] = fmaxf(highest[c % 2], product[c]);
  }
  if (__any_sync(~0U, highest[0] > state.reference[0] + kMaxRise ||
                          highest[1] > state.reference[1] + kMaxRise))
    state.Adjust(highest, 0);

  float p[4], rest[4];
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    p[c] = Exp2(product[c] - state.reference[c % 2]);
    state.sum[c % 2] += p[c];
    rest[c] = p[c] - __bfloat162float(__float2bfloat16_rn(p[c]));
  }
  const uint32_t b0 = Transpose8x8(PackBf16x2(p[0], p[1]));
  const uint32_t b1 = Transpose8x8(PackBf16x2(p[2], p[3]));
  const uint32_t rest0 = Transpose8x8(PackBf16x2(rest[0], rest[1]));
  const uint32_t rest1 = Transpose8x8(PackBf16x2(rest[2], rest[3]));

#pragma unroll
  for (int c = 0; c < Shape::kV / 32; ++c) {
    uint2 v[4];
    if constexpr (kEarly > 0) {
#pragma unroll
      for (int i = 0; i < 4; ++i) v[i] = early[c][i];
    } else {
      load_values(c, v);
    }
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const uint32_t x0 = b == 0 ? v[0].x : v[0].y, x1 = b == 0 ? v[1].x : v[1].y;
      const uint32_t x2 = b == 0 ? v[2].x : v[2].y, x3 = b == 0 ? v[3].x : v[3].y;
      const uint32_t a0 = LowHalves(x0, x1), a1 = HighHalves(x0, x1);
      const uint32_t a2 = LowHalves(x2, x3), a3 = HighHalves(x2, x3);
      MmaBf16(state.out[2 * c + b], a0, a1, a2, a3, b0, b1);
      MmaBf16(state.out[2 * c + b], a0, a1, a2, a3, rest0, rest1);
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
