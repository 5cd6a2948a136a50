// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Loads rows into registers. The tiles of a CTA are in shared memory, where y = x R replaces x. On
// Hopper, one wgmma multiplies 16 dims of a warpgroup's four tiles by 128 columns; elsewhere mma
// does. Wgmma reads the rows of all four warps, so these wait for each other and rotate together.
#pragma once

#include "export/cuda/device/wgmma.cuh"
#include "export/cuda/write/register_rows.cuh"
#include "export/cuda/write/rotate_tile.cuh"

namespace oscar {

// The rows of a warpgroup's tiles, [kDim / 64][64 rows][128 bytes]. The 16-byte chunks of a row are
// permuted by the row's index modulo 8, like wgmma operands swizzled by 128 bytes.
inline constexpr int kPanelBytes = 64 * 128;
template <int kDim>
inline constexpr int kStageBytes = kDim / 64 * kPanelBytes;

__device__ inline uint32_t StagedChunk(uint32_t stage, int row, int chunk) {
  return stage + chunk / 8 * kPanelBytes + row * 128 + (chunk % 8 ^ row % 8) * 16;
}

// Requests the rows of this warp's tile. Row t is at `rows` + t * stride; for tokens outside the
// mask, `other` is loaded.
template <int kDim>
__device__ inline void StageRows(uint32_t stage, const __nv_bfloat16* rows, int64_t stride,
                                 uint32_t tokens, const __nv_bfloat16* other) {
  const int lane = LaneAgain();
  const int chunk = lane % 8;
  const int first = lane / 8;
  const int tile_row = static_cast<int>(threadIdx.x) / 32 % 4 * 16;
  const uint32_t even = StagedChunk(stage, tile_row + first, chunk);
  const uint32_t odd = even ^ 64;  // the address four rows later
  const auto copy = [&](int i, const __nv_bfloat16* row) {
#pragma unroll
    for (int panel = 0; panel < kDim / 64; ++panel)
      CopyAsync16((i % 2 == 0 ? even : odd) + i * 512 + panel * kPanelBytes, row + 64 * panel);
  };
  const __nv_bfloat16* row = rows + first * stride + 8 * chunk;
  if (tokens == 0xFFFFU) {
#pragma unroll
    for (int i = 0; i < 4; ++i, row += 4 * stride) copy(i, row);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i, row += 4 * stride)
      copy(i, (tokens >> (4 * i + first) & 1) != 0 ? row : other + 8 * chunk);
  }
  CopyAsyncCommit();
}

// Returns the address of this lane's row for the fragment of dims [16 s, 16 s + 16) in this warp's
// tile.
__device__ inline uint32_t StagedFragment(uint32_t stage, int s) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int tile_row = static_cast<int>(threadIdx.x) / 32 % 4 * 16;
  // In any row, chunk 2 s + c of a panel differs from chunk c in only two bits.
  return (StagedChunk(stage, tile_row + lane % 16, lane / 16) ^ s % 4 * 32) + s / 4 * kPanelBytes;
}

template <int kDim>
__device__ inline void LoadRegisters(uint32_t stage, RegisterRows<kDim / 8>& rows) {
#pragma unroll
  for (int s = 0; s < kDim / 16; ++s) {
    uint32_t a[4];
    LoadMatrices(a, StagedFragment(stage, s));
    rows.y[0][2 * s] = a[0];
    rows.y[1][2 * s] = a[1];
    rows.y[0][2 * s + 1] = a[2];
    rows.y[1][2 * s + 1] = a[3];
  }
}

// Copies R as matrices [kDim / 8][kDim / 8] of 8 rows x 16 bytes. Eight threads fill a matrix,
// which avoids bank conflicts.
template <int kDim, int kThreads>
__device__ inline void LoadRotation(const __nv_bfloat16* r, __nv_bfloat16* copy) {
  const uint32_t shared = SharedAddress(copy);
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kDim * kDim / 8; i += kThreads) {
    const int row = i / kDim * 8 + i % 8;
    const int column = i / 8 % (kDim / 8);
    CopyAsync16(shared + row / 8 * (kDim * 16) + column * 128 + row % 8 * 16,
                r + row * kDim + 8 * column);
  }
  CopyAsyncCommit();
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// Describes B [16, kDim] as 8 x 8 matrices whose rows run along n. The step between matrices is 128
// bytes along n and kDim * 16 bytes along k. See PTX ISA, "Asynchronous Warpgroup Level Matrix
// Shared Memory Layout".
template <int kDim>
__device__ inline uint64_t RotationDescriptor(uint32_t address) {
  constexpr uint64_t kAlongK = kDim * 16 / 16;  // in units of 16 bytes
  constexpr uint64_t kAlongN = 128 / 16;
  return (address >> 4 & 0x3FFFU) | kAlongK << 16 | kAlongN << 32;
}
#endif

// Waits until the rows staged by each thread are visible to all threads and to wgmma.
__device__ inline void WaitForStage() {
  CopyAsyncWait<0>();
#if OSCAR_BULK_COPY
  FenceAsyncProxy();
#endif
  __syncthreads();
}

// Computes c = x R.
template <int kDim>
__device__ inline void MultiplyTile(uint32_t stage, const __nv_bfloat16* copy,
                                    float (&c)[kDim / 8][4]) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  const uint64_t x = WgmmaOperand(stage);
  const uint64_t r = RotationDescriptor<kDim>(SharedAddress(copy));
  WgmmaBegin();
#pragma unroll
  for (int s = 0; s < kDim / 16; ++s) {
    const uint64_t a = x + s / 4 * (kPanelBytes / 16) + s % 4 * (32 / 16);
    const uint64_t b = r + s * (2 * kDim * 16 / 16);
#pragma unroll
    for (int j = 0; j + 16 <= kDim / 8; j += 16)  // 128 columns each, and 64 at the end if needed
      Wgmma<true>(reinterpret_cast<float(&)[64]>(c[j]), a, b + j * (128 / 16), s > 0);
    if constexpr (kDim % 128 == 64)
      Wgmma<true>(reinterpret_cast<float(&)[32]>(c[kDim / 8 - 8]), a,
                  b + (kDim / 8 - 8) * (128 / 16), s > 0);
  }
  WgmmaEnd();
  WgmmaWait();
#else
  const int lane = static_cast<int>(threadIdx.x % 32);
  const uint32_t address =
      SharedAddress(copy + (lane / 8 % 2 * (kDim / 8) + lane / 16) * 64 + lane % 8 * 8);
#pragma unroll
  for (int j = 0; j < kDim / 8; ++j) c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
#pragma unroll
  for (int s = 0; s < kDim / 16; ++s) {
    uint32_t a[4];
    LoadMatrices(a, StagedFragment(stage, s));
#pragma unroll
    for (int j = 0; j < kDim / 8; j += 2) {
      uint32_t b[4];
      LoadMatricesTransposed(b, address + (2 * s * (kDim / 8) + j) * 128);
      MmaBf16(c[j], a[0], a[1], a[2], a[3], b[0], b[1]);
      MmaBf16(c[j + 1], a[0], a[1], a[2], a[3], b[2], b[3]);
    }
  }
#endif
}

// Replaces x by y = x R in shared memory. Sums of a wgmma must stay in fixed registers, but rows
// read back from memory may be in any.
template <int kDim>
__device__ inline void RotateStage(uint32_t stage, const __nv_bfloat16* copy) {
  float c[kDim / 8][4];
  MultiplyTile<kDim>(stage, copy, c);
  __syncthreads();  // all warps have read x by now
#pragma unroll
  for (int s = 0; s < kDim / 16; ++s) {
    const float(&low)[4] = c[2 * s];
    const float(&high)[4] = c[2 * s + 1];
    StoreMatrices({PackBf16x2(low[0], low[1]), PackBf16x2(low[2], low[3]),
                   PackBf16x2(high[0], high[1]), PackBf16x2(high[2], high[3])},
                  StagedFragment(stage, s));
  }
  __syncwarp();
}

}  // namespace oscar
