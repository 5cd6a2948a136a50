// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/recall.h"

#include <gtest/gtest.h>

namespace oscar {
namespace {

std::vector<NeedleSample> Samples() {
  std::vector<NeedleSample> samples(4);
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].task = i < 2 ? "easy" : "hard";
    samples[i].length = 100;
    samples[i].answers = {{.begin = 5, .end = 6, .depth = 10, .value = "a"}};
  }
  return samples;
}

NeedleScore Score(bool found) {
  return {{static_cast<uint8_t>(found)}, found ? 1.0 : 0.0, found ? 0.1 : 3.0};
}

// A task at which the exact model fails does not count, even if an arm solves it.
TEST(Recall, CountsTasksThatTheExactModelDoes) {
  const std::vector<NeedleSample> samples = Samples();
  const std::vector<NeedleScore> exact = {Score(true), Score(true), Score(true), Score(false)};
  const Recall recall(samples, exact);
  EXPECT_TRUE(recall.any());
  EXPECT_EQ(recall.ToJson().at("measurable"), true);
  EXPECT_EQ(recall.ToJson().at("tasks"), Json::parse(R"([
    {"task":"easy","length":100,"samples":2,"exact":1.0,"counts":true},
    {"task":"hard","length":100,"samples":2,"exact":0.5,"counts":false}])"));
  const Json arm = recall.Report(std::vector{Score(true), Score(false), Score(true), Score(true)});
  EXPECT_EQ(arm.at("accuracy"), 0.5);
  EXPECT_EQ(arm.at("by_task").size(), 1U);
}

TEST(Recall, NothingIsMeasurableWhereTheExactModelFindsTooLittle) {
  const std::vector<NeedleSample> samples = Samples();
  const Recall recall(samples, std::vector(4, Score(false)));
  EXPECT_FALSE(recall.any());
  EXPECT_EQ(recall.ToJson().at("measurable"), false);
}

}  // namespace
}  // namespace oscar
