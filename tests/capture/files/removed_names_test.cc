// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/removed_names.h"

#include <gtest/gtest.h>

namespace oscar {
namespace {

TEST(RemovedNames, SaysWhatToUseForWholeNamesOnly) {
  EXPECT_TRUE(RemovedHint("oci:").starts_with("was removed; publish to "));
  EXPECT_EQ(RemovedHint("fish"), RemovedHint("zsh"));
  for (const char* name : {"", "fis", "fish zsh", "fish ", "oci"}) EXPECT_EQ(RemovedHint(name), "");
}

}  // namespace
}  // namespace oscar
