// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Bits of heads by the errors that they make.
#include "export/simulate/head_bits_method.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calib/choose/bit_allocation.h"
#include "export/simulate/transformed_methods.h"
#include "tests/export/simulate/row_context.h"

namespace oscar {
namespace {

MethodContext::Options Windows() {
  MethodContext::Options options;
  options.windows = {4, 16};
  return options;
}

// Noise that halves with each bit; of keys of head 0 `k_noise` times that of the others.
std::function<LayerCache(int)> Noisy(double k_noise) {
  return [k_noise](int bits) {
    LayerCache cache;
    cache.store = [=](const CacheSides& rows) {
      at::manual_seed(3);
      const at::Tensor scale = at::ones({rows.k.size(1), 1}, at::kFloat);
      scale[0] = k_noise;
      const double step = 0.3 * std::pow(0.5, bits);
      return CachedRows{.quantized = {rows.k + at::randn_like(rows.k) * scale * step,
                                      rows.v + at::randn_like(rows.v) * step}};
    };
    return cache;
  };
}

int Sum(const HeadBits& bits) {
  int sum = 0;
  for (const auto* side : {&bits.k, &bits.v}) {
    for (const int b : *side) sum += b;
  }
  return sum;
}

TEST(HeadBits, GoToTheHeadThatNeedsThemAndStayWithinTheBudget) {
  RowContext rows({}, Windows());
  const HeadBits loud = ChooseHeadBits(rows.context(), 0, 2.5, Noisy(8));
  EXPECT_EQ(loud.k[0], 4);
  EXPECT_EQ(loud.k[1], 2);
  EXPECT_EQ(ChooseHeadBits(rows.context(), 0, 2.5, Noisy(1.0 / 8)).k[0], 2);
  int before = 0;
  for (double mean = 2; mean <= 4; mean += 0.25) {
    const int sum = Sum(ChooseHeadBits(rows.context(), 0, mean, Noisy(2)));
    EXPECT_LE(sum, 4 * mean + 1e-9);
    EXPECT_GE(sum, before);
    before = sum;
  }
  EXPECT_EQ(before, 16);
}

// Two bits for everyone are the method without bits per head, and four another one.
TEST(HeadBits, AUniformBudgetIsTheUniformMethod) {
  RowContext rows({}, Windows());
  const KeyRecipe keys = {.kind = KeyTransformKind::kPairScaled, .per_head = true, .centred = true};
  const TransformedMethod table[] = {
      {.name = "two", .description = "", .keys = keys, .head_bits = 2},
      {.name = "four", .description = "", .keys = keys, .head_bits = 4},
      {.name = "uniform_two", .description = "", .keys = keys},
      {.name = "uniform_four",
       .description = "",
       .keys = keys,
       .k_bits = 4,
       .v_bits = 4,
       .k_clip = 0.99,
       .v_clip = 0.99}};
  const std::vector<CacheMethod> methods = TransformedMethods(table);
  const CacheSides x = {rows.rows().k[0], rows.rows().v[0]};
  for (const ArmOptions& arm : {ArmOptions{}, ArmOptions{.clip = true}}) {
    std::vector<CacheSides> stored;
    for (const CacheMethod& method : methods)
      stored.push_back(method.make(rows.context(), 0, arm).store(x).quantized);
    for (const size_t i : {0, 1}) {
      EXPECT_TRUE(stored[i].k.equal(stored[i + 2].k)) << i;
      EXPECT_TRUE(stored[i].v.equal(stored[i + 2].v)) << i;
    }
    EXPECT_FALSE(stored[0].k.equal(stored[1].k));
  }
}

// Texts that end inside the windows still say which head is worse.
TEST(HeadBits, ShortTextsCountAsQuantized) {
  MethodContext::Options options;
  options.windows = {64, 256};
  RowContext rows({.tokens = 100}, options);
  EXPECT_EQ(ChooseHeadBits(rows.context(), 0, 2.5, Noisy(8)).k, (std::vector<int>{4, 2}));
}

}  // namespace
}  // namespace oscar
