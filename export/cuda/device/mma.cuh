// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Warp-level matrix instructions and asynchronous copies, sm_80 and later. Fragments of m16n8k16,
// lane = 4 g + t:
//
//   A [16, 16]  a0 (g, 2t..2t+1)   a1 (g + 8, 2t..)   a2 (g, 2t + 8..)   a3 (g + 8, 2t + 8..)
//   B [16, 8]   b0 (2t..2t+1, g)   b1 (2t + 8.., g)
//   C [16, 8]   c0 (g, 2t)   c1 (g, 2t + 1)   c2 (g + 8, 2t)   c3 (g + 8, 2t + 1)
//
// Source: PTX ISA, "Matrix Fragments for mma.m16n8k16".
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace oscar {

__device__ inline void MmaF16(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                              uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ inline void MmaBf16(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                               uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Multiplies integers with m16n8k32. Fragments are as above, except that those of A and B have the
// four bytes from 4t or 4t + 16 on instead of pairs.
__device__ inline void MmaU8S8(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                               uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Does the same as MmaU8S8 with signed bytes in A.
__device__ inline void MmaS8(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                             uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Loads four 8 x 8 matrices of 16-bit values from shared memory, unchanged or transposed. Lane l
// gives the address of row l % 8 of matrix l / 8.
__device__ inline void LoadMatrices(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ inline void LoadMatricesTransposed(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

// Stores four matrices. Addresses are given as for LoadMatrices.
__device__ inline void StoreMatrices(const uint32_t (&r)[4], uint32_t address) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
#else
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t row = __shfl_sync(0xFFFFFFFFU, address, 8 * i + lane / 4);
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(row + lane % 4 * 4), "r"(r[i]) : "memory");
  }
#endif
}

// Transposes an 8 x 8 matrix of 16-bit values with row g in lanes 4g..4g+3.
__device__ inline uint32_t Transpose8x8(uint32_t x) {
  uint32_t y;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

__device__ inline float Exp2(float x) {  // 2 ulp; -inf gives 0
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline uint32_t PackHalf2(float low, float high) {
  const __half2 h = __floats2half2_rn(low, high);
  return reinterpret_cast<const uint32_t&>(h);
}

// Makes the compiler assume that the values have changed.
template <int kCount>
__device__ __forceinline__ void Hold(float (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}

__device__ inline uint32_t PackBf16x2(float low, float high) {
  const __nv_bfloat162 b = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(b);
}

// Reads threadIdx.x % 32 again, so that values derived from it need not stay in registers.
__device__ inline int LaneAgain() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

__device__ inline uint32_t SharedAddress(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

// Copies 16 bytes from global to shared memory, bypassing L1. Both must be 16-byte aligned.
__device__ inline void CopyAsync16(uint32_t shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}
// Copies 4 bytes from global to shared memory.
__device__ inline void CopyAsync4(uint32_t shared, const void* global) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared), "l"(global) : "memory");
}
// Copies 16 bytes, or writes 16 zero bytes.
__device__ inline void CopyAsync16OrZero(uint32_t shared, const void* global, bool copy) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
               "r"(copy ? 16 : 0)
               : "memory");
}
__device__ inline void CopyAsyncCommit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most `kPending` of this thread's groups are in flight.
template <int kPending>
__device__ inline void CopyAsyncWait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Prefetches the 128-byte line at `global` into the L2 cache.
__device__ inline void PrefetchL2(const void* global) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}

// Bulk copies (sm_90): one thread requests a copy, and a barrier in shared memory counts its bytes.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define OSCAR_BULK_COPY 1
#else
#define OSCAR_BULK_COPY 0
#endif

__device__ inline void BarrierInit(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

#if OSCAR_BULK_COPY
// Orders earlier writes to shared memory before later operations of the copy engine.
__device__ inline void FenceAsyncProxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Lets this thread arrive at the barrier and announces the `bytes` that its phase waits for.
__device__ inline void BarrierExpect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ inline void BarrierArrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void BarrierWait(uint32_t barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
// Both addresses must be 16-byte aligned and `bytes` a multiple of 16.
__device__ inline void CopyBulk(uint32_t shared, const void* global, int bytes, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared),
      "l"(global), "r"(bytes), "r"(barrier)
      : "memory");
}
#endif

// Programmatic dependent launch (sm_90): LaunchDependents lets the next kernel start, and
// WaitForPreviousKernel waits for the writes of the previous one.
__device__ inline void LaunchDependents() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
__device__ inline void WaitForPreviousKernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace oscar
