// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Hopper's warpgroup instructions, sm_90a: matrix products and bulk tensor copies (PTX ISA 8.x,
// sections on wgmma and cp.async.bulk.tensor). Trap: accumulators may be used only between
// WgmmaWait() and the next product. The compiler does not know that; Hold() (mma.cuh) tells it.
// Trap: if two consecutive chains of products write the same sums, and each begins without adding,
// ptxas 13.0 merges them and drops the second.
#pragma once

#include <cuda.h>  // CUtensorMap

#include <cstdint>

#include "export/cuda/device/mma.cuh"

namespace oscar {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// Describes an operand of 128-byte rows with 128-byte swizzle. `group_bytes`: the distance between
// groups of 8 rows. `panel_bytes`: the distance between panels of 64 columns, if rows run along k
// (transposed operand).
__device__ __forceinline__ uint64_t WgmmaOperand(uint32_t address, uint32_t panel_bytes = 16,
                                                 uint32_t group_bytes = 1024) {
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) |
         static_cast<uint64_t>(panel_bytes >> 4) << 16 |
         static_cast<uint64_t>(group_bytes >> 4) << 32 | uint64_t{1} << 62;
}

__device__ __forceinline__ void WgmmaBegin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void WgmmaEnd() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void WgmmaWait() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// Accumulators as asm operands, and their names in the asm text.
#define OSCAR_SUMS_4(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define OSCAR_SUMS_16(i) \
  OSCAR_SUMS_4(i), OSCAR_SUMS_4((i) + 4), OSCAR_SUMS_4((i) + 8), OSCAR_SUMS_4((i) + 12)
#define OSCAR_SUMS_32(i) OSCAR_SUMS_16(i), OSCAR_SUMS_16((i) + 16)
#define OSCAR_NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define OSCAR_NAMES_32                                                            \
  OSCAR_NAMES_16                                                                  \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, " \
  "%31"
#define OSCAR_NAMES_64                                                               \
  OSCAR_NAMES_32                                                                     \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// Computes d [64, n] = a [64, 16] b, or d += a b, with both operands in shared memory. b is stored
// as rows [n, 16], or with kColumns as [16, n]. Here n is 32.
template <bool kColumns = false>
__device__ __forceinline__ void Wgmma(float (&d)[16], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {" OSCAR_NAMES_16
      "}, "
      "%16, %17, p, 1, 1, 0, %19;\n}\n"
      : OSCAR_SUMS_16(0)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)), "n"(static_cast<int>(kColumns)));
}

// The same with n = 64.
template <bool kColumns = false>
__device__ __forceinline__ void Wgmma(float (&d)[32], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" OSCAR_NAMES_32
      "}, "
      "%32, %33, p, 1, 1, 0, %35;\n}\n"
      : OSCAR_SUMS_32(0)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)), "n"(static_cast<int>(kColumns)));
}

// The same with n = 128.
template <bool kColumns = false>
__device__ __forceinline__ void Wgmma(float (&d)[64], uint64_t a, uint64_t b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" OSCAR_NAMES_64
      "}, "
      "%64, %65, p, 1, 1, 0, %67;\n}\n"
      : OSCAR_SUMS_32(0), OSCAR_SUMS_32(32)
      : "l"(a), "l"(b), "r"(static_cast<int>(add)), "n"(static_cast<int>(kColumns)));
}

// Computes d [64, 64] += a b, with a [64, 16] in registers and b stored as [16, 64].
__device__ __forceinline__ void WgmmaColumns(float (&d)[32], const uint32_t (&a)[4], uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" OSCAR_NAMES_32
               "}, "
               "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
               : OSCAR_SUMS_32(0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// Computes d [64, 128] += a b, with a [64, 16] in registers and b stored as [16, 128].
__device__ __forceinline__ void WgmmaColumns(float (&d)[64], const uint32_t (&a)[4], uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" OSCAR_NAMES_64
               "}, "
               "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
               : OSCAR_SUMS_32(0), OSCAR_SUMS_32(32)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#undef OSCAR_NAMES_64
#undef OSCAR_NAMES_32
#undef OSCAR_NAMES_16
#undef OSCAR_SUMS_32
#undef OSCAR_SUMS_16
#undef OSCAR_SUMS_4

// Copies a box of map [tokens, heads, dim] at (token, head, column) to shared memory.
__device__ __forceinline__ void CopyTensor(void* shared, const CUtensorMap* map, uint64_t* barrier,
                                           int column, int head, int token) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::"
      "complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(SharedAddress(shared)),
      "l"(map), "r"(SharedAddress(barrier)), "r"(column), "r"(head), "r"(token)
      : "memory");
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

}  // namespace oscar
