// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Attends to a warp's share of the bf16 windows, one tile of 16 slots at a time. A tile comes
// through the warp's ring, after its records: pieces of up to 128 dims of the keys, then of the
// values, in padded rows. A slot without a token holds zeros there.
//
// A probability enters the product with V as the sum of two bf16 numbers, because window tokens get
// most of the attention.
#pragma once

#include "export/cuda/decode/decode_types.cuh"
#include "export/cuda/decode/window_pieces.cuh"
#include "export/cuda/device/mma.cuh"

namespace oscar {

// Attends to the tile in the ring's next pieces. `query`: [kUnit, kQueryStride] in shared memory.
template <class Shape, class Ring, class State>
__device__ inline void AttendWindowTile(const DecodeRule& rule, uint32_t valid, uint32_t query,
                                        Ring& ring, int lane, State& state) {
  using Pieces = WindowPieces<Shape>;
  const int g = lane / 4, row = lane % 8, matrix = lane / 8;
  float product[4] = {0, 0, 0, 0};
  const uint32_t q =
      query + row * Shape::kUnit / kUnitHeads * (2 * Shape::kQueryStride) + 16 * matrix;
#pragma unroll
  for (int c = 0; c < Shape::kK; c += Pieces::kKeyDims) {
    constexpr int kRow = WindowRowBytes(Shape::kK);
    const uint32_t keys =
        SharedAddress(ring.WaitForPiece()) + (row + 8 * (matrix % 2)) * kRow + 16 * (matrix / 2);
#pragma unroll
    for (int d = 0; d < Pieces::kKeyDims; d += 32) {
      uint32_t a[4], b[4];
      LoadMatrices(b, q + 2 * (c + d));
      LoadMatrices(a, keys + 2 * d);
      MmaBf16(product, a[0], a[1], a[2], a[3], b[0], b[1]);
      LoadMatrices(a, keys + 2 * d + 32);
      MmaBf16(product, a[0], a[1], a[2], a[3], b[2], b[3]);
    }
    ring.Release();
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
  for (int c = 0; c < Shape::kV; c += Pieces::kValueDims) {
    constexpr int kRow = WindowRowBytes(Shape::kV);
    const uint32_t values =
        SharedAddress(ring.WaitForPiece()) + (row + 8 * (matrix / 2)) * kRow + 16 * (matrix % 2);
#pragma unroll
    for (int d = 0; d < Pieces::kValueDims; d += 16) {
      uint32_t a[4];
      LoadMatricesTransposed(a, values + 2 * d);
      float(&out)[4] = state.out[(c + d) / 16];
      MmaBf16(out, a[0], a[1], a[2], a[3], leading[0], leading[1]);
      MmaBf16(out, a[0], a[1], a[2], a[3], trailing[0], trailing[1]);
    }
    ring.Release();
  }
}

}  // namespace oscar
