// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Computes y = x R for tiles of 16 rows in shared memory, one per warp, any dimension. R streams
// through shared memory in pieces of 32 x 64 that the warps of a CTA share. Rows are padded by 8
// values to avoid bank conflicts of ldmatrix. All warps of the CTA must call RotateTile.
#pragma once

#include "export/cuda/device/mma.cuh"

namespace oscar {

inline constexpr int kRowPadding = 8;                           // values
constexpr int RowStride(int dim) { return dim + kRowPadding; }  // values
inline constexpr int kPieceDepth = 32;                          // rows of R
inline constexpr int kPieceColumns = 64;
inline constexpr int kPieceValues = kPieceDepth * RowStride(kPieceColumns);

// Loads the piece of R from row k0 and column n0 on. Columns beyond dim are not written.
__device__ inline void LoadPiece(const __nv_bfloat16* r, int dim, int k0, int n0,
                                 __nv_bfloat16* piece) {
  for (int i = static_cast<int>(threadIdx.x); i < kPieceDepth * kPieceColumns / 8;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / (kPieceColumns / 8);
    const int column = i % (kPieceColumns / 8) * 8;
    if (n0 + column < dim)  // the last piece may have only half the width
      CopyAsync16(SharedAddress(piece + row * RowStride(kPieceColumns) + column),
                  r + int64_t{k0 + row} * dim + n0 + column);
  }
  CopyAsyncCommit();
}

// Multiplies the warp's tile x [16, RowStride(dim)] by R. y has the layout of x. `pieces`:
// [2][kPieceValues].
__device__ inline void RotateTile(const __nv_bfloat16* x, const __nv_bfloat16* r, int dim,
                                  __nv_bfloat16* y, __nv_bfloat16* pieces) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const uint32_t x_address = SharedAddress(x + lane % 16 * RowStride(dim) + lane / 16 * 8);
  const int depth_pieces = dim / kPieceDepth;
  const int total = (dim + kPieceColumns - 1) / kPieceColumns * depth_pieces;
  float c[8][4];
  LoadPiece(r, dim, 0, 0, pieces);
  for (int i = 0; i < total; ++i) {
    const int k0 = i % depth_pieces * kPieceDepth;
    const int n0 = i / depth_pieces * kPieceColumns;
    if (i + 1 < total) {
      LoadPiece(r, dim, (i + 1) % depth_pieces * kPieceDepth,
                (i + 1) / depth_pieces * kPieceColumns, pieces + (i + 1) % 2 * kPieceValues);
    } else {
      CopyAsyncCommit();
    }
    CopyAsyncWait<1>();
    __syncthreads();
    if (k0 == 0) {
#pragma unroll
      for (int j = 0; j < 8; ++j) c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
    }
    const __nv_bfloat16* piece = pieces + i % 2 * kPieceValues;
#pragma unroll
    for (int k = 0; k < kPieceDepth; k += 16) {
      uint32_t a[4];
      LoadMatrices(a, x_address + 2 * (k0 + k));
#pragma unroll
      for (int j = 0; j < 8; j += 2) {
        uint32_t b[4];
        LoadMatricesTransposed(  // (k, n), (k + 8, n), (k, n + 8), (k + 8, n + 8)
            b, SharedAddress(piece + (k + lane % 16) * RowStride(kPieceColumns) + 8 * j +
                             lane / 16 * 8));
        MmaBf16(c[j], a[0], a[1], a[2], a[3], b[0], b[1]);
        MmaBf16(c[j + 1], a[0], a[1], a[2], a[3], b[2], b[3]);
      }
    }
    if (k0 + kPieceDepth == dim) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if (n0 + 8 * j >= dim) break;
        auto* row =
            reinterpret_cast<uint32_t*>(y + lane / 4 * RowStride(dim) + n0 + 8 * j) + lane % 4;
        row[0] = PackBf16x2(c[j][0], c[j][1]);
        row[8 * RowStride(dim) / 2] = PackBf16x2(c[j][2], c[j][3]);
      }
    }
    __syncthreads();
  }
  __syncwarp();
}

}  // namespace oscar
