// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared by the kernels of host_kernels.h.
#pragma once

// Marks a function that is compiled for several instruction sets; the loader picks one.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define OSCAR_FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define OSCAR_FOR_EACH_PROCESSOR
#endif
#define OSCAR_INLINE inline __attribute__((always_inline))

namespace oscar {

// Rounds |x| < 2^22 to the nearest integer, ties to even, by adding 1.5 * 2^23 (2^52 in float64).
OSCAR_INLINE float Nearest(float x) { return (x + 0x1.8p23F) - 0x1.8p23F; }
OSCAR_INLINE double Nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

}  // namespace oscar
