// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The write kernel for dims that fit in registers. A warp moves a tile through registers to its
// record while the rows of its next tile are loaded to shared memory. All warps of a CTA run the
// loop in step, because they rotate together. Grid: [CTAs per head, heads, keys and values], in a
// flush [tiles, heads x requests, keys and values].
#pragma once

#include "export/cuda/write/register_kernel.h"
#include "export/cuda/write/register_tile.cuh"
#include "export/cuda/write/rotate_registers.cuh"

namespace oscar {

// Number of CTAs that a multiprocessor should hold.
template <int kDim>
inline constexpr int kRegisterCtas = kDim <= 128   ? 4
                                     : kDim <= 192 ? 2
                                                   : 1;

template <int kOctets>
__device__ inline void StoreRegisters(const RegisterRows<kOctets>& rows, __nv_bfloat16* row0,
                                      __nv_bfloat16* row1) {
  const int t = static_cast<int>(threadIdx.x % 4);
#pragma unroll
  for (int o = 0; o < kOctets; ++o) {
    if (row0 != nullptr) reinterpret_cast<uint32_t*>(row0)[4 * o + t] = rows.y[0][o];
    if (row1 != nullptr) reinterpret_cast<uint32_t*>(row1)[4 * o + t] = rows.y[1][o];
  }
}

// Stores rotated rows in the windows, and in the caller's array of all rotated rows.
template <int kOctets>
__device__ inline void StoreRotated(const WriteArguments& a, const SideArguments& s, bool values,
                                    const TokenTile& tile, int head,
                                    const RegisterRows<kOctets>& rows) {
  const int g = static_cast<int>(threadIdx.x % 32) / 4;
  const uint32_t windowed = tile.tokens & ~tile.quantized;
  if (windowed != 0) {
    const auto row = [&](int t) {
      return (windowed >> t & 1) != 0
                 ? WindowRow(a.view, tile.request, head, values, tile.position + t)
                 : nullptr;
    };
    StoreRegisters(rows, row(g), row(g + 8));
  }
  if (s.rotated != nullptr) {
    const auto row = [&](int t) {
      return (tile.tokens >> t & 1) != 0 ? s.rotated + InputOffset(a, s, tile, t, head) : nullptr;
    };
    StoreRegisters(rows, row(g), row(g + 8));
  }
}

template <int kDim, bool kTwoBits, bool kOneGroup, bool kRotated>
__global__ void __launch_bounds__(32 * RegisterWarps(kDim), kRegisterCtas<kDim>)
    RegisterPrefillKernel(const __grid_constant__ WriteArguments a, int first_side) {
  extern __shared__ __align__(1024) uint8_t shared[];
  constexpr int kFits = kOneGroup ? 1 : kDim / 32;
  constexpr int kWarps = RegisterWarps(kDim);
  auto* copy = reinterpret_cast<__nv_bfloat16*>(shared);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const uint32_t stage = SharedAddress(shared) + (kRotated ? 2 * kDim * kDim : 0) +
                         (kWarps > 4 ? warp / 4 * kStageBytes<kDim> : 0);
  const auto* pages = reinterpret_cast<const int*>(shared + (kRotated ? 2 * kDim * kDim : 0) +
                                                   kWarps / 4 * kStageBytes<kDim>);
  const int head = static_cast<int>(blockIdx.y);
  const bool values = first_side + blockIdx.z == 1;
  const SideArguments& s = a.sides[values ? 1 : 0];

  // Tokens outside the call may use any row, such as the first one, because their results are not
  // stored.
  const __nv_bfloat16* input_rows = s.x + head * kDim;
  const int row_values = a.view.num_kv_heads * kDim;

  int first = static_cast<int>(blockIdx.x) * kWarps;
  PrefillCursor cursor;
  const auto tile_at = [&](int index) {
    return index < a.tiles ? PrefillTile(a, index, cursor) : TokenTile{};
  };
  LaunchDependents();
  if constexpr (kRotated)
    LoadRotation<kDim, 32 * kWarps>(s.rotation + head * s.rotation_stride, copy);
  WaitForPreviousKernel();
  // The state of the staged tile; everything else is recomputed where needed.
  uint32_t quantized = 0;
  bool to_rows = false;  // whether rows go to windows or to the caller's array
  int record_offset = 0;
  const auto stage_tile = [&](const TokenTile& tile) {
    quantized = tile.quantized;
    to_rows = tile.tokens != 0 && (s.rotated != nullptr || tile.tokens != tile.quantized);
    record_offset = RecordOffset(a, tile, head);
    if (tile.quantized != 0 && threadIdx.x % 32 == 0)
      CopyAsync4(SharedAddress(&pages[warp]), PageOf(a, tile));
    StageRows<kDim>(stage, input_rows + int64_t{tile.row} * row_values, row_values, tile.tokens,
                    input_rows);
  };
  stage_tile(tile_at(first + warp));
  while (first < a.tiles) {
    RegisterRows<kDim / 8> rows;
    WaitForStage();
    if constexpr (kRotated) RotateStage<kDim>(stage, copy);
    LoadRegisters<kDim>(stage, rows);
    if (to_rows) StoreRotated(a, s, values, tile_at(first + warp), head, rows);
    uint8_t* const record = a.view.pages + int64_t{pages[warp]} * a.page_bytes + record_offset;
    const uint32_t tokens = quantized;
    first += static_cast<int>(gridDim.x) * kWarps;
    __syncwarp();  // all lanes have read the stage and the page by now
    stage_tile(tile_at(first + warp));
    const auto fitted = FitTile<kDim / 8, kTwoBits, kFits>(a, s, [&] { return rows; });
    QuantizeRegisters<kDim / 8, kTwoBits, kFits>(a, s, tokens, record, rows, fitted);
  }
}

// Loads this lane's words of rows g and g + 8.
template <int kOctets>
__device__ inline void LoadWindowRows(const __nv_bfloat16* row0, const __nv_bfloat16* row1,
                                      RegisterRows<kOctets>& rows) {
  const int t = static_cast<int>(threadIdx.x % 4);
#pragma unroll
  for (int o = 0; o < kOctets; ++o) {
    rows.y[0][o] = reinterpret_cast<const uint32_t*>(row0)[4 * o + t];
    rows.y[1][o] = reinterpret_cast<const uint32_t*>(row1)[4 * o + t];
  }
}

template <int kDim, bool kTwoBits, bool kOneGroup>
__global__ void __launch_bounds__(32)
    RegisterFlushKernel(const __grid_constant__ WriteArguments a, int first_side) {
  constexpr int kFits = kOneGroup ? 1 : kDim / 32;
  const int g = static_cast<int>(threadIdx.x) / 4;
  const int head = static_cast<int>(blockIdx.y) % a.view.num_kv_heads;
  const int request = static_cast<int>(blockIdx.y) / a.view.num_kv_heads;
  const bool values = first_side + blockIdx.z == 1;
  const SideArguments& s = a.sides[values ? 1 : 0];
  for (int index = static_cast<int>(blockIdx.x);; index += static_cast<int>(gridDim.x)) {
    const TokenTile tile = FlushTile(a, request, index);
    if (tile.tokens == 0) return;
    const auto row = [&](int t) {  // tokens outside the call may use any row
      const int token = (tile.tokens >> t & 1) != 0 ? t : 0;
      return WindowRow(a.view, request, head, values, tile.position + token);
    };
    RegisterRows<kDim / 8> rows;
    LoadWindowRows(row(g), row(g + 8), rows);
    const auto fitted = FitTile<kDim / 8, kTwoBits, kFits>(a, s, [&] { return rows; });
    QuantizeRegisters<kDim / 8, kTwoBits, kFits>(a, s, tile.quantized, TileRecord(a, tile, head),
                                                 rows, fitted);
  }
}

}  // namespace oscar
