// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/nearest_cache.h"

#include <gtest/gtest.h>

#include <utility>

#include "linalg/base/splitmix64.h"

namespace oscar {
namespace {

constexpr size_t kPrompts = 6, kTokens = 40;
enum ArmIndex : size_t { kExact, kOwn, kFirst, kSecond, kNumArms };

// Makes arms with independent errors of equal size. The server's errors are those of arm `server`
// plus noise. kNumArms is a cache that no arm simulates.
ServedTokens Drawn(size_t server, double noise, uint64_t seed = 1) {
  SplitMix64 random(seed);
  const auto draw = [&] { return random.Uniform() + random.Uniform() - 1; };
  ServedTokens tokens;
  tokens.arms.resize(kNumArms);
  for (size_t i = 0; i < kPrompts * kTokens; ++i) {
    const double exact = -3 * random.Uniform();
    std::vector<double> values = {exact};
    while (values.size() <= kNumArms) values.push_back(exact + draw());
    tokens.server.push_back(values[server] + noise * draw());
    tokens.prompts.push_back(static_cast<int64_t>(i / kTokens));
    for (size_t arm = 0; arm < kNumArms; ++arm) tokens.arms[arm].push_back(values[arm]);
  }
  return tokens;
}

TEST(NearestCache, IsTheServersUpToItsNoise) {
  for (size_t server = 0; server < kNumArms; ++server) {
    const NearestCache found = FindNearestCache(Drawn(server, 0.2));
    EXPECT_EQ(found.nearest, server);
    EXPECT_TRUE(found.explained) << server;
    EXPECT_EQ(found.arms[server].nearest, 1) << server;
    EXPECT_EQ(found.own_confidence, server == kOwn) << server;
    EXPECT_EQ(found.more_tokens, 0);
  }
}

// Two independent errors differ by more than either error, so the exact cache is the nearest.
TEST(NearestCache, OfAnUnknownRotationIsExactAndDoesNotExplainIt) {
  const NearestCache found = FindNearestCache(Drawn(kNumArms, 0));
  EXPECT_EQ(found.nearest, kExact);
  EXPECT_FALSE(found.explained);
  EXPECT_EQ(found.own_confidence, 0);
}

TEST(NearestCache, DistancesAreMeansOfAbsoluteDifferences) {
  const NearestCache found = FindNearestCache({.server = {-1, -2, -4},
                                               .arms = {{-1, -2, -3}, {-1.5, -2, -5}, {-4, -2, -4}},
                                               .prompts = {0, 0, 1}});
  EXPECT_DOUBLE_EQ(found.arms[0].distance, 1.0 / 3);
  EXPECT_DOUBLE_EQ(found.arms[1].distance, 0.5);
  EXPECT_DOUBLE_EQ(found.arms[1].effect, 2.5 / 3);
  EXPECT_DOUBLE_EQ(found.arms[2].distance, 1);
  EXPECT_EQ(found.nearest, 0U);
}

// Few tokens cannot tell to which of two arms a server in the middle belongs. The result says how
// many more tokens are needed.
TEST(NearestCache, SaysHowManyMoreTokensWouldTell) {
  const auto between = [](double share, size_t repeats) {
    SplitMix64 random(5);
    ServedTokens tokens;
    tokens.arms.resize(3);
    for (size_t i = 0; i < kPrompts * repeats; ++i) {
      const bool own = random.Uniform() < share;
      tokens.server.push_back(own ? -1.1 : -2.1);
      for (size_t arm = 0; arm < 3; ++arm)
        tokens.arms[arm].push_back(arm == 0 ? -5 : arm == 1 ? -1 : -2);
      tokens.prompts.push_back(static_cast<int64_t>(i % kPrompts));
    }
    return FindNearestCache(tokens);
  };
  const NearestCache few = between(0.53, 20);
  EXPECT_GT(few.own_confidence, 0.05);
  EXPECT_LT(few.own_confidence, 0.95);
  EXPECT_GT(few.more_tokens, 20);
  const NearestCache clear = between(0.75, 20);
  EXPECT_GT(clear.own_confidence, 0.95);
  EXPECT_EQ(clear.more_tokens, 0);
}

// The server is nearest to the artifact in both cases, but at a distance of less or more than three
// quarters of the artifact's effect.
TEST(NearestCache, ServersFarFromEveryCacheAreNotTheArtifact) {
  for (const auto& [off, right] : {std::pair(2.8, true), std::pair(3.2, false)}) {
    ServedTokens tokens;
    tokens.arms = {std::vector<double>(40, -5), std::vector<double>(40, -1),
                   std::vector<double>(40, 9)};
    tokens.server.assign(40, -1 + off);
    for (int64_t i = 0; i < 40; ++i) tokens.prompts.push_back(i / 10);
    const NearestCache found = FindNearestCache(tokens);
    EXPECT_EQ(found.nearest, 1U) << off;
    EXPECT_EQ(found.explained, right) << off;
    EXPECT_EQ(found.own_confidence > 0.95, right) << off;
  }
}

TEST(NearestCache, PromptsAreWhatIsResampled) {
  // Three of five prompts clearly favor the artifact, and two clearly favor another cache.
  ServedTokens tokens;
  tokens.arms.resize(3);
  for (int64_t i = 0; i < 400; ++i) {
    const bool own = i < 240;
    tokens.server.push_back(own ? -1 : -2);
    for (size_t arm = 0; arm < 3; ++arm)
      tokens.arms[arm].push_back(arm == 0 ? -5 : arm == 1 ? -1 : -2);
    tokens.prompts.push_back(own ? i / 80 : 3 + (i - 240) / 80);
  }
  const double by_prompt = FindNearestCache(tokens).own_confidence;
  for (size_t i = 0; i < 400; ++i) tokens.prompts[i] = 0;
  const double by_token = FindNearestCache(tokens).own_confidence;
  EXPECT_LT(by_prompt, 0.9);
  EXPECT_GT(by_token, 0.99);
}

}  // namespace
}  // namespace oscar
