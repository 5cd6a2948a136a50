// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests servers with planted faults: the bundled model in bf16 arithmetic, compared with arms in
// float32.
#include "export/validate/served_arms.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "capture/model/generate/generate.h"
#include "export/evaluate/nearest_cache.h"
#include "linalg/base/error.h"
#include "linalg/base/splitmix64.h"
#include "tests/export/artifact/chosen_artifact.h"
#include "tests/export/validate/tiny_artifact.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

constexpr int64_t kPrompts = 20, kPromptTokens = 192, kGenerated = 24;
const MethodContext::Options kMethods{
    .seed = 0, .prefill_tokens = kPromptTokens, .windows = {4, 32}};

// Returns prompts with the continuations that the exact model generates.
ServedText Generated(const TinyModel& model) {
  std::vector<PromptToContinue> prompts;
  for (auto& ids : TinyTexts(1, kPrompts, kPromptTokens))
    prompts.push_back({.ids = std::move(ids), .longest = kGenerated});
  DecodeLoop decoder(model.checkpoint, model.spec, at::kCPU, at::kFloat, /*resident=*/true);
  const auto words = Generate(decoder, prompts, {}, {}, [](int64_t) { return true; });
  ServedText text{.sequences = {}, .prompt_tokens = kPromptTokens};
  for (size_t i = 0; i < prompts.size(); ++i) {
    text.sequences.push_back(prompts[i].ids);
    text.sequences[i].insert(text.sequences[i].end(), words->at(i).ids.begin(),
                             words->at(i).ids.end());
  }
  return text;
}

// Scores of every arm in float32 (simulated) and in bf16 (served), and of a wrong artifact in bf16.
struct Scores {
  ServedArms arms;
  std::vector<TokenErrors> simulated, served, wrong;
};

const Scores& TinyScores() {
  static const Scores scores = [] {
    const TinyModel model;
    const Artifact artifact = Artifact::Open(TinyArtifact());
    const ServedText text = Generated(model);
    LoopOptions options;
    options.cache_dtype = at::kBFloat16;
    const auto go_on = [](size_t) { return true; };
    const auto score = [&](at::ScalarType dtype, uint64_t seed, const ServedArms& arms) {
      const LayerLoop loop(model.checkpoint, model.spec, at::kCPU, dtype, options);
      MethodContext::Options methods = kMethods;
      methods.seed = seed;
      return ScoreServed(loop, text, MethodContext(artifact, loop.seen_layers(), methods),
                         arms.arms, go_on);
    };
    Scores of;
    const MethodContext context(artifact, model.spec.layers, kMethods);
    of.arms = MakeServedArms({"oscar_per_head+clip+windows"}, {}, context);
    of.simulated = score(at::kFloat, 0, of.arms);
    of.served = score(at::kBFloat16, 0, of.arms);
    ServedArms two;
    two.arms = {of.arms.arms[0], *std::ranges::find(of.arms.arms, "wrong_artifact", &Arm::name)};
    of.wrong = score(at::kBFloat16, 7, two);
    return of;
  }();
  return scores;
}

// Returns a run over some of the prompts, without the first token of each, which reads no quantized
// cache.
ServedTokens RunOf(const TokenErrors& server, const std::vector<size_t>& prompts) {
  const Scores& scores = TinyScores();
  ServedTokens tokens;
  tokens.arms.resize(scores.simulated.size());
  tokens.num_own = scores.arms.num_own;
  for (size_t run = 0; run < prompts.size(); ++run) {
    for (size_t i = prompts[run] * kGenerated + 1; i < (prompts[run] + 1) * kGenerated; ++i) {
      tokens.server.push_back(-server.nll[i]);
      tokens.prompts.push_back(static_cast<int64_t>(run));
      for (size_t arm = 0; arm < tokens.arms.size(); ++arm)
        tokens.arms[arm].push_back(-scores.simulated[arm].nll[i]);
    }
  }
  return tokens;
}

std::vector<size_t> AllPrompts() {
  std::vector<size_t> prompts(kPrompts);
  for (size_t i = 0; i < prompts.size(); ++i) prompts[i] = i;
  return prompts;
}

TEST(ServedArms, HoldTheArtifactItsFaultsAndHadamard) {
  std::vector<std::string> names;
  for (const Arm& arm : TinyScores().arms.arms) names.push_back(arm.name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "bf16", "oscar_per_head+clip+windows", "wrong_artifact",
                       "queries_not_rotated", "other_head", "scales_ignored", "windows_ignored",
                       "oscar_per_head+windows", "hadamard+windows", "hadamard+clip+windows"}));
  const TinyModel model;
  const Artifact artifact = Artifact::Open(TinyArtifact());
  const MethodContext context(artifact, model.spec.layers, kMethods);
  EXPECT_THROW(MakeServedArms({"auto+windows", "nothing"}, {}, context), InputError);
  EXPECT_THROW(MakeServedArms({"kivi2"}, {}, context), UsageError);
}

TEST(ServedArms, WhatEveryRuntimeGetsIsTheArtifact) {
  const auto names_of = [](Consumer consumer) {
    const std::filesystem::path path = TestScratch("served_choices") / "a";
    SampleRecipe recipe = SampleRecipes()[0];
    recipe.v_clip = recipe.k_clip;
    WriteChosenArtifact(path, {recipe}, {.enabled = true, .consumer = consumer, .fold = false});
    return ArmsOfArtifact(Artifact::Open(path));
  };
  const std::vector<std::string> last = {"auto+windows", "oscar_per_head+clip+windows",
                                         "oscar_shared+clip+windows"};
  const auto with_last = [&](std::vector<std::string> names) {
    names.insert(names.end(), last.begin(), last.end());
    return names;
  };
  EXPECT_EQ(names_of(Consumer::kSglangOct),
            with_last({"runtime_sglang_oct_auto", "auto+windows", "runtime_vllm_auto",
                       "runtime_llamacpp_auto"}));
  EXPECT_EQ(names_of(Consumer::kAny),
            with_last({"runtime_any_auto", "auto+windows", "runtime_sglang_auto",
                       "runtime_vllm_auto", "runtime_llamacpp_auto"}));
}

// The first generated token follows from the exact prompt, so it does not depend on the cache.
TEST(ServedArms, ThePromptIsReadExactly) {
  const Scores& scores = TinyScores();
  for (size_t arm = 1; arm < scores.simulated.size(); ++arm) {
    for (size_t i = 0; i < scores.simulated[0].nll.size(); i += kGenerated)
      EXPECT_EQ(scores.simulated[arm].nll[i], scores.simulated[0].nll[i]);
    EXPECT_NE(scores.simulated[arm].nll[1], scores.simulated[0].nll[1]);
  }
}

TEST(ServedArms, EveryPlantedFaultIsNamed) {
  const Scores& scores = TinyScores();
  for (size_t planted = 0; planted < scores.served.size(); ++planted) {
    const std::string& name = scores.arms.arms[planted].name;
    const NearestCache found = FindNearestCache(RunOf(scores.served[planted], AllPrompts()));
    EXPECT_EQ(scores.arms.arms[found.nearest].name, name);
    EXPECT_TRUE(found.explained) << name;
    if (planted == 1) {
      EXPECT_GE(found.own_confidence, 0.95);
    } else {
      EXPECT_LE(found.own_confidence, 0.05) << name;
    }
  }
}

TEST(ServedArms, AnUnknownArtifactIsNone) {
  const NearestCache found = FindNearestCache(RunOf(TinyScores().wrong[1], AllPrompts()));
  EXPECT_FALSE(found.explained);
  EXPECT_LE(found.own_confidence, 0.05);
}

// Each run has as many prompts as a run with default options.
TEST(ServedArms, ACleanServerRaisesNoAlarm) {
  SplitMix64 random(3);
  int alarms = 0;
  for (int run = 0; run < 200; ++run) {
    std::vector<size_t> prompts;
    while (prompts.size() < 6) prompts.push_back(random.Below(kPrompts));
    const NearestCache found =
        FindNearestCache(RunOf(TinyScores().served[1], prompts), {.resamples = 200});
    alarms += found.own_confidence < 0.95;
  }
  EXPECT_LE(alarms, 1);
}

}  // namespace
}  // namespace oscar
