// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that arms that differ only in their windows share one fit, so that slow methods are fitted
// once.
#include <gtest/gtest.h>

#include "export/validate/calibration_rows.h"
#include "export/validate/validation_observer.h"
#include "tests/export/validate/tiny_validation.h"

namespace oscar {
namespace {

// Returns the naive method and counts the caches that it makes.
CacheMethod Counting(int& made) {
  CacheMethod method = CacheMethodNamed("naive");
  method.make = [&made, make = method.make](const MethodContext& context, size_t layer_index,
                                            const ArmOptions& options) {
    ++made;
    return make(context, layer_index, options);
  };
  return method;
}

// Returns the local and end-to-end metrics of the arms after bf16.
std::vector<Json> Measure(const std::vector<Arm>& more) {
  const TinyModel model;
  const Artifact artifact = Artifact::Open(TinyArtifact());
  MethodContext context(artifact, model.spec.layers, {.windows = {4, 32}});
  std::vector<Arm> arms = {ParseArm(kReferenceArm)};
  arms.insert(arms.end(), more.begin(), more.end());
  MeasuredRows rows;
  for (const int64_t position : {5, 140, 190}) rows.rows.push_back({0, position, 200, true});
  rows.resamples = 10;
  ValidationObserver observer(context, arms, rows, {});
  const LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat);
  std::vector<at::Tensor> streams = {loop.Embed(TinyTexts(1, 1, 200))};
  while (streams.size() < arms.size()) streams.push_back(streams[0].clone());
  loop.Run(streams, {200}, 0, observer, [](size_t) { return true; });
  std::vector<Json> metrics;
  for (size_t arm = 1; arm < arms.size(); ++arm) {
    metrics.push_back(observer.LocalMetrics(arm));
    metrics.push_back(observer.EndToEndMetrics(arm));
  }
  return metrics;
}

TEST(SharedFit, ArmsThatDifferInWindowsAloneAreMadeOnceAndMeasuredAsByThemselves) {
  int together = 0, alone = 0;
  const auto counting = [](int& made) {
    return std::make_shared<const CacheMethod>(Counting(made));
  };
  const auto shared = counting(together), first = counting(alone), second = counting(alone),
             third = counting(alone);
  const std::vector<Json> found = Measure({{"plain", shared, {}},
                                           {"windows", shared, {.windows = true}},
                                           {"clip", shared, {.clip = true, .windows = true}}});
  const std::vector<Json> expected = Measure({{"plain", first, {}},
                                              {"windows", second, {.windows = true}},
                                              {"clip", third, {.clip = true, .windows = true}}});
  EXPECT_EQ(together, 4 * 2);  // layers, with and without clipping
  EXPECT_EQ(alone, 4 * 3);
  EXPECT_EQ(found, expected);
  EXPECT_NE(found[0], found[2]);
  EXPECT_NE(found[1], found[3]);
}

}  // namespace
}  // namespace oscar
