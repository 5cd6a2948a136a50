// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// y = x R for the four tiles of a warpgroup, x and y in registers and R in shared memory: one wgmma
// per 16 dims on Hopper, mma elsewhere. A row of x is read 16 bytes per lane; which of its dims a
// fragment calls k does not matter as long as R's rows are in the same order (RowOfDim). Trap: all
// four warps must call together, as wgmma wants.
#pragma once

#include "export/cuda/write/register_rows.cuh"
#include "export/cuda/write/rotate_tile.cuh"

namespace oscar {

// x of rows g and g + 8: lane 4g + t holds dims 32 b + 8 t .. + 7 in x[.][b].
template <int kDim>
struct InputRows {
  uint4 x[2][kDim / 32];
};

template <int kDim>
__device__ inline void LoadInput(const __nv_bfloat16* row0, const __nv_bfloat16* row1,
                                 InputRows<kDim>& input) {
  const int t = static_cast<int>(threadIdx.x % 4);
#pragma unroll
  for (int b = 0; b < kDim / 32; ++b) {
    input.x[0][b] = __ldcs(reinterpret_cast<const uint4*>(row0) + 4 * b + t);
    input.x[1][b] = __ldcs(reinterpret_cast<const uint4*>(row1) + 4 * b + t);
  }
}

// Row of R's copy, in the order in which fragments count k: dim 32 b + 8 t + 4 s + 2 c + e is row
// 32 b + 16 s + 8 c + 2 t + e.
__device__ inline int RowOfDim(int dim) {
  const int in_block = dim % 32;
  return dim - in_block + in_block / 4 % 2 * 16 + in_block / 2 % 2 * 8 + in_block / 8 * 2 +
         in_block % 2;
}

// The copy is in matrices of 8 rows x 16 bytes, [kDim / 8][kDim / 8], kDim * kDim values in all.
template <int kDim, int kThreads>
__device__ inline void LoadRotation(const __nv_bfloat16* r, __nv_bfloat16* copy) {
  constexpr int kRows = kThreads / 8;  // that the CTA copies at a time, 64 columns of them
  static_assert(32 % kRows == 0 && kDim % 64 == 0, "a row must not change its place among 32");
  const int column = static_cast<int>(threadIdx.x) % 8;
  const int row0 = static_cast<int>(threadIdx.x) / 8;
  const uint32_t shared = SharedAddress(copy) + column * 128;
#pragma unroll 4
  for (int i = 0; i < kDim / kRows; ++i) {
    const int row = RowOfDim(row0) + RowOfDim(i * kRows);
#pragma unroll
    for (int n = 0; n < kDim; n += 64)
      CopyAsync16(shared + row / 8 * (kDim * 16) + row % 8 * 16 + n * 16,
                  r + (row0 + i * kRows) * kDim + n + 8 * column);
  }
  CopyAsyncCommit();
  CopyAsyncWait<0>();
#if OSCAR_BULK_COPY
  FenceAsyncProxy();
#endif
  __syncthreads();
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// B [16, kDim] from 8 x 8 matrices whose rows run along n: 128 bytes from one to the next along n,
// kDim * 16 along k. PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout".
template <int kDim>
__device__ inline uint64_t RotationDescriptor(uint32_t address) {
  constexpr uint64_t kAlongK = kDim * 16 / 16;  // in 16 bytes
  constexpr uint64_t kAlongN = 128 / 16;
  return (address >> 4 & 0x3FFFU) | kAlongK << 16 | kAlongN << 32;
}

#define OSCAR_C4(i) "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
#define OSCAR_C32(i)                                                               \
  OSCAR_C4(i), OSCAR_C4(i + 1), OSCAR_C4(i + 2), OSCAR_C4(i + 3), OSCAR_C4(i + 4), \
      OSCAR_C4(i + 5), OSCAR_C4(i + 6), OSCAR_C4(i + 7)

__device__ inline void WarpgroupMma(float (&c)[8][4], const uint32_t (&a)[4], uint64_t b, int add) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"
      "%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, p, 1, 1, 1;}\n"
      : OSCAR_C32(0)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
}
__device__ inline void WarpgroupMma(float (&c)[16][4], const uint32_t (&a)[4], uint64_t b,
                                    int add) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"
      "%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, {%64,%65,%66,%67}, %68, "
      "p, "
      "1, 1, 1;}\n"
      : OSCAR_C32(0), OSCAR_C32(8)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
}
#undef OSCAR_C32
#undef OSCAR_C4
#endif

// The fragment of k step s of the copy's order. A fragment takes words of two rows by turns, so
// that each must be moved; `zero` (0, which the compiler must not know) makes the move an addition
// here, or it is a move right after the load, and waits for it there.
template <int kDim>
__device__ inline void InputFragment(const InputRows<kDim>& input, int s, uint32_t zero,
                                     uint32_t (&a)[4]) {
  const uint4& x0 = input.x[0][s / 2];
  const uint4& x1 = input.x[1][s / 2];
  a[0] = (s % 2 == 0 ? x0.x : x0.z) + zero;
  a[1] = (s % 2 == 0 ? x1.x : x1.z) + zero;
  a[2] = (s % 2 == 0 ? x0.y : x0.w) + zero;
  a[3] = (s % 2 == 0 ? x1.y : x1.w) + zero;
}

template <int kDim>
__device__ inline void RotateRegisters(const InputRows<kDim>& input, const __nv_bfloat16* copy,
                                       uint32_t zero, RegisterRows<kDim / 8>& rows) {
  float c[kDim / 8][4];
  // All of them before the first wgmma: the compiler would wait for each one before touching
  // registers of the next.
  uint32_t a[kDim / 16][4];
#pragma unroll
  for (int s = 0; s < kDim / 16; ++s) {
    InputFragment(input, s, zero, a[s]);
#pragma unroll
    for (uint32_t& word : a[s]) asm volatile("" : "+r"(word));
  }
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  const uint64_t descriptor = RotationDescriptor<kDim>(SharedAddress(copy));
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int s = 0; s < kDim / 16; ++s) {
    const uint64_t b = descriptor + s * (2 * kDim * 16 / 16);
#pragma unroll
    for (int j = 0; j + 16 <= kDim / 8; j += 16)  // 128 columns, and 64 that may be left
      WarpgroupMma(reinterpret_cast<float(&)[16][4]>(c[j]), a[s], b + j * (128 / 16), s > 0);
    if constexpr (kDim % 128 == 64)
      WarpgroupMma(reinterpret_cast<float(&)[8][4]>(c[kDim / 8 - 8]), a[s],
                   b + (kDim / 8 - 8) * (128 / 16), s > 0);
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#else
  const int lane = static_cast<int>(threadIdx.x % 32);
  const uint32_t address =
      SharedAddress(copy + (lane / 8 % 2 * (kDim / 8) + lane / 16) * 64 + lane % 8 * 8);
#pragma unroll
  for (int j = 0; j < kDim / 8; ++j) c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
#pragma unroll
  for (int s = 0; s < kDim / 16; ++s) {
#pragma unroll
    for (int j = 0; j < kDim / 8; j += 2) {
      uint32_t b[4];
      LoadMatricesTransposed(b, address + (2 * s * (kDim / 8) + j) * 128);
      MmaBf16(c[j], a[s][0], a[s][1], a[s][2], a[s][3], b[0], b[1]);
      MmaBf16(c[j + 1], a[s][0], a[s][1], a[s][2], a[s][3], b[2], b[3]);
    }
  }
#endif
#pragma unroll
  for (int o = 0; o < kDim / 8; ++o) {
    rows.y[0][o] = PackBf16x2(c[o][0], c[o][1]);
    rows.y[1][o] = PackBf16x2(c[o][2], c[o][3]);
  }
}

}  // namespace oscar
