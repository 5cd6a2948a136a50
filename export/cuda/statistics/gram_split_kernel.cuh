// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// XᵀX with exact 16-bit products, float32 sums of kSplitRows rows and float64 sums of those: the
// fast path of gram.h. Work is cut as in gram_float64_kernel.cuh.
//
// Rows wait in shared memory as they lie in memory, tokens by features, and ldmatrix.trans reads
// what is at once the A fragment of two 8-feature blocks and the B fragments of each. float32 rows
// are staged as three bfloat16 planes x0 + x1 + x2 and multiplied as the six products x_i x_j with
// i + j <= 2. 16-byte chunks are swizzled, chunk ^ row % 8, so that eight rows of one chunk lie in
// different banks.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "export/cuda/device/mma.cuh"
#include "export/cuda/statistics/attention_rows.cuh"
#include "export/cuda/statistics/gram_cover.cuh"

namespace oscar {

inline constexpr int kSplitStepRows = 32;

constexpr int SplitPlanes(RowType type) { return type == RowType::kFloat32 ? 3 : 1; }
constexpr int SplitStages(RowType type, bool squares) {
  return type == RowType::kFloat32 ? 2 : squares ? 3 : 4;
}

template <typename Cover, RowType kType>
struct SplitStage {
  static constexpr int kChunks = 2 * Cover::kBlocks;  // of 8 features
  uint4 values[SplitPlanes(kType)][kSplitStepRows][kChunks];

  __device__ uint4* Chunk(int plane, int row, int chunk) {
    return &values[plane][row][chunk ^ row % 8];
  }
};

template <typename Cover, RowType kType>
struct SplitShared {
  SplitStage<Cover, kType> stages[SplitStages(kType, Cover::kSquares)];
  double2 sums[Cover::kPairs][Cover::kThreads];  // float64, each thread's own; order as in partials
};

// x = x0 + x1 + x2 exactly while x2 is no smaller than bfloat16's smallest subnormal. An infinite
// or NaN x leaves a NaN.
__device__ inline void SplitFloat32(const RawValues<RowType::kFloat32>& x, uint4 (&planes)[3]) {
  float rest[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) rest[i] = __uint_as_float(x.word(i));
#pragma unroll
  for (int plane = 0; plane < 3; ++plane) {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      words[i] = PackBf16x2(rest[2 * i], rest[2 * i + 1]);
      rest[2 * i] -= __uint_as_float(words[i] << 16);
      rest[2 * i + 1] -= __uint_as_float(words[i] & 0xffff0000u);
    }
    planes[plane] = {words[0], words[1], words[2], words[3]};
  }
}

// Rows of a split to shared memory: a warp moves 4 rows of 64 features at a time.
template <typename Cover, RowType kType, int kSuperblocks>
class SplitLoader {
  static constexpr int kStride = 4 * Cover::kWarps;
  static constexpr int kPasses = kSplitStepRows / kStride;

 public:
  __device__ SplitLoader(const RowsView& rows, GramRegion region, int kv_head, TokenRange tokens)
      : rows_(rows), region_(region), cursor_(rows, kv_head, tokens, row()) {}

  // Asynchronous for 16-bit rows: arrives with the group that is committed next.
  __device__ void Load(SplitStage<Cover, kType>& stage) {
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int r = row() + pass * kStride;
#pragma unroll
      for (int s = 0; s < kSuperblocks; ++s) {
        const int feature = FeatureOf(s);
        const bool exists = cursor_.valid() && feature < rows_.dim;
        if constexpr (kType == RowType::kFloat32) {
          uint4 planes[3];
          SplitFloat32(LoadRaw<RowType::kFloat32>(cursor_.data() + 4 * feature, exists), planes);
#pragma unroll
          for (int plane = 0; plane < 3; ++plane)
            *stage.Chunk(plane, r, 8 * s + chunk()) = planes[plane];
        } else {
          CopyAsync16OrZero(SharedAddress(stage.Chunk(0, r, 8 * s + chunk())),
                            exists ? cursor_.data() + 2 * feature : rows_.data, exists);
        }
      }
      cursor_.Advance(rows_);
    }
  }

 private:
  __device__ static int row() { return threadIdx.x / 8; }
  __device__ static int chunk() { return threadIdx.x % 8; }
  __device__ int FeatureOf(int superblock) const {
    const bool column = 4 * superblock >= Cover::kRowBlocks;
    return 8 * chunk() + (column ? region_.columns : region_.rows + 64 * superblock);
  }

  const RowsView& rows_;
  const GramRegion region_;
  RowCursor<kStride> cursor_;
};

template <typename Cover, RowType kType>
struct SplitWarp {
  static constexpr int kPlanes = SplitPlanes(kType);
  // Of one 16-feature block: 8-feature half h, rows 8 k .. 8 k + 7 of 16, at 2 h + k.
  using Block = uint32_t[kPlanes][4];
  float sums[Cover::kTiles][2][4] = {};  // [tile][8-column half]

  __device__ static void ReadBlock(SplitStage<Cover, kType>& stage, int first_row, int block,
                                   Block& values) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int plane = 0; plane < kPlanes; ++plane)
      LoadMatricesTransposed(values[plane], SharedAddress(stage.Chunk(plane, first_row + lane % 16,
                                                                      2 * block + lane / 16)));
  }
  __device__ void AddTile(int tile, const Block& a, const Block& b) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int p = kPlanes - 1; p >= 0; --p) {  // small products first
#pragma unroll
        for (int q = kPlanes - 1 - p; q >= 0; --q) {
          if constexpr (kType == RowType::kFloat16) {
            MmaF16(sums[tile][half], a[p][0], a[p][2], a[p][1], a[p][3], b[q][2 * half],
                   b[q][2 * half + 1]);
          } else {
            MmaBf16(sums[tile][half], a[p][0], a[p][2], a[p][1], a[p][3], b[q][2 * half],
                    b[q][2 * half + 1]);
          }
        }
      }
    }
  }

  __device__ void MultiplyPanel(SplitStage<Cover, kType>& stage, int first_row) {
    const int warp = threadIdx.x / 32;
    Block first, second, block;
    ReadBlock(stage, first_row, warp, first);
    ReadBlock(stage, first_row, warp + Cover::kHalf, second);
#pragma unroll
    for (int k = 0; k < Cover::kRowBlocks; ++k) {
      ReadBlock(stage, first_row, (warp + k) % Cover::kRowBlocks, block);
      if (k <= Cover::kHalf) AddTile(k, first, block);
      if (k >= Cover::kHalf) AddTile(k + 1, second, block);
    }
  }
  __device__ void MultiplySquare(SplitStage<Cover, kType>& stage, int first_row) {
    const int warp = threadIdx.x / 32;
    Block first, second, block;
    ReadBlock(stage, first_row, warp, first);
    ReadBlock(stage, first_row, warp + Cover::kHalf, second);
#pragma unroll
    for (int k = 0; k < Cover::kColumnBlocks; ++k) {
      ReadBlock(stage, first_row, Cover::kRowBlocks + k, block);
      AddTile(k, first, block);
      AddTile(Cover::kColumnBlocks + k, second, block);
    }
  }

  // to = (add ? from : 0) + sums; sums = 0.
  template <int kTiles>
  __device__ void Flush(bool add, const double2 (*from)[Cover::kThreads],
                        double2 (*to)[Cover::kThreads]) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          float(&c)[4] = sums[tile][half];
          const int pair = 4 * tile + 2 * half + h;
          double2 value = add ? from[pair][threadIdx.x] : double2{0, 0};
          value.x += c[2 * h];
          value.y += c[2 * h + 1];
          to[pair][threadIdx.x] = value;
          c[2 * h] = c[2 * h + 1] = 0;
        }
      }
    }
  }
};

template <typename Cover, RowType kType, bool kSquare>
__device__ void GramSplitRegion(const RowsView& rows, int rows_per_flush, GramRegion region,
                                int kv_head, TokenRange tokens, double2* partial) {
  extern __shared__ __align__(16) char memory[];
  auto& shared = *reinterpret_cast<SplitShared<Cover, kType>*>(memory);
  auto& stages = shared.stages;
  constexpr int kStages = SplitStages(kType, Cover::kSquares);
  constexpr int kTiles = kSquare ? Cover::kSquareTiles : Cover::kPanelTiles;
  constexpr int kSuperblocks = (kSquare ? Cover::kBlocks : Cover::kRowBlocks) / 4;
  SplitLoader<Cover, kType, kSuperblocks> loader(rows, region, kv_head, tokens);
  SplitWarp<Cover, kType> warp;
  const int steps = (tokens.count * rows.gqa_ratio + kSplitStepRows - 1) / kSplitStepRows;
  const int steps_per_flush = rows_per_flush / kSplitStepRows;
#pragma unroll
  for (int step = 0; step < kStages - 1; ++step) {
    if (step < steps) loader.Load(stages[step]);
    CopyAsyncCommit();
  }
  int unflushed = 0;
  bool flushed = false;
  for (int step = 0; step < steps; ++step) {
    CopyAsyncWait<kStages - 2>();
    __syncthreads();
    if (step + kStages - 1 < steps) loader.Load(stages[(step + kStages - 1) % kStages]);
    CopyAsyncCommit();
#pragma unroll
    for (int first_row = 0; first_row < kSplitStepRows; first_row += 16) {
      if constexpr (kSquare) {
        warp.MultiplySquare(stages[step % kStages], first_row);
      } else {
        warp.MultiplyPanel(stages[step % kStages], first_row);
      }
    }
    if (++unflushed == steps_per_flush && step + 1 < steps) {
      warp.template Flush<kTiles>(flushed, shared.sums, shared.sums);
      unflushed = 0;
      flushed = true;
    }
  }
  warp.template Flush<kTiles>(flushed, shared.sums,
                              reinterpret_cast<double2(*)[Cover::kThreads]>(partial));
}

// Grid: regions, splits, KV heads.
template <typename Cover, RowType kType, int kCtasPerSm>
__global__ void __launch_bounds__(Cover::kThreads, kCtasPerSm)
    GramSplitKernel(const __grid_constant__ RowsView rows, int tokens_per_split, int rows_per_flush,
                    double2* partials) {
  const GramRegion region = GramRegionOf(rows.dim, blockIdx.x);
  const TokenRange tokens = TokensOfSplit(rows.num_tokens, tokens_per_split, blockIdx.y);
  double2* partial =
      partials + GramPartial(blockIdx.z, blockIdx.x, blockIdx.y, gridDim.x, gridDim.y) *
                     (Cover::kPairs * Cover::kThreads);
  if constexpr (Cover::kSquares) {
    if (region.square) {
      GramSplitRegion<Cover, kType, true>(rows, rows_per_flush, region, blockIdx.z, tokens,
                                          partial);
      return;
    }
  }
  GramSplitRegion<Cover, kType, false>(rows, rows_per_flush, region, blockIdx.z, tokens, partial);
}

}  // namespace oscar
