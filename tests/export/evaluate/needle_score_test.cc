// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "export/evaluate/needle.h"

namespace oscar {
namespace {

NeedleSample Sample(const std::string& task, int64_t length,
                    std::vector<NeedleSample::Answer> answers) {
  NeedleSample sample;
  sample.task = task;
  sample.length = length;
  sample.answers = std::move(answers);
  return sample;
}

TEST(NeedleScore, ValueCountsOnlyWithAllItsTokens) {
  const NeedleSample sample = Sample("multivalue", 100, {{10, 13, 5, "a"}, {14, 16, 60, "b"}});
  const std::vector<double> log_p = {-1, -2, -3, -4, -5};
  const NeedleScore score = ScoreNeedle(sample, std::vector<uint8_t>{1, 0, 1, 1, 1}, log_p);
  EXPECT_EQ(score.recalled, (std::vector<uint8_t>{0, 1}));
  EXPECT_DOUBLE_EQ(score.accuracy, 0.5);
  EXPECT_DOUBLE_EQ(score.answer_nll, 3);
  EXPECT_DOUBLE_EQ(ScoreNeedle(sample, std::vector<uint8_t>(5, 1), log_p).accuracy, 1);
}

TEST(NeedleScore, ReportByTaskDepthAndLength) {
  const std::vector<NeedleSample> samples = {
      Sample("single_1", 100, {{5, 6, 10, "a"}}), Sample("single_1", 100, {{5, 6, 90, "a"}}),
      Sample("multivalue", 200, {{5, 6, 100, "a"}, {7, 8, 30, "b"}})};
  const std::vector<NeedleScore> scores = {{{1}, 1, 0.1}, {{0}, 0, 0.3}, {{1, 0}, 0.5, 0.5}};
  const Json report = NeedleReport(samples, scores);
  EXPECT_DOUBLE_EQ(report["accuracy"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(report["answer_nll"].get<double>(), 0.3);
  const Json tasks = Json::parse(R"([{"task":"single_1","length":100,"samples":2,"accuracy":0.5,
    "answer_nll":0.2},{"task":"multivalue","length":200,"samples":1,"accuracy":0.5,"answer_nll":0.5}])");
  EXPECT_EQ(report["by_task"], tasks);
  const Json depths = Json::parse(R"([{"depth_from":0,"depth_to":25,"samples":1,"accuracy":1.0},
    {"depth_from":25,"depth_to":50,"samples":1,"accuracy":0.0},
    {"depth_from":75,"depth_to":100,"samples":2,"accuracy":0.5}])");
  EXPECT_EQ(report["by_depth"], depths);
  const Json lengths = Json::parse(R"([{"length":100,"samples":2,"accuracy":0.5,"answer_nll":0.2},
    {"length":200,"samples":1,"accuracy":0.5,"answer_nll":0.5}])");
  EXPECT_EQ(report["by_length"], lengths);
  const Json grid = Json::parse(R"([
    {"length":100,"depth_from":0,"depth_to":25,"samples":1,"accuracy":1.0},
    {"length":100,"depth_from":75,"depth_to":100,"samples":1,"accuracy":0.0},
    {"length":200,"depth_from":25,"depth_to":50,"samples":1,"accuracy":0.0},
    {"length":200,"depth_from":75,"depth_to":100,"samples":1,"accuracy":1.0}])");
  EXPECT_EQ(report["by_length_depth"], grid);
}

// A needle with a requested depth counts at that depth, even if sentence ends shifted it. A needle
// without one counts at its actual depth.
TEST(NeedleScore, DepthsThatWereAskedForAreTheRows) {
  std::vector<NeedleSample> samples = {
      Sample("single_1", 100, {{5, 6, 2, "a"}}), Sample("single_1", 100, {{5, 6, 24, "a"}}),
      Sample("single_1", 100, {{5, 6, 99, "a"}}),
      Sample("multivalue", 100, {{5, 6, 80, "a"}, {7, 8, 30, "b"}})};
  samples[0].asked_depth = 0;
  samples[1].asked_depth = 50;
  samples[2].asked_depth = 100;
  const std::vector<NeedleScore> scores = {
      {{1}, 1, 0.1}, {{0}, 0, 0.1}, {{1}, 1, 0.1}, {{0, 1}, 0.5, 0.1}};
  const Json grid = Json::parse(R"([
    {"length":100,"depth_from":0,"depth_to":25,"samples":1,"accuracy":1.0},
    {"length":100,"depth_from":25,"depth_to":75,"samples":2,"accuracy":0.5},
    {"length":100,"depth_from":75,"depth_to":100,"samples":2,"accuracy":0.5}])");
  EXPECT_EQ(Json(NeedleReport(samples, scores))["by_length_depth"], grid);
}

}  // namespace
}  // namespace oscar
