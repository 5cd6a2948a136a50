// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// float64 matrix instructions (DMMA). sm_90 and later have m16n8k8 and m16n8k16, which reach their
// peak; sm_80 to 89 have m8n8k4. Source: PTX ISA, "Matrix Fragments for mma.m16n8k16".
#pragma once

namespace oscar {

// c [16, 8] += a [16, 4 kDepth] b [4 kDepth, 8]. a[h][j]: row 8 h + g, column 4 j + t; b[j]: row
// 4 j + t, column g; c as in device/mma.cuh.
template <int kDepth>
__device__ inline void MmaFloat64(double (&c)[4], const double (&a)[2][kDepth],
                                  const double (&b)[kDepth]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  constexpr bool kDeep = true;
#else
  constexpr bool kDeep = false;
#endif
  if constexpr (kDeep && kDepth == 4) {
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, "
        "{%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0][0]), "d"(a[1][0]), "d"(a[0][1]), "d"(a[1][1]), "d"(a[0][2]), "d"(a[1][2]),
          "d"(a[0][3]), "d"(a[1][3]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
  } else if constexpr (kDeep && kDepth == 2) {
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0][0]), "d"(a[1][0]), "d"(a[0][1]), "d"(a[1][1]), "d"(b[0]), "d"(b[1]));
  } else {
#pragma unroll
    for (int j = 0; j < kDepth; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
            : "+d"(c[2 * h]), "+d"(c[2 * h + 1])
            : "d"(a[h][j]), "d"(b[j]));
      }
    }
  }
}

}  // namespace oscar
