// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of our own invariants. A failure is a bug in oscar: it prints both values and aborts.
// Never used on input (see error.h).
#pragma once

#include <cstdlib>
#include <iostream>

#define OSCAR_CHECK(condition)                                                                 \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      std::cerr << __FILE__ << ":" << __LINE__ << ": bug in oscar: " #condition " is false\n"; \
      std::abort();                                                                            \
    }                                                                                          \
  } while (false)

#define OSCAR_CHECK_OP(op, a, b)                                                            \
  do {                                                                                      \
    const auto& oscar_check_a = (a);                                                        \
    const auto& oscar_check_b = (b);                                                        \
    if (!(oscar_check_a op oscar_check_b)) {                                                \
      std::cerr << __FILE__ << ":" << __LINE__ << ": bug in oscar: " #a " " #op " " #b " (" \
                << oscar_check_a << " against " << oscar_check_b << ")\n";                  \
      std::abort();                                                                         \
    }                                                                                       \
  } while (false)

#define OSCAR_CHECK_EQ(a, b) OSCAR_CHECK_OP(==, a, b)
#define OSCAR_CHECK_LE(a, b) OSCAR_CHECK_OP(<=, a, b)
#define OSCAR_CHECK_LT(a, b) OSCAR_CHECK_OP(<, a, b)
