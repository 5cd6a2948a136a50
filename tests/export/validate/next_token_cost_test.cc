// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the cost of a cache for the next token. It must equal a validation of the same cache.
// Trials that share the layers before them must equal trials that run alone.
#include "export/validate/next_token_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "linalg/base/error.h"
#include "linalg/hadamard.h"
#include "linalg/rotation.h"
#include "tests/export/validate/tiny_validation.h"

namespace oscar {
namespace {

constexpr CacheWindows kWindows{4, 32};

CacheSide Hadamard(int64_t dim) {
  const Matrix matrix = HadamardRotation(dim).matrix();  // symmetric, so order does not matter
  CacheSide side;
  side.num_rotations = 1;
  side.dim = dim;
  side.rotation.assign(matrix.data(), matrix.data() + matrix.size());
  return side;
}

SideOption Option(double bits, std::vector<int> head_bits = {}) {
  SideOption option;
  option.bits = bits;
  option.head_bits = std::move(head_bits);
  option.clip = {bits == 2 ? 0.92 : 0.0};
  return option;
}

// Returns options of 2, 2.5, 3 and 4 bits for every layer.
std::vector<AutoChoice> Choices(const ModelSpec& spec) {
  std::vector<AutoChoice> choices(spec.layers.size());
  for (AutoChoice& choice : choices) {
    choice.k_options =
        choice.v_options = {Option(2), Option(2.5, {3, 2}), Option(3, {4, 2}), Option(4)};
  }
  return choices;
}

NextTokenRun RunOf(const TinyModel& model) {
  return {.checkpoint = model.checkpoint,
          .spec = model.spec,
          .device = at::kCPU,
          .dtype = at::kFloat,
          .sequences = TinyTexts(1, 2, 256),
          .windows = kWindows,
          .choice = [&spec = model.spec](size_t layer) {
            AutoChoice choice = Choices(spec)[layer];
            choice.k = Hadamard(spec.layers[layer].attention.head_dim);
            choice.v = Hadamard(spec.layers[layer].attention.v_head_dim);
            return choice;
          }};
}

TEST(NextTokenCost, OfAWholeCacheIsWhatAValidationSays) {
  const TinyModel model;
  const std::vector<std::vector<AutoChoice>> planned = {Choices(model.spec)};
  const NextTokenCost cost = MeasureWhole(RunOf(model), planned).at(0);
  ValidationOptions options = QuickOptions({"hadamard+clip+windows+bf16"});
  options.methods.windows = kWindows;
  options.methods.k_clip = options.methods.v_clip = 0.92;
  options.score_from = 4 + 32 + 1;
  const Json validation = ValidateTiny(TinyArtifact(), options, at::kCPU, 256, model);
  const Json& kl = ArmOf(validation, "hadamard+clip+windows+bf16").at("text").at("token_kl");
  EXPECT_NEAR(cost.mean / kl.at("mean").get<double>(), 1, 0.02);
  EXPECT_NEAR(cost.p99 / kl.at("p99").get<double>(), 1, 0.1);
  EXPECT_GT(cost.mean, 0.01);
}

// A trial that begins at its own layer costs the same as one that runs from the first layer on.
TEST(NextTokenCost, SidesArePricedAlone) {
  const TinyModel model;
  const NextTokenRun run = RunOf(model);
  std::vector<AutoChoice> choices = Choices(model.spec);
  PriceOptions(run, MeasuredWidths::kWhole, choices);
  for (size_t layer = 0; layer < choices.size(); ++layer) {
    for (const auto& options : {choices[layer].k_options, choices[layer].v_options}) {
      for (const SideOption& option : options) ASSERT_EQ(option.next_token_kl.size(), 2u);
      EXPECT_GT(options[0].next_token_kl[0], options[3].next_token_kl[0]) << layer;
      EXPECT_DOUBLE_EQ(options[1].next_token_kl[0],
                       std::sqrt(options[0].next_token_kl[0] * options[2].next_token_kl[0]));
    }
  }
  const size_t last = choices.size() - 1;
  const SideOption &k = choices[last].k_options[2], &v = choices[1].v_options[0];
  const CacheTrial whole[] = {{0,
                               [&](size_t layer) {
                                 return layer == last ? TrialSides{&k, nullptr} : TrialSides{};
                               }},
                              {0,
                               [&](size_t layer) {
                                 return layer == 1 ? TrialSides{nullptr, &v} : TrialSides{};
                               }},
                              {0, [](size_t) { return TrialSides{}; }}};
  const std::vector<NextTokenCost> costs = MeasureNextToken(run, whole);
  EXPECT_EQ(costs[0].mean, k.next_token_kl[0]);
  EXPECT_EQ(costs[0].p99, k.next_token_kl[1]);
  EXPECT_EQ(costs[1].mean, v.next_token_kl[0]);
  EXPECT_EQ(costs[2].mean, 0);
  EXPECT_NE(costs[0].mean, costs[1].mean);

  std::vector<AutoChoice> all = Choices(model.spec);
  PriceOptions(run, MeasuredWidths::kAll, all);
  EXPECT_EQ(NumMeasured(all, MeasuredWidths::kAll), 2 * all.size() * all[0].k_options.size());
  EXPECT_EQ(all[last].k_options[2].next_token_kl, k.next_token_kl);
  const SideOption& half = all[last].k_options[1];
  const CacheTrial of_half[] = {{last, [&](size_t layer) {
                                   return layer == last ? TrialSides{&half, nullptr} : TrialSides{};
                                 }}};
  EXPECT_EQ(MeasureNextToken(run, of_half)[0].mean, half.next_token_kl[0]);
  EXPECT_NE(half.next_token_kl, choices[last].k_options[1].next_token_kl);
}

TEST(NextTokenCost, OfTypesIsWhatAValidationSays) {
  const TinyModel model;
  NextTokenRun run = RunOf(model);
  run.windows = {};
  run.largest = [](size_t) { return LargestMagnitudes(); };  // gives scales of 1
  const size_t layers = model.spec.layers.size();
  const LayerTypes low{CacheType::kNvfp4, CacheType::kNvfp4};
  std::vector<std::vector<LayerTypes>> plans(2, std::vector<LayerTypes>(layers, low));
  plans[1].assign(layers, LayerTypes());
  const std::vector<NextTokenCost> costs = MeasureTypes(run, plans);
  EXPECT_EQ(costs[1].mean, 0);
  ValidationOptions options = QuickOptions({"nvfp4"});
  options.methods.windows = {0, 0};
  options.score_from = 1;
  const Json validation = ValidateTiny(TinyArtifact(), options, at::kCPU, 256, model);
  const Json& kl = ArmOf(validation, "nvfp4").at("text").at("token_kl");
  EXPECT_NEAR(costs[0].mean / kl.at("mean").get<double>(), 1, 0.02);

  std::vector<TypedLayer> priced(layers);
  for (TypedLayer& layer : priced) layer.num_kv_heads = layer.head_dim = layer.v_head_dim = 1;
  const CacheType types[] = {CacheType::kNvfp4, CacheType::kFp8};
  PriceTypes(run, types, priced);
  double sum = 0;
  for (const TypedLayer& layer : priced) {
    for (const auto* side : {&layer.k, &layer.v}) {
      EXPECT_GT(side->at(0).token.mean, side->at(1).token.mean);
      EXPECT_GT(side->at(0).output_error, side->at(1).output_error);
      sum += side->at(0).token.mean;
    }
    EXPECT_GT(layer.k[0].attention_kl, layer.k[1].attention_kl);
    EXPECT_EQ(layer.v[0].attention_kl, 0);  // values do not change attention weights
  }
  EXPECT_NEAR(sum / costs[0].mean, 1, 0.5);  // costs are roughly additive
}

TEST(NextTokenCost, StopsWhereItIsAsked) {
  const TinyModel model;
  NextTokenRun run = RunOf(model);
  size_t layers = 0;
  run.on_layer = [&](size_t done) { layers = done; };
  run.stop_requested = [&] { return layers == 2; };
  const std::vector<std::vector<AutoChoice>> planned = {Choices(model.spec)};
  EXPECT_THROW(MeasureWhole(run, planned), Interrupted);
  EXPECT_EQ(layers, 2u);
}

}  // namespace
}  // namespace oscar
