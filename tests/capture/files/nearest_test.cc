// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares edit distances with values worked out by hand.
#include "capture/files/nearest.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace oscar {
namespace {

TEST(Nearest, CountsEditsAndSwaps) {
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("tokens", "tokens"), 0u);
  EXPECT_EQ(EditDistance("toknes", "tokens"), 1u);  // one transposition
  EXPECT_EQ(EditDistance("Tokens", "tokens"), 0u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("ca", "abc"), 3u);  // transposed letters are not edited again
}

TEST(Nearest, IsSymmetricAndBounded) {
  EXPECT_TRUE(rc::check([](const std::string& a, const std::string& b) {
    const size_t distance = EditDistance(a, b);
    RC_ASSERT(distance == EditDistance(b, a));
    RC_ASSERT(distance <= std::max(a.size(), b.size()));
    RC_ASSERT(distance + std::min(a.size(), b.size()) >= std::max(a.size(), b.size()));
  }));
}

TEST(Nearest, NamesThreeAndTheFirstOfEqualsFirst) {
  EXPECT_EQ(Nearest("tokns", {"model", "tokens", "min_tokens"}), "tokens, model, min_tokens");
  EXPECT_EQ(Nearest("x", {"a", "b"}), "a, b");
  EXPECT_EQ(Nearest("x", {"aaaa", "bb", "ccc", "d", "e"}), "d, e, bb");
  EXPECT_EQ(Nearest("x", {}), "");
  // A name that contains the word comes first. By edit distance it would come after every short
  // name.
  EXPECT_EQ(Nearest("oscar", {"optr", "kivi", "saw", "OSCAR_per_head"}),
            "OSCAR_per_head, optr, saw");
}

}  // namespace
}  // namespace oscar
