// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/passages.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "linalg/base/splitmix64.h"

namespace oscar {
namespace {

using Ids = std::vector<int32_t>;

// Returns random texts that begin with token 0, from 300 other tokens.
std::vector<Ids> Texts(size_t count, size_t length) {
  SplitMix64 random(1);
  std::vector<Ids> texts(count, {0});
  for (Ids& text : texts) {
    while (text.size() < length) text.push_back(1 + static_cast<int32_t>(random.Below(300)));
  }
  return texts;
}

// Returns all positions of `part` in `ids`.
std::vector<int64_t> Places(const Ids& ids, const Ids& part) {
  std::vector<int64_t> places;
  for (auto at = ids.begin();;) {
    at = std::search(at, ids.end(), part.begin(), part.end());
    if (at == ids.end()) return places;
    places.push_back(at++ - ids.begin());
  }
}

TEST(Passages, EveryAnswerStandsHiddenInTheTextAndItsRivalsDoToo) {
  const std::vector<Ids> texts = Texts(3, 1024);
  const std::vector<NeedleSample> samples = MakePassageSamples(texts, 7);
  ASSERT_EQ(samples.size(), texts.size());
  for (const NeedleSample& sample : samples) {
    EXPECT_EQ(sample.ids.size(), 1024U);
    EXPECT_EQ(sample.length, 1024);
    EXPECT_EQ(sample.ids.front(), 0);
    ASSERT_EQ(sample.answers.size(), 32U);  // 8 passages with 4 answer tokens each
    for (const NeedleSample::Answer& answer : sample.answers) {
      ASSERT_EQ(answer.end, answer.begin + 1);
      // The answer and the twelve tokens before it occur twice: in the hidden passage and in the
      // question.
      const auto end = sample.ids.begin() + answer.end;
      const std::vector<int64_t> places = Places(sample.ids, Ids(end - 13, end));
      ASSERT_EQ(places.size(), 2U);
      EXPECT_LT(places[0], 2 * 1024 / 3);
      EXPECT_EQ(places[1], answer.end - 13);
      EXPECT_GE(answer.rivals.size(), 4U);
      EXPECT_EQ(std::ranges::count(answer.rivals, sample.ids[static_cast<size_t>(answer.begin)]),
                0);
      for (const int32_t rival : answer.rivals) EXPECT_GE(Places(sample.ids, {rival}).size(), 1U);
    }
  }
}

TEST(Passages, DependOnTheSeedAlone) {
  const std::vector<Ids> texts = Texts(2, 512);
  EXPECT_EQ(MakePassageSamples(texts, 1)[1].ids, MakePassageSamples(texts, 1)[1].ids);
  EXPECT_NE(MakePassageSamples(texts, 1)[1].ids, MakePassageSamples(texts, 2)[1].ids);
  EXPECT_NE(MakePassageSamples(texts, 1)[0].ids, MakePassageSamples(texts, 1)[1].ids);
}

TEST(Passages, NeedRoomAndWords) {
  EXPECT_TRUE(MakePassageSamples(Texts(2, 200), 1).empty());
  EXPECT_TRUE(MakePassageSamples({Ids(1024, 3)}, 1).empty());
  EXPECT_TRUE(MakePassageSamples({}, 1).empty());
  EXPECT_EQ(MakePassageSamples(Texts(2, 256), 1)[0].answers.size(), 8U);
}

}  // namespace
}  // namespace oscar
