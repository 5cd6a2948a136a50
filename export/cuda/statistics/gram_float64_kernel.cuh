// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// XᵀX in float64 on the tensor cores (DMMA). One CTA: one region of the matrix of one KV head
// (gram_cover.cuh) over one split of the tokens, all query heads of the head in one accumulator.
//
// Sixteen rows at a time go to shared memory as float64, converted once per element, in the order
// in which fragments read them: lane 4g + t reads rows 4j + t, j = 0..3, of its feature. Features
// are dealt to fragment columns so that both sides move 16 bytes (FeatureOrder::kDealt): in a
// superblock of 64 features, feature 8 g + r is column g of the 8-feature block r.
//
// Two warps share a tensor core, so each must keep it busy alone while the other waits: the rows of
// the next step are converted and stored, and those of the step after it loaded, in small portions
// between the instructions of this one, early, so that loads have the rest of the step to arrive.
// The loop has no branches for that reason; rows past the end are zeros.
#pragma once

#include <cuda_runtime.h>

#include "export/cuda/statistics/attention_rows.cuh"
#include "export/cuda/statistics/gram_cover.cuh"
#include "export/cuda/statistics/mma_float64.cuh"

namespace oscar {

inline constexpr int kFloat64Rows = 16;  // per step

template <typename Cover>
struct Float64Stage {
  double2 values[4][Cover::kBlocks][32];  // [j][16-feature block][lane]: 8-feature halves
  double weights[kFloat64Rows];
};

template <typename Cover>
constexpr int Float64SharedBytes() {
  return 2 * static_cast<int>(sizeof(Float64Stage<Cover>));
}

// Rows of a split to shared memory. A warp moves 4 rows (one j) of 64 features (one superblock) at
// a time, 8 features per lane: a chunk. lane = (g / 2) * 8 + t * 2 + g % 2, so that stores of a
// quarter warp are 128 contiguous bytes and loads whole 32-byte sectors.
template <typename Cover, RowType kType, bool kWeighted, int kSuperblocks>
class Float64Loader {
  static constexpr int kPasses = 4 / Cover::kWarps;  // rows of one thread per step
  static constexpr int kChunks = kPasses * kSuperblocks;

 public:
  static constexpr int kPortions = 4 * kChunks;  // of one step: two values each

  __device__ Float64Loader(const RowsView& rows, const double* weights, GramRegion region,
                           int kv_head, TokenRange tokens)
      : rows_(rows),
        weights_(weights + kv_head),
        region_(region),
        cursor_(rows, kv_head, tokens, 4 * (threadIdx.x / 32) + t()) {
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) Fetch(chunk);
  }

  // Portion `event` is converted, and stored one event later; a chunk of the next step is loaded
  // when its last portion is converted.
  __device__ void Move(int event, Float64Stage<Cover>& stage) {
    if (event > 0 && event <= kPortions) Store(event - 1, stage);
    if (event >= kPortions) return;
    const int chunk = event / 4;
    const float2 pair = PairOf<kType>(raw_[chunk], event % 4);
    converted_ = {pair.x, pair.y};
    if (event % 4 == 3) Load(chunk, stage);
  }

 private:
  __device__ static int g() { return threadIdx.x % 32 / 8 * 2 + threadIdx.x % 2; }
  __device__ static int t() { return threadIdx.x / 2 % 4; }

  __device__ static int RowGroup(int pass) { return threadIdx.x / 32 + pass * Cover::kWarps; }

  __device__ void Store(int portion, Float64Stage<Cover>& stage) const {
    const int chunk = portion / 4;
    stage.values[RowGroup(chunk / kSuperblocks)][4 * (chunk % kSuperblocks) + portion % 4]
                [4 * g() + t()] = converted_;
  }

  // Of the next step; the weights of this one leave their registers for `stage` first.
  __device__ void Load(int chunk, Float64Stage<Cover>& stage) {
    const int pass = chunk / kSuperblocks, superblock = chunk % kSuperblocks;
    if constexpr (kWeighted) {
      if (superblock == 0 && g() == 0) stage.weights[4 * RowGroup(pass) + t()] = weight_[pass];
    }
    Fetch(chunk);
  }
  __device__ void Fetch(int chunk) {
    const int superblock = chunk % kSuperblocks;
    const bool column = 4 * superblock >= Cover::kRowBlocks;
    const int feature = 8 * g() + (column ? region_.columns : region_.rows + 64 * superblock);
    const bool exists = cursor_.valid() && feature < rows_.dim;
    raw_[chunk] = LoadRaw<kType>(cursor_.data() + feature * RowTypeBytes(kType), exists);
    if constexpr (kWeighted) {
      if (superblock == 0)
        weight_[chunk / kSuperblocks] =
            exists ? weights_[static_cast<int64_t>(cursor_.token()) * rows_.num_kv_heads] : 0;
    }
    if (superblock == kSuperblocks - 1) cursor_.Advance(rows_);
  }

  const RowsView& rows_;
  const double* weights_;
  const GramRegion region_;
  RowCursor<4 * Cover::kWarps> cursor_;
  RawValues<kType> raw_[kChunks];
  double weight_[kPasses];
  double2 converted_;
};

// kDepth: groups of 4 rows (j) of one instruction.
template <typename Cover, bool kWeighted, int kDepth>
struct Float64Warp {
  using Block = double[2][kDepth];        // of one 16-feature block: 8-feature half, j
  double sums[Cover::kTiles][2][4] = {};  // [tile][8-column half]

  __device__ static void ReadBlock(const Float64Stage<Cover>& stage, int j, int block,
                                   Block& values) {
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      const double2 pair = stage.values[j + i][block][threadIdx.x % 32];
      values[0][i] = pair.x;
      values[1][i] = pair.y;
    }
  }
  // As rows of the product: each row of X times its weight.
  __device__ static void Weigh(const Float64Stage<Cover>& stage, int j, const Block& block,
                               Block& a) {
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        a[h][i] = block[h][i];
        if constexpr (kWeighted) a[h][i] *= stage.weights[4 * (j + i) + threadIdx.x % 4];
      }
    }
  }
  // Calls between(event), of a step's events, after each instruction.
  template <typename Between>
  __device__ void AddTile(int tile, const Block& a, const Block& b, int& event,
                          const Between& between) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      MmaFloat64<kDepth>(sums[tile][half], a, b[half]);
      between(event++);
    }
  }

  static constexpr int kPanelEvents = 2 * Cover::kPanelTiles * 4 / kDepth;
  template <typename Between>
  __device__ void MultiplyPanel(const Float64Stage<Cover>& stage, const Between& between) {
    constexpr int kBlocks = Cover::kRowBlocks * 4 / kDepth;  // read in a step
    const int warp = threadIdx.x / 32;
    Block first, second, blocks[2];
    ReadBlock(stage, 0, warp, blocks[0]);
    int event = 0;
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) {
      const int k = i % Cover::kRowBlocks, j = i / Cover::kRowBlocks * kDepth;
      const Block& block = blocks[i % 2];
      if (i + 1 < kBlocks)
        ReadBlock(stage, (i + 1) / Cover::kRowBlocks * kDepth, (warp + i + 1) % Cover::kRowBlocks,
                  blocks[(i + 1) % 2]);
      if (k == 0) Weigh(stage, j, block, first);
      if (k == Cover::kHalf) Weigh(stage, j, block, second);
      if (k <= Cover::kHalf) AddTile(k, first, block, event, between);
      if (k >= Cover::kHalf) AddTile(k + 1, second, block, event, between);
    }
  }

  static constexpr int kSquareEvents = 2 * Cover::kSquareTiles * 4 / kDepth;
  template <typename Between>
  __device__ void MultiplySquare(const Float64Stage<Cover>& stage, const Between& between) {
    const int warp = threadIdx.x / 32;
    Block first, second, block;
    int event = 0;
#pragma unroll
    for (int j = 0; j < 4; j += kDepth) {
      ReadBlock(stage, j, warp, block);
      Weigh(stage, j, block, first);
      ReadBlock(stage, j, warp + Cover::kHalf, block);
      Weigh(stage, j, block, second);
#pragma unroll
      for (int k = 0; k < Cover::kColumnBlocks; ++k) {
        ReadBlock(stage, j, Cover::kRowBlocks + k, block);
        AddTile(k, first, block, event, between);
        AddTile(Cover::kColumnBlocks + k, second, block, event, between);
      }
    }
  }
};

template <typename Cover, RowType kType, bool kWeighted, int kDepth, bool kSquare>
__device__ void GramFloat64Region(const RowsView& rows, const double* weights, GramRegion region,
                                  int kv_head, TokenRange tokens, double2* partial) {
  extern __shared__ __align__(16) char shared[];
  auto* stages = reinterpret_cast<Float64Stage<Cover>*>(shared);
  using Warp = Float64Warp<Cover, kWeighted, kDepth>;
  using Loader =
      Float64Loader<Cover, kType, kWeighted, (kSquare ? Cover::kBlocks : Cover::kRowBlocks) / 4>;
  static_assert((kSquare ? Warp::kSquareEvents : Warp::kPanelEvents) > Loader::kPortions);
  Loader loader(rows, weights, region, kv_head, tokens);
  Warp warp;
#pragma unroll
  for (int event = 0; event <= Loader::kPortions; ++event) loader.Move(event, stages[0]);
  const int steps = (tokens.count * rows.gqa_ratio + kFloat64Rows - 1) / kFloat64Rows;
  for (int step = 0; step < steps; ++step) {
    __syncthreads();
    Float64Stage<Cover>& next = stages[(step + 1) % 2];
    const auto move = [&](int event) { loader.Move(event, next); };
    if constexpr (kSquare) {
      warp.MultiplySquare(stages[step % 2], move);
    } else {
      warp.MultiplyPanel(stages[step % 2], move);
    }
  }
  constexpr int kTiles = kSquare ? Cover::kSquareTiles : Cover::kPanelTiles;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const double(&c)[4] = warp.sums[tile][half];
      partial[(4 * tile + 2 * half) * Cover::kThreads + threadIdx.x] = {c[0], c[1]};
      partial[(4 * tile + 2 * half + 1) * Cover::kThreads + threadIdx.x] = {c[2], c[3]};
    }
  }
}

// Grid: regions, splits, KV heads.
template <typename Cover, RowType kType, bool kWeighted, int kDepth, int kCtasPerSm>
__global__ void __launch_bounds__(Cover::kThreads, kCtasPerSm)
    GramFloat64Kernel(const __grid_constant__ RowsView rows, const double* weights,
                      int tokens_per_split, double2* partials) {
  const GramRegion region = GramRegionOf(rows.dim, blockIdx.x);
  const TokenRange tokens = TokensOfSplit(rows.num_tokens, tokens_per_split, blockIdx.y);
  double2* partial =
      partials + GramPartial(blockIdx.z, blockIdx.x, blockIdx.y, gridDim.x, gridDim.y) *
                     (Cover::kPairs * Cover::kThreads);
  if constexpr (Cover::kSquares) {
    if (region.square) {
      GramFloat64Region<Cover, kType, kWeighted, kDepth, true>(rows, weights, region, blockIdx.z,
                                                               tokens, partial);
      return;
    }
  }
  GramFloat64Region<Cover, kType, kWeighted, kDepth, false>(rows, weights, region, blockIdx.z,
                                                            tokens, partial);
}

}  // namespace oscar
