// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The write kernel for dims that fit in registers: a warp takes a tile from its rows in device
// memory to its record without shared memory, but for R. Grid: CTAs that share a head's tiles,
// heads, sides; in a flush tiles, heads x requests, sides. Trap: the warps of a CTA go through the
// loop together, since they rotate together.
#pragma once

#include "export/cuda/write/register_tile.cuh"
#include "export/cuda/write/rotate_registers.cuh"

namespace oscar {

// Warps of a CTA (warpgroups) and CTAs that a multiprocessor should hold.
template <int kDim>
inline constexpr int kRegisterWarps = kDim <= 192 ? 4 : 8;
template <int kDim>
inline constexpr int kRegisterCtas = kDim <= 64    ? 4
                                     : kDim <= 128 ? 3
                                     : kDim <= 192 ? 2
                                                   : 1;

// This lane's words of rows g and g + 8 from rows as they are.
template <int kOctets>
__device__ inline void LoadRegisters(const __nv_bfloat16* row0, const __nv_bfloat16* row1,
                                     RegisterRows<kOctets>& rows) {
  const int t = static_cast<int>(threadIdx.x % 4);
#pragma unroll
  for (int o = 0; o < kOctets; ++o) {
    rows.y[0][o] = reinterpret_cast<const uint32_t*>(row0)[4 * o + t];
    rows.y[1][o] = reinterpret_cast<const uint32_t*>(row1)[4 * o + t];
  }
}

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

// Rotated rows to the windows, and to where the caller wants all of them.
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
__global__ void __launch_bounds__(32 * kRegisterWarps<kDim>, kRegisterCtas<kDim>)
    RegisterPrefillKernel(const __grid_constant__ WriteArguments a, int first_side) {
  extern __shared__ __align__(128) uint8_t shared[];
  constexpr int kFits = kOneGroup ? 1 : kDim / 32;
  constexpr int kWarps = kRegisterWarps<kDim>;
  auto* copy = reinterpret_cast<__nv_bfloat16*>(shared);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int g = static_cast<int>(threadIdx.x % 32) / 4;
  const int head = static_cast<int>(blockIdx.y);
  const bool values = first_side + blockIdx.z == 1;
  const SideArguments& s = a.sides[values ? 1 : 0];

  // Rows of tokens that are no one's may hold anything, such as the first row: what comes of them
  // is not stored.
  const __nv_bfloat16* input_rows = s.x + head * kDim;
  const int row_values = a.view.num_kv_heads * kDim;
  const auto input_row = [&](const TokenTile& tile, int t) {
    const int row = (tile.tokens >> t & 1) != 0 ? tile.row + t : 0;
    return input_rows + int64_t{row} * row_values;
  };

  int first = static_cast<int>(blockIdx.x) * kWarps;
  PrefillCursor cursor;
  const auto tile_at = [&](int index) {
    return index < a.tiles ? PrefillTile(a, index, cursor) : TokenTile{};
  };
  TokenTile tile = tile_at(first + warp);
  InputRows<kDim> input;
  if constexpr (kRotated) {
    LoadInput<kDim>(input_row(tile, g), input_row(tile, g + 8), input);
    LoadRotation<kDim, 32 * kWarps>(s.rotation + head * s.rotation_stride, copy);
  }
  while (first < a.tiles) {
    RegisterRows<kDim / 8> rows;
    if constexpr (kRotated) {
      RotateRegisters<kDim>(input, copy, threadIdx.x & a.zero, rows);
    } else {
      LoadRegisters(input_row(tile, g), input_row(tile, g + 8), rows);
    }
    const TokenTile done = tile;
    first += static_cast<int>(gridDim.x) * kWarps;
    tile = tile_at(first + warp);
    const auto load_next = [&] {
      if constexpr (kRotated) LoadInput<kDim>(input_row(tile, g), input_row(tile, g + 8), input);
    };
    if (s.rotated != nullptr || done.tokens != done.quantized)
      StoreRotated(a, s, values, done, head, rows);
    if (done.quantized != 0) {
      QuantizeRegisters<kDim / 8, kTwoBits, kFits>(a, s, done, head, rows, load_next);
    } else {
      load_next();
    }
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
    const auto row = [&](int t) {  // of a token that is no one's: any row
      const int token = (tile.tokens >> t & 1) != 0 ? t : 0;
      return WindowRow(a.view, request, head, values, tile.position + token);
    };
    RegisterRows<kDim / 8> rows;
    LoadRegisters(row(g), row(g + 8), rows);
    QuantizeRegisters<kDim / 8, kTwoBits, kFits>(a, s, tile, head, rows, [] {});
  }
}

}  // namespace oscar
