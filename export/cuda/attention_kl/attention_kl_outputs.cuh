// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Processes a tile of logits in the kernels that also compare outputs. They compute weights for P V
// and P^ V^, relative to maxima that the four lanes of a row share. A weight enters the products as
// the sum of two bf16 numbers, since a single one would add noise of 1e-3 |o| to |o - o^|. In P^
// V^, the weight of a key that is read exactly multiplies v, not v^.
#pragma once

#include "export/cuda/attention_kl/attention_kl_kernel.cuh"

namespace oscar::kl {

struct OutputSums {
  FarSums far;
  float sum_hat = 0;               // this thread's sum of the weights of P^
  float decay = 1, decay_hat = 1;  // factors of everything accumulated before this tile
};

__device__ __forceinline__ float QuadMax(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, 2));
}

// Does what AddTile() does. Leaves the weights of P in the first half of acc and those of P^ in the
// second.
template <int kKeys>
__device__ __forceinline__ void AddTileWithWeights(const KlParams& p, const RowKeys& keys,
                                                   int tile_key, int lane, float (&acc)[kKeys],
                                                   RowSums (&rows)[2], OutputSums (&outputs)[2]) {
  float max[2] = {kLowest, kLowest}, max_hat[2] = {kLowest, kLowest}, error[2] = {0, 0};
  TileDifferences(p, keys, tile_key, lane, acc, error, rows);
  TileMax(acc, max);
  TileMaxHat(acc, max_hat);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    max[h] = fmaxf(rows[h].max, QuadMax(max[h]) * p.scale_log2);
    max_hat[h] = fmaxf(outputs[h].far.max_hat, QuadMax(max_hat[h]) * p.scale_log2);
    outputs[h].decay = Rescale(rows[h], max[h]);
    outputs[h].decay_hat = Exp2(outputs[h].far.max_hat - max_hat[h]);
  }
  TileSums tile[2];
  float weight_hat[2] = {0, 0};
  AddFar<true>(p, acc, rows, max_hat, tile, weight_hat);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    Accumulate(rows[h], tile[h]);
    AccumulateFar(outputs[h].far, tile[h], max[h], max_hat[h]);
    outputs[h].sum_hat = fmaf(outputs[h].sum_hat, outputs[h].decay_hat, weight_hat[h]);
  }
}

__device__ __forceinline__ uint32_t PackBf16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

enum class Keep { kAll, kStored, kExact };  // which keys of a row keep their weights

// Packs the weights of 16 keys (accumulators [8]) as A operands, one for their high and one for
// their low parts.
template <Keep kKeep>
__device__ __forceinline__ void PackWeights(const KlParams& p, const RowKeys& keys, int first_key,
                                            int lane, const float* weights, uint32_t (&high)[4],
                                            uint32_t (&low)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float w[2] = {weights[2 * i], weights[2 * i + 1]};
    if constexpr (kKeep != Keep::kAll) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int key = first_key + i / 2 * 8 + 2 * (lane % 4) + j;
        const bool exact = IsExact(p, keys.last[i % 2], key);
        if (exact != (kKeep == Keep::kExact)) w[j] = 0;
      }
    }
    high[i] = PackBf16(w[0], w[1]);
    low[i] = PackBf16(w[0] - __uint_as_float(high[i] << 16),
                      w[1] - __uint_as_float(high[i] & 0xFFFF0000u));
  }
}

// Rescales the accumulated outputs if a maximum rose.
template <int kCount>
__device__ __forceinline__ void Decay(const OutputSums (&sums)[2], float (&out)[kCount],
                                      float (&out_hat)[kCount]) {
  const bool rose =
      sums[0].decay != 1 || sums[1].decay != 1 || sums[0].decay_hat != 1 || sums[1].decay_hat != 1;
  if (!__any_sync(0xFFFFFFFFu, rose)) return;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    out[i] *= sums[i / 2 % 2].decay;
    out_hat[i] *= sums[i / 2 % 2].decay_hat;
  }
}

__device__ __forceinline__ double QuadSum(double x) {
  x += Exchange(x, 1);
  return x + Exchange(x, 2);
}

template <int kCount>
__device__ inline void StoreOutputs(const KlParams& p, int v_tile, int kv_head, int warp_vrow,
                                    int lane, const RowSums (&rows)[2], const OutputSums (&sums)[2],
                                    const float (&out)[kCount], const float (&out_hat)[kCount]) {
  const auto inverse_of = [](double sum) {
    sum = QuadSum(sum);
    return sum == 0 ? 0 : 1 / sum;  // 0 for a row that sees no key
  };
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const double inverse = inverse_of(rows[h].sum), inverse_hat = inverse_of(sums[h].sum_hat);
    const int vrow = warp_vrow + lane / 4 + 8 * h;
    if (vrow >= p.num_vrows) continue;
    const int head = kv_head * p.gqa_ratio + vrow % p.gqa_ratio;
    const size_t row = static_cast<size_t>(head) * p.rows + vrow / p.gqa_ratio;
#pragma unroll
    for (int j = 0; j < kCount / 4; ++j) {
      const int column = v_tile * 2 * kCount + 8 * j + 2 * (lane % 4), i = 4 * j + 2 * h;
      if (column >= p.v_head_dim) continue;
      const size_t at = row * p.v_head_dim + column;
      const auto store = [at](float* to, const float* x, double factor) {
        *reinterpret_cast<float2*>(to + at) =
            make_float2(static_cast<float>(x[0] * factor), static_cast<float>(x[1] * factor));
      };
      store(p.output, out + i, inverse);
      store(p.output_hat, out_hat + i, inverse_hat);
    }
  }
}

}  // namespace oscar::kl
