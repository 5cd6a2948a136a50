// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The attention-KL kernel with mma.sync and cp.async, for every GPU from sm_80 on. A CTA has four
// warps of 16 virtual rows each, and loads a tile of keys while it processes another. Consumer GPUs
// have 99 KB of shared memory, which is too little for q_hat at head dim 256.
#pragma once

#include "export/cuda/attention_kl/attention_kl_kernel.cuh"
#include "export/cuda/attention_kl/attention_kl_outputs.cuh"

namespace oscar::kl {

template <int kDimOf, int kDvOf>
struct PortableTile {
  static constexpr int kDim = kDimOf;
  static constexpr int kDv = kDvOf;  // columns of V per CTA; 0: logits only
  static constexpr int kRows = kPortableTileRows;
  static constexpr int kThreads = 128;
  static constexpr int kKeys = kDim <= 128 && kDv == 0 ? 64 : 32;
  static constexpr int kHalfBytes = kKeys * kDim * 2;  // K or K^
  static constexpr int kValueBytes = kKeys * kDv * 2;  // V or V^
  static constexpr int kStageBytes = 2 * (kHalfBytes + kValueBytes);
  static constexpr int kQueryBytes = kRows * kDim * 2;
  static constexpr int SharedBytes(bool two_queries) {
    return kQueryBytes * (two_queries ? 2 : 1) + 2 * kStageBytes;
  }
};

__device__ __forceinline__ void Mma(float* d, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  MmaBf16(reinterpret_cast<float(&)[4]>(*d), a[0], a[1], a[2], a[3], b0, b1);
}

// Copies columns [column, column + kDim) of keys [first, first + kKeys) of a head to swizzled
// panels [kKeys][64]. Writes zeros for keys and columns outside the tensor.
template <int kKeys, int kDim, int kThreads>
__device__ __forceinline__ void CopyKeys(const KlParams& p, const __nv_bfloat16* from, int dim,
                                         int column, int kv_head, int first, uint32_t to) {
  constexpr int kPieces = kDim / 8;
#pragma unroll 4
  for (int i = threadIdx.x; i < kKeys * kPieces; i += kThreads) {
    const int row = i / kPieces, piece = i % kPieces;
    const bool inside = first + row < p.tokens && column + piece * 8 < dim;
    const __nv_bfloat16* const source =
        inside ? from + (static_cast<int64_t>(first + row) * p.num_kv_heads + kv_head) * dim +
                     column + piece * 8
               : from;
    CopyAsync16OrZero(to + PanelOffset(kKeys, row, piece), source, inside);
  }
}

// Computes acc = queries [16 of 64 rows, kDim] times the transpose of keys [kKeys, kDim].
template <int kKeys, int kDim>
__device__ __forceinline__ void Product(uint32_t queries, uint32_t keys, int warp, int lane,
                                        float* acc) {
#pragma unroll
  for (int i = 0; i < kKeys / 2; ++i) acc[i] = 0;
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    uint32_t a[4];
    LoadMatrices(a, queries + PanelOffset(64, warp * 16 + lane % 16, 2 * step + lane / 16));
#pragma unroll
    for (int n = 0; n < kKeys; n += 16) {
      uint32_t b[4];
      LoadMatrices(
          b, keys + PanelOffset(kKeys, n + lane % 8 + lane / 16 * 8, 2 * step + lane / 8 % 2));
      Mma(acc + n / 2, a, b[0], b[1]);
      Mma(acc + n / 2 + 4, a, b[2], b[3]);
    }
  }
}

// Adds weights [16, kKeys] times values [kKeys, kDv] to `out`. `weights` are in the layout of
// accumulators.
template <typename Tile, Keep kKeep>
__device__ __forceinline__ void PortableOutputs(const KlParams& p, const RowKeys& row_keys,
                                                int tile_key, int lane, const float* weights,
                                                uint32_t values, float (&out)[Tile::kDv / 2]) {
#pragma unroll
  for (int i = 0; i < Tile::kKeys / 16; ++i) {
    uint32_t high[4], low[4];
    PackWeights<kKeep>(p, row_keys, tile_key + 16 * i, lane, weights + 8 * i, high, low);
#pragma unroll
    for (int n = 0; n < Tile::kDv; n += 16) {
      uint32_t b[4];
      LoadMatricesTransposed(
          b, values + PanelOffset(Tile::kKeys, 16 * i + lane % 16, n / 8 + lane / 16));
      Mma(out + n / 2, high, b[0], b[1]);
      Mma(out + n / 2, low, b[0], b[1]);
      Mma(out + n / 2 + 4, high, b[2], b[3]);
      Mma(out + n / 2 + 4, low, b[2], b[3]);
    }
  }
}

template <int kDim, int kDv>
__global__ void __launch_bounds__(PortableTile<kDim, kDv>::kThreads)
    PortableKlKernel(const __grid_constant__ KlParams p) {
  using Tile = PortableTile<kDim, kDv>;
  constexpr int kKeys = Tile::kKeys;
  extern __shared__ __align__(1024) uint8_t shared[];
  const WorkItem item = WorkItemOf(p, blockIdx.x);
  const int v_tile = blockIdx.y;
  const int first_vrow = item.tile * Tile::kRows;
  const KeyRange range = KeysOf(p, first_vrow, item.chunk);
  if (range.begin >= range.end) return;
  const int num_tiles = (range.end - range.begin + kKeys - 1) / kKeys;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  const bool two_queries = p.q_hat != nullptr;
  const uint32_t queries = SharedAddress(shared);
  const uint32_t queries_hat = queries + (two_queries ? Tile::kQueryBytes : 0);
  const uint32_t stages = queries_hat + Tile::kQueryBytes;
  LoadQueries<Tile::kRows, kDim>(p, p.q, item.kv_head, first_vrow, shared);
  if (two_queries)
    LoadQueries<Tile::kRows, kDim>(p, p.q_hat, item.kv_head, first_vrow,
                                   shared + Tile::kQueryBytes);
  const auto copy = [&](int tile) {
    uint32_t to = stages + tile % 2 * Tile::kStageBytes;
    const int first = range.begin + tile * kKeys;
    const auto keys_of = [&](const __nv_bfloat16* from) {
      CopyKeys<kKeys, kDim, Tile::kThreads>(p, from, p.head_dim, 0, item.kv_head, first, to);
      to += Tile::kHalfBytes;
    };
    keys_of(p.k);
    keys_of(p.k_hat);
    if constexpr (kDv > 0) {
      const auto values_of = [&](const __nv_bfloat16* from) {
        CopyKeys<kKeys, kDv, Tile::kThreads>(p, from, p.v_head_dim, v_tile * kDv, item.kv_head,
                                             first, to);
        to += Tile::kValueBytes;
      };
      values_of(p.v);
      values_of(p.v_hat);
    }
  };
  const int warp_vrow = first_vrow + warp * 16;
  const RowKeys keys = RowKeysOf(p, warp_vrow, lane);
  RowSums rows[2];
  volatile FarSums far[2];
  for (volatile FarSums& of_row : far) StoreFar({}, of_row);
  [[maybe_unused]] OutputSums outputs[2];
  [[maybe_unused]] float out[kDv > 0 ? kDv / 2 : 1] = {}, out_hat[kDv > 0 ? kDv / 2 : 1] = {};
  copy(0);
  CopyAsyncCommit();
  for (int tile = 0; tile < num_tiles; ++tile) {
    if (tile + 1 < num_tiles) copy(tile + 1);
    CopyAsyncCommit();
    CopyAsyncWait<1>();
    __syncthreads();
    const uint32_t stage = stages + tile % 2 * Tile::kStageBytes;
    const int tile_key = range.begin + tile * kKeys;
    float acc[kKeys];
    Product<kKeys, kDim>(queries, stage, warp, lane, acc);
    Product<kKeys, kDim>(queries_hat, stage + Tile::kHalfBytes, warp, lane, acc + kKeys / 2);
    if (p.softcap_in > 0) Softcap(p, acc);
    if constexpr (kDv == 0) {
      AddTile(p, keys, tile_key, lane, acc, rows, far);
    } else {
      AddTileWithWeights(p, keys, tile_key, lane, acc, rows, outputs);
      Decay(outputs, out, out_hat);
      const uint32_t v = stage + 2 * Tile::kHalfBytes, v_hat = v + Tile::kValueBytes;
      const float* const weights_hat = acc + kKeys / 2;
      PortableOutputs<Tile, Keep::kAll>(p, keys, tile_key, lane, acc, v, out);
      if (tile_key < keys.plain_begin || tile_key + kKeys > keys.plain_end) {
        PortableOutputs<Tile, Keep::kStored>(p, keys, tile_key, lane, weights_hat, v_hat, out_hat);
        PortableOutputs<Tile, Keep::kExact>(p, keys, tile_key, lane, weights_hat, v, out_hat);
      } else {
        PortableOutputs<Tile, Keep::kAll>(p, keys, tile_key, lane, weights_hat, v_hat, out_hat);
      }
    }
    __syncthreads();
  }
  if constexpr (kDv > 0)
    for (int h = 0; h < 2; ++h) StoreFar(outputs[h].far, far[h]);
  if (v_tile == 0) StorePartials(p, item.chunk, item.kv_head, warp_vrow, lane, rows, far);
  if constexpr (kDv > 0)
    StoreOutputs(p, v_tile, item.kv_head, warp_vrow, lane, rows, outputs, out, out_hat);
}

}  // namespace oscar::kl
