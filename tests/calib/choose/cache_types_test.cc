// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares plans of types per layer under a budget with an exhaustive search over all plans.
#include "calib/choose/cache_types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "linalg/base/error.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

using enum CacheType;

// Returns layers with random costs that fall with the bits. Keys usually cost more than values.
std::vector<TypedLayer> Layers(uint64_t seed, size_t count, int64_t v_head_dim = 64) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<TypedLayer> layers;
  for (size_t i = 0; i < count; ++i) {
    TypedLayer layer{.layer_id = static_cast<int64_t>(2 * i),
                     .num_kv_heads = 2,
                     .head_dim = 64,
                     .v_head_dim = v_head_dim};
    for (const bool keys : {true, false}) {
      const double scale = std::exp(8 * uniform(random) - (keys ? 4 : 8));
      for (const CacheType type : {kNvfp4, kFp8}) {
        const double cost = scale * std::exp2(-1.7 * CodeBits(type)) * (1 + uniform(random));
        (keys ? layer.k : layer.v)
            .push_back({type, {cost, 3 * cost}, keys ? 10 * cost : 0, std::sqrt(cost)});
      }
    }
    layers.push_back(layer);
  }
  return layers;
}

double CostOf(const TypedLayer& layer, const LayerTypes& types) {
  const auto side = [](const std::vector<TypeCost>& costs, CacheType type) {
    return type == kBf16 ? 0 : std::ranges::find(costs, type, &TypeCost::type)->token.damage();
  };
  return side(layer.k, types.k) + side(layer.v, types.v);
}

// Returns the least cost of all plans within the budget, by exhaustive search.
double BestOfAll(const TypedRuntime& runtime, const std::vector<TypedLayer>& layers, double bits) {
  double best = std::numeric_limits<double>::infinity();
  const std::function<void(size_t, double, double)> choose = [&](size_t i, double spent,
                                                                 double cost) {
    if (i == layers.size()) {
      if (spent <= bits * static_cast<double>(layers.size()) + 1e-9) best = std::min(best, cost);
      return;
    }
    for (const LayerTypes& types : runtime.pairs)
      choose(i + 1, spent + layers[i].Bits(types), cost + CostOf(layers[i], types));
  };
  choose(0, 0, 0);
  return best;
}

TEST(CacheTypes, PlansKeepTheirBudgetAndAreNearTheBestOfAll) {
  for (const char* name : {"modelopt", "trtllm"}) {
    const TypedRuntime& runtime = *FindTypedRuntime(name);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const std::vector<TypedLayer> layers = Layers(seed, 4);
      double before = std::numeric_limits<double>::infinity();
      for (double bits = LeastBits(runtime, layers); bits <= 16; bits += 0.5) {
        const TypePlan plan = PlanTypes(runtime, layers, bits, BitPrice::kNextToken);
        double spent = 0, cost = 0, worst = 0;
        for (size_t i = 0; i < layers.size(); ++i) {
          EXPECT_TRUE(std::ranges::count(runtime.pairs, plan.layers[i]));
          spent += layers[i].Bits(plan.layers[i]) / 4;
          cost += CostOf(layers[i], plan.layers[i]);
          worst = std::max(worst, CostOf(layers[i], plan.layers[i]));
        }
        EXPECT_NEAR(plan.stored_bits, spent, 1e-12);
        EXPECT_LE(spent, bits + 1e-9);
        EXPECT_NEAR(plan.damage, cost, 1e-12);
        EXPECT_LE(cost, before * (1 + 1e-12));
        before = cost;
        // The plan misses the optimum by at most the cost of one layer.
        EXPECT_LE(cost, BestOfAll(runtime, layers, bits) + worst + 1e-15) << name << " " << bits;
      }
    }
  }
}

TEST(CacheTypes, BitsGoToTheLayerThatCosts) {
  std::vector<TypedLayer> layers = Layers(1, 3);
  for (TypeCost& cost : layers[1].k) cost.token.mean *= 1e4;
  // The budget pays for two layers in NVFP4 and one with FP8 keys.
  const TypePlan plan = PlanTypes(*FindTypedRuntime("modelopt"), layers, (4.5 + 4.5 + 6.25) / 3,
                                  BitPrice::kNextToken);
  const LayerTypes low{kNvfp4, kNvfp4}, mixed{kFp8, kNvfp4};
  EXPECT_EQ(plan.layers, (std::vector<LayerTypes>{low, mixed, low}));
  // With uniform prices, all layers get the same types.
  EXPECT_EQ(PlanTypes(*FindTypedRuntime("modelopt"), layers, 6.25, BitPrice::kUniform).layers,
            std::vector<LayerTypes>(3, mixed));
}

// ModelOpt can combine FP8 keys with NVFP4 values only if both have the same head dimension.
TEST(CacheTypes, MixedSidesNeedEqualWidths) {
  const TypePlan plan =
      PlanTypes(*FindTypedRuntime("modelopt"), Layers(3, 4, 32), 7, BitPrice::kNextToken);
  for (const LayerTypes& types : plan.layers) EXPECT_EQ(types.k, types.v);
}

TEST(CacheTypes, WholeNumbersWereRemoved) {
  EXPECT_EQ(CacheTypeFromName("fp8"), kFp8);
  const std::string error = ErrorOf<UsageError>([&] { CacheTypeFromName("int8"); });
  EXPECT_TRUE(Says(error, "was removed; the types are now nvfp4 and fp8"));
}

TEST(CacheTypes, StoredBitsCountScales) {
  EXPECT_EQ(StoredBits(kNvfp4), 4.5);
  EXPECT_EQ(StoredBits(kFp8), 8);
  const TypedLayer layer{.num_kv_heads = 1, .head_dim = 192, .v_head_dim = 64};
  EXPECT_EQ(layer.Bits({kFp8, kNvfp4}), (192 * 8 + 64 * 4.5) / 256);
}

TEST(CacheTypes, CostsComeBackFromTheArtifact) {
  const std::vector<TypedLayer> layers = Layers(4, 3);
  const std::vector<TypedLayer> read =
      TypedLayersFromJson(Json::parse(TypedLayersToJson(layers).dump()), "test");
  EXPECT_EQ(TypedLayersToJson(read), TypedLayersToJson(layers));
  EXPECT_TRUE(Knows(read, *FindTypedRuntime("trtllm")));
  std::vector<TypedLayer> some = read;
  std::erase_if(some[1].v, [](const TypeCost& cost) { return cost.type == kFp8; });
  EXPECT_FALSE(Knows(some, *FindTypedRuntime("modelopt")));
  for (const auto& [pointer, bad] :
       std::initializer_list<std::pair<const char*, Json>>{{"/0/head_dim", -1},
                                                           {"/0/num_kv_heads", 1e18},
                                                           {"/1/k", "none"},
                                                           {"/1/k/0/type", "fp9"},
                                                           {"/2/v/1/token_kl", "a"},
                                                           {"/2/layer_id", nullptr}}) {
    Json broken = TypedLayersToJson(layers);
    broken[Json::json_pointer(pointer)] = bad;
    EXPECT_THROW(TypedLayersFromJson(broken, "test"), InputError) << pointer;
  }
}

}  // namespace
}  // namespace oscar
