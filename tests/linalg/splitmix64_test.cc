// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/base/splitmix64.h"

#include <gtest/gtest.h>

namespace oscar {
namespace {

// Checks the first outputs of the reference implementation for seed 1234567.
TEST(SplitMix64, NumbersAreThoseOfTheReference) {
  SplitMix64 random(1234567);
  EXPECT_EQ(random.Next(), 6457827717110365317U);
  EXPECT_EQ(random.Next(), 3203168211198807973U);
  EXPECT_EQ(random.Next(), 9817491932198370423U);
}

}  // namespace
}  // namespace oscar
