// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Quantizes 16 or 32 rows in shared memory with error feedback (linalg/feedback_codec.h), one row
// per lane, in blocks of kFeedbackBlock coordinates. The coordinates of a block are quantized in
// order, with errors packed in bytes. The contribution of earlier blocks is an integer product on
// tensor cores. Errors and codes overwrite the values.
#pragma once

#include "export/cuda/write/register_codes.cuh"
#include "linalg/feedback_codec.h"

namespace oscar {

// The fit of a group of a row: maps values to the group's range, and errors to quanta and back.
struct FeedbackFit {
  float share, zero;            // y = x share + zero
  float of_quantum, in_quanta;  // factors from and to quanta; powers of two for a single group
};

__device__ inline uint32_t LoadWord(uint32_t address) {
  uint32_t x;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
  return x;
}
__device__ inline uint4 LoadChunk(uint32_t address) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(address)
               : "memory");
  return x;
}
__device__ inline void StorePair(uint32_t address, int x, int y) {
  asm volatile("st.shared.v2.u32 [%0], {%1,%2};" ::"r"(address), "r"(x), "r"(y) : "memory");
}
__device__ inline void StoreChunk(uint32_t address, const uint32_t (&x)[4]) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(x[0]), "r"(x[1]),
               "r"(x[2]), "r"(x[3])
               : "memory");
}

// `stored`: scale and zero as a reader gets them. `unit`: the factor's unit. If a row has several
// groups, `wider` is the largest scale divided by this one, at most kMostWider, and `narrower` is
// this scale divided by the largest.
__device__ inline FeedbackFit FitFeedback(const AffineGroup<float>& stored, int bits, float unit,
                                          float wider = 1, float narrower = 1) {
  const float share = CodeShare(bits), quanta = FeedbackQuanta(bits);
  return {__fdiv_rn(share, stored.scale), __fmul_rn(stored.zero, share), wider * (unit / quanta),
          narrower * quanta};
}

// Returns the row whose chunks hold the sums of `row`. If chunk c of row r is stored at c ^ (r %
// 8), neither access by row nor access by fragment has bank conflicts.
__device__ inline int SumRow(int row) { return (row & ~7) | row % 4 * 2 | row / 4 % 2; }

// Replaces byte i of a word by the low byte of `byte`.
__device__ inline uint32_t WithByte(uint32_t word, uint32_t byte, int i) {
  return i == 0   ? byte  // the higher bytes are replaced before they are read
         : i == 1 ? __byte_perm(word, byte, 0x3240)
         : i == 2 ? __byte_perm(word, byte, 0x3410)
                  : __byte_perm(word, byte, 0x4210);
}

// Returns x y + z, clamped to [0, 1].
__device__ inline float SaturatedFma(float x, float y, float z) {
  float sum;
  asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(sum) : "f"(x), "f"(y), "f"(z));
  return sum;
}

// Loads the B fragments of factor columns [n, n + 16) and the coordinates of two blocks. kShared:
// loads from shared memory, where the columns must start at different multiples of 16 bytes modulo
// 128. Otherwise loads from any memory.
template <bool kShared>
__device__ inline void LoadFactors(const int8_t* columns, int stride, uint32_t (&b)[4]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  if constexpr (kShared) {
    LoadMatrices(b,
                 SharedAddress(columns) + (lane / 16 * 8 + lane % 8) * stride + lane / 8 % 2 * 16);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      b[i] = *reinterpret_cast<const uint32_t*>(columns + (i / 2 * 8 + lane / 4) * stride +
                                                i % 2 * 16 + lane % 4 * 4);
  }
}

// Adding this to an integer within +-2^22 leaves the integer in the low bits of the float.
inline constexpr float kInteger = 12582912.0F;  // 2^23 + 2^22

// Returns a word whose last byte is the error x * in_quanta, rounded and clamped to +-kMaxFeedback.
// kTame: no clamping is needed. kOneGroup: in_quanta is a power of two.
template <bool kTame, bool kOneGroup>
__device__ inline uint32_t RoundedError(float x, float in_quanta) {
  if constexpr (kTame && kOneGroup) {
    return __float_as_uint(__fmaf_rn(x, in_quanta, kInteger));
  } else if constexpr (kTame) {
    return __float_as_uint(__fadd_rn(__fmul_rn(x, in_quanta), kInteger));
  } else {
    const float clamped =
        fminf(fmaxf(__fmul_rn(x, in_quanta), -float{kMaxFeedback}), float{kMaxFeedback});
    return __float_as_uint(__fadd_rn(clamped, kInteger));
  }
}

// Quantizes the rows of a warp.
//
// - chunk(row, c): the address of the 16 bytes with values [8c, 8c + 8) of a row
// - fit_of(d): this lane's fit of dim d
// - factor [dim, stride]: the result of PackFeedbackFactor
// - kDim: dim for rows of 2 bits, or 0 for any rows
// - kOneGroup: a row is one group; kTame: no error exceeds kMaxFeedback
//
// Afterwards, if kDim is 0, chunk 2b + 1 of a row has the codes of block b as bytes. Otherwise
// chunk 8s + 7 has the codes of dims [64 s, 64 s + 64) as words of K's planes, one for each lane of
// a quad.
template <int kTiles, bool kTame, int kDim, bool kOneGroup, class Chunk, class FitOf>
__device__ inline void FeedBack(int dim, int bits, const int8_t* factor, int stride,
                                const Chunk& chunk, const FitOf& fit_of) {
  static_assert(kDim != 0 || !(kTame || kOneGroup));
  constexpr bool kPlanes = kDim != 0;
  const float max_code = static_cast<float>(MaxCode(kPlanes ? 2 : bits));
  const float share = CodeShare(kPlanes ? 2 : bits);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int row = lane % (16 * kTiles);
#pragma unroll 1
  for (int segment = 0; segment < (kPlanes ? kDim : dim); segment += 64) {
    float codes[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) codes[i] = 8388608.0F;
    float weight = 1;
#pragma unroll 1
    for (int first = segment; first < (kPlanes ? segment + 64 : min(segment + 64, dim));
         first += kFeedbackBlock) {
      // Applies the feedback of earlier blocks. Tensor cores compute sums [rows, 16], which are
      // then moved to the lanes of the rows.
      int c[kTiles][2][4] = {};
      const auto add = [&](int i) {  // coordinates [i, i + 32): this block's own factors are 0
        uint32_t b[4];
        LoadFactors<kPlanes>(factor + first * stride + i, stride, b);
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          uint32_t a[4];
          LoadMatrices(a, chunk(16 * tile + lane % 16, i / 8 + lane / 16 * 2));
#pragma unroll
          for (int n = 0; n < 2; ++n)
            MmaS8(c[tile][n], a[0], a[1], a[2], a[3], b[2 * n], b[2 * n + 1]);
        }
      };
      if constexpr (kPlanes) {
#pragma unroll
        for (int i = 0; i < kDim; i += 2 * kFeedbackBlock) {
          if (i < first) add(i);
        }
      } else {
        for (int i = 0; i < first; i += 2 * kFeedbackBlock) add(i);
      }
      const uint4 low = LoadChunk(chunk(row, first / 8)),
                  high = LoadChunk(chunk(row, first / 8 + 1));
      const uint32_t x[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
      int fed[16];
#pragma unroll
      for (int n = 0; n < 2; ++n) {  // eight sums at a time, which overwrite the values
        __syncwarp();                // all lanes have read the old values by now
#pragma unroll
        for (int i = 0; i < 2 * kTiles; ++i)
          StorePair(chunk(SumRow(8 * i + lane / 4), first / 8 + lane % 4 / 2) + lane % 2 * 8,
                    c[i / 2][n][i % 2 * 2], c[i / 2][n][i % 2 * 2 + 1]);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const uint4 sum = LoadChunk(chunk(SumRow(row), first / 8 + i));
          fed[8 * n + 4 * i] = static_cast<int>(sum.x);
          fed[8 * n + 4 * i + 1] = static_cast<int>(sum.y);
          fed[8 * n + 4 * i + 2] = static_cast<int>(sum.z);
          fed[8 * n + 4 * i + 3] = static_cast<int>(sum.w);
        }
      }
      const FeedbackFit fit = fit_of(first);
      uint32_t q[4], bytes[4];
      const int8_t* triangle = factor + first * stride + dim;
#pragma unroll
      for (int p = 0; p < 16; ++p) {
        if (p > 0) {
          const int4 u = *reinterpret_cast<const int4*>(triangle + p * stride);
          const int words[4] = {u.x, u.y, u.z, u.w};
#pragma unroll
          for (int i = 0; i <= (p - 1) / 4; ++i)
            fed[p] = __dp4a(static_cast<int>(q[i]), words[i], fed[p]);
        }
        const float value = p % 2 == 0 ? LowBf16(x[p / 2]) : HighBf16(x[p / 2]);
        const float y = __fadd_rn(__fmul_rn(value, fit.share), fit.zero);
        const float sum = __int2float_rn(fed[p]);
        const float moved = kOneGroup ? SaturatedFma(sum, fit.of_quantum, y)  // exact product
                                      : __saturatef(__fadd_rn(y, __fmul_rn(sum, fit.of_quantum)));
        const float raised = __fmaf_rn(moved, max_code, kInteger);
        const float code = __fsub_rn(raised, kInteger);
        const float error = __fmaf_rn(code, -share, y);  // this product is also exact
        q[p / 4] = WithByte(q[p / 4], RoundedError<kTame, kOneGroup>(error, fit.in_quanta), p % 4);
        if constexpr (kPlanes) {
          codes[p % 8] = __fmaf_rn(code, p < 8 ? weight : 4 * weight, codes[p % 8]);
        } else {
          bytes[p / 4] = WithByte(bytes[p / 4], __float_as_uint(raised), p % 4);
        }
      }
      weight *= 16;
      __syncwarp();  // all lanes have read the sums by now
      if (lane < 16 * kTiles) {
        StoreChunk(chunk(row, first / 8), q);
        if constexpr (!kPlanes) StoreChunk(chunk(row, first / 8 + 1), bytes);
      }
      __syncwarp();
    }
    if constexpr (kPlanes) {
      uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        words[i] =
            __byte_perm(__float_as_uint(codes[2 * i]), __float_as_uint(codes[2 * i + 1]), 0x5410);
      StoreChunk(chunk(row, segment / 8 + 7), words);
    }
  }
  __syncwarp();
}

}  // namespace oscar
