// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/observe/document_sums.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace oscar {
namespace {

// Returns values whose sum depends on the order of the additions. Some documents have no value.
at::Tensor Value(int64_t document) {
  if (document % 5 == 3) return {};
  return at::full({1}, 1.0 / static_cast<double>(3 * document + 1), at::kDouble);
}

// Returns the sum as a binary tree: the left subtree holds the largest power of two of documents
// below their number, the right one holds the rest.
at::Tensor Defined(int64_t begin, int64_t end) {
  if (end - begin == 1) return Value(begin);
  int64_t left = 1;
  while (2 * left < end - begin) left *= 2;
  const at::Tensor a = Defined(begin, begin + left), b = Defined(begin + left, end);
  if (!a.defined()) return b;
  return b.defined() ? a.add(b) : a;
}

TEST(DocumentSums, AreTheSameHoweverDocumentsAreSharedOut) {
  for (int64_t count = 1; count <= 40; ++count) {
    const at::Tensor expected = Defined(0, count);
    for (int64_t share = 1; share <= count; ++share) {
      DocumentSums all;
      size_t handed_on = 0;
      for (int64_t begin = 0; begin < count; begin += share) {
        DocumentSums own;
        for (int64_t i = begin; i < std::min(count, begin + share); ++i) own.Add(i, Value(i));
        for (const DocumentSums::Node& node : own.nodes()) all.Add(node);
        handed_on = std::max(handed_on, own.nodes().size());
      }
      ASSERT_TRUE(at::equal(all.Total(), expected)) << count << " by " << share;
      EXPECT_LE(handed_on, 10U);
    }
  }
}

TEST(DocumentSums, OfNothingAreNone) {
  DocumentSums sums;
  EXPECT_FALSE(sums.Total().defined());
  sums.Add(0, {});
  sums.Add(1, {});
  EXPECT_FALSE(sums.Total().defined());
  EXPECT_EQ(sums.nodes().size(), 1U);
}

}  // namespace
}  // namespace oscar
