// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The attention-KL kernel with wgmma. TMA loads tiles of keys, K above K^, which two warpgroups of
// 64 virtual rows share. If K and K^ have the same queries, one product of twice the width gives
// both logits. With kDv > 0 the kernel also computes kDv columns of P V and P^ V^. One thread of
// the first warpgroup also issues the copies. It waits until all warps have read a stage before it
// refills it.
#pragma once

#include "export/cuda/attention_kl/attention_kl_kernel.cuh"
#include "export/cuda/attention_kl/attention_kl_outputs.cuh"
#include "export/cuda/device/wgmma.cuh"

namespace oscar::kl {

template <int kDimOf, int kDvOf, bool kTwoQueriesOf>
struct HopperTile {
  static constexpr int kDim = kDimOf;  // head_dim rounded up to 64
  static constexpr int kDv = kDvOf;    // columns of V per CTA; 0: logits only
  static constexpr bool kTwoQueries = kTwoQueriesOf;
  static constexpr int kRows = kHopperTileRows;  // rows of two warpgroups
  static constexpr int kThreads = 2 * kRows;
  // Two CTAs per multiprocessor, with 128 registers per thread, keep the tensor cores and the other
  // pipes busy: one CTA computes while the other starts or ends.
  static constexpr int kCtas = kDim <= 128 && kDv == 0 ? 2 : 1;
  static constexpr int kKeys = kDim <= 128 && kDv == 0 && !kTwoQueries ? 64 : 32;
  static constexpr int kPanelBytes = kKeys * 128;                // 64 columns of a tile of keys
  static constexpr int kKeyBytes = kDim / 64 * 2 * kPanelBytes;  // per 64 columns: K, then K^
  static constexpr int kValueBytes = kDv / 64 * kPanelBytes;     // of V; V^ takes as many
  static constexpr int kStageBytes = kKeyBytes + 2 * kValueBytes;
  static constexpr int kQueryBytes = kRows * kDim * 2;
  static constexpr int kMaxStages = 4;
  static constexpr int kBarrierBytes = 2 * kMaxStages * 8;
  static constexpr int SharedBytes(int stages) {
    return 1024 + kQueryBytes * (kTwoQueries ? 2 : 1) + stages * kStageBytes + kBarrierBytes;
  }
  // The number of stages that fit if kCtas CTAs share the 228 KB of a multiprocessor. The system
  // reserves 1 KB per CTA.
  static constexpr int kStages = [] {
    int stages = kMaxStages;
    while (stages > 2 && SharedBytes(stages) > (228 / kCtas - 1) * 1024) --stages;
    return stages;
  }();
};

struct HopperMaps {
  CUtensorMap k, k_hat, v, v_hat;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// Computes the logits of 64 rows: acc = q K^T next to q^ K^^T. `queries` and `keys` describe the
// operands' first 16 columns.
template <typename Tile>
__device__ __forceinline__ void HopperLogits(uint64_t queries, uint64_t keys,
                                             float (&acc)[Tile::kKeys]) {
  constexpr int kKeys = Tile::kKeys;
  WgmmaBegin();
#pragma unroll
  for (int i = 0; i < Tile::kDim / 16; ++i) {
    const uint64_t a = queries + (i / 4 * 8192 + i % 4 * 32) / 16;
    const uint64_t b = keys + (i / 4 * (2 * Tile::kPanelBytes) + i % 4 * 32) / 16;
    if constexpr (!Tile::kTwoQueries) {
      Wgmma(acc, a, b, i > 0);
    } else {
      float(&s)[kKeys / 2] = reinterpret_cast<float(&)[kKeys / 2]>(acc[0]);
      float(&s_hat)[kKeys / 2] = reinterpret_cast<float(&)[kKeys / 2]>(acc[kKeys / 2]);
      Wgmma(s, a, b, i > 0);
      Wgmma(s_hat, a + Tile::kQueryBytes / 16, b + Tile::kPanelBytes / 16, i > 0);
    }
  }
  WgmmaEnd();
  WgmmaWait();
  Hold(acc);
}

// Adds weights [64, kKeys] times values [kKeys, kDv] to `out`. `weights` are in the layout of
// accumulators.
template <typename Tile, Keep kKeep>
__device__ __forceinline__ void HopperOutputs(const KlParams& p, const RowKeys& row_keys,
                                              int tile_key, int lane, const float* weights,
                                              uint32_t values, float (&out)[Tile::kDv / 2]) {
  uint32_t high[Tile::kKeys / 16][4], low[Tile::kKeys / 16][4];
#pragma unroll
  for (int i = 0; i < Tile::kKeys / 16; ++i)
    PackWeights<kKeep>(p, row_keys, tile_key + 16 * i, lane, weights + 8 * i, high[i], low[i]);
  WgmmaBegin();
#pragma unroll
  for (int i = 0; i < Tile::kKeys / 16; ++i) {
    const uint64_t b = WgmmaOperand(values + i * 2048, Tile::kPanelBytes);
    WgmmaColumns(out, high[i], b);
    WgmmaColumns(out, low[i], b);
  }
  WgmmaEnd();
  WgmmaWait();
  Hold(out);
}

#endif

template <typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kCtas)
    HopperKlKernel(const __grid_constant__ KlParams p, const __grid_constant__ HopperMaps maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  constexpr int kDim = Tile::kDim, kDv = Tile::kDv, kKeys = Tile::kKeys, kStages = Tile::kStages;
  constexpr bool kTwoQueries = Tile::kTwoQueries;
  extern __shared__ uint8_t shared[];
  uint8_t* const queries = shared + (1024 - SharedAddress(shared) % 1024) % 1024;
  uint8_t* const stages = queries + Tile::kQueryBytes * (kTwoQueries ? 2 : 1);
  uint64_t* const full = reinterpret_cast<uint64_t*>(stages + kStages * Tile::kStageBytes);
  uint64_t* const empty = full + Tile::kMaxStages;

  const WorkItem item = WorkItemOf(p, blockIdx.x);
  const int v_tile = blockIdx.y;
  const int first_vrow = item.tile * Tile::kRows;
  const KeyRange range = KeysOf(p, first_vrow, item.chunk);
  if (range.begin >= range.end) return;
  const int num_tiles = (range.end - range.begin + kKeys - 1) / kKeys;

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      BarrierInit(SharedAddress(full + s), 1);
      BarrierInit(SharedAddress(empty + s), Tile::kThreads / 32);
    }
  }
  LoadQueries<Tile::kRows, kDim>(p, p.q, item.kv_head, first_vrow, queries);
  if constexpr (kTwoQueries)
    LoadQueries<Tile::kRows, kDim>(p, p.q_hat, item.kv_head, first_vrow,
                                   queries + Tile::kQueryBytes);
  FenceAsyncProxy();
  __syncthreads();

  const auto copy = [&](int tile, int stage) {
    uint8_t* to = stages + stage * Tile::kStageBytes;
    const int key = range.begin + tile * kKeys;
    const auto panel = [&](const CUtensorMap& map, int column) {
      CopyTensor(to, &map, full + stage, column, item.kv_head, key);
      to += Tile::kPanelBytes;
    };
    BarrierExpect(SharedAddress(full + stage), Tile::kStageBytes);
    for (int column = 0; column < kDim; column += 64) {
      panel(maps.k, column);
      panel(maps.k_hat, column);
    }
    for (int column = 0; column < kDv; column += 64) panel(maps.v, v_tile * kDv + column);
    for (int column = 0; column < kDv; column += 64) panel(maps.v_hat, v_tile * kDv + column);
  };
  // The number of tiles requested ahead. With more than two stages, two of them are never being
  // filled, so the second warpgroup may be two tiles behind the first.
  constexpr int kAhead = kStages > 2 ? kStages - 2 : 1;
  int next = 0, next_stage = 0;
  uint32_t next_parity = 1;  // parity of `empty`; the first use of a stage does not wait
  const auto copy_next = [&] {
    if (next < num_tiles && lane == 0) {
      BarrierWait(SharedAddress(empty + next_stage), next_parity);
      copy(next, next_stage);
    }
    ++next;
    if (++next_stage == kStages) {
      next_stage = 0;
      next_parity ^= 1;
    }
    __syncwarp();
  };
  if (warp == 0)
    for (int i = 0; i < kAhead; ++i) copy_next();

  const int warp_vrow = first_vrow + warp * 16;
  const RowKeys keys = RowKeysOf(p, warp_vrow, lane);
  const int group = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 128, 0);  // uniform for the compiler
  const uint64_t my_queries = WgmmaOperand(SharedAddress(queries) + group * (64 * kDim * 2));
  const uint64_t first_keys = WgmmaOperand(SharedAddress(stages));
  // `group_last` is the last key that any row of the warpgroup sees. From `group_exact` on, some of
  // its rows read recent keys exactly. These limits cover all four warps, which multiply together.
  // `warp_last` is the last key that any row of this warp sees.
  const int group_last = RowPosition(p, first_vrow + group * 64 + 63);
  [[maybe_unused]] const int group_exact = RowPosition(p, first_vrow + group * 64) - p.recent + 1;
  const int warp_last = RowPosition(p, warp_vrow + 15);
  RowSums rows[2];
  volatile FarSums far[2];
  for (volatile FarSums& of_row : far) StoreFar({}, of_row);
  [[maybe_unused]] OutputSums outputs[2];
  [[maybe_unused]] float out[kDv > 0 ? kDv / 2 : 1] = {}, out_hat[kDv > 0 ? kDv / 2 : 1] = {};
  int stage = 0;
  uint32_t parity = 0;
  for (int tile = 0; tile < num_tiles; ++tile) {
    if (warp == 0) copy_next();
    BarrierWait(SharedAddress(full + stage), parity);
    const int tile_key = range.begin + tile * kKeys;
    if (tile_key <= group_last) {
      float acc[kKeys];
      HopperLogits<Tile>(my_queries, first_keys + stage * (Tile::kStageBytes / 16), acc);
      if constexpr (kDv == 0) {
        if (lane == 0) BarrierArrive(SharedAddress(empty + stage));
        if (p.softcap_in > 0) Softcap(p, acc);
        if (tile_key <= warp_last) AddTile(p, keys, tile_key, lane, acc, rows, far);
      } else {
        if (p.softcap_in > 0) Softcap(p, acc);
        AddTileWithWeights(p, keys, tile_key, lane, acc, rows, outputs);
        Decay(outputs, out, out_hat);
        const uint32_t v = SharedAddress(stages) + stage * Tile::kStageBytes + Tile::kKeyBytes;
        const uint32_t v_hat = v + Tile::kValueBytes;
        const float* const weights_hat = acc + kKeys / 2;
        HopperOutputs<Tile, Keep::kAll>(p, keys, tile_key, lane, acc, v, out);
        if (tile_key < p.sink || tile_key + kKeys > group_exact) {
          HopperOutputs<Tile, Keep::kStored>(p, keys, tile_key, lane, weights_hat, v_hat, out_hat);
          HopperOutputs<Tile, Keep::kExact>(p, keys, tile_key, lane, weights_hat, v, out_hat);
        } else {
          HopperOutputs<Tile, Keep::kAll>(p, keys, tile_key, lane, weights_hat, v_hat, out_hat);
        }
        if (lane == 0) BarrierArrive(SharedAddress(empty + stage));
      }
    } else if (lane == 0) {
      BarrierArrive(SharedAddress(empty + stage));
    }
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
  if constexpr (kDv > 0)
    for (int h = 0; h < 2; ++h) StoreFar(outputs[h].far, far[h]);
  if (v_tile == 0) StorePartials(p, item.chunk, item.kv_head, warp_vrow, lane, rows, far);
  if constexpr (kDv > 0)
    StoreOutputs(p, v_tile, item.kv_head, warp_vrow, lane, rows, outputs, out, out_hat);
#endif
}

}  // namespace oscar::kl
