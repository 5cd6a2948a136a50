// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/methods/kitty.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tests/export/simulate/cache_loop.h"
#include "tests/reference/scalar_affine_families.h"
#include "tests/reference/scalar_kitty.h"

namespace oscar {
namespace {

constexpr int64_t kKittyHeads = 2, kKittyDim = 16;
constexpr int64_t kAnyPrefill = std::numeric_limits<int64_t>::max();

CacheSides KittyRows(int64_t tokens, uint64_t seed = 1) {
  at::manual_seed(seed);
  CacheSides rows = {at::randn({tokens, kKittyHeads, kKittyDim}),
                     at::randn({tokens, kKittyHeads, kKittyDim})};
  rows.k.select(-1, 3).mul_(20);
  rows.k.select(-1, 5).fill_(2.5);
  rows.k.select(-1, 6).fill_(-2.5);  // same score as channel 5
  rows.k.select(-1, 7).mul_(1e-6);   // a range near the floors
  rows.v.copy_(rows.v.mul(2).round());
  return rows;
}

void QuantizePage(LoopSide& k, int64_t begin, const KittyOptions& o) {
  const KittyShape shape = {kKittyPage, kKittyDim};
  for (size_t head = 0; head < k.heads(); ++head) {
    std::vector<float> page;
    for (int64_t t = begin; t < begin + kKittyPage; ++t) {
      for (size_t c = 0; c < k.dim(); ++c) page.push_back(k.at(t, head, c));
    }
    const KittyPage<float> encoded =
        EncodeKittyPage<float>(page, shape, o.boosted, KittyRule(o.variant, false));
    DecodeKittyPage<float>(encoded, page);
    for (size_t i = 0; i < page.size(); ++i)
      k.at(begin + static_cast<int64_t>(i / k.dim()), head, i % k.dim()) = page[i];
  }
}

void QuantizeValue(LoopSide& v, int64_t token, const KittyOptions& o) {
  std::vector<uint8_t> codes(v.dim());
  std::vector<float> numbers(2);
  const AffineRule rule = KittyRule(o.variant, false);
  for (size_t head = 0; head < v.heads(); ++head) {
    const std::span<float> row(&v.at(token, head, 0), v.dim());
    EncodeAffineFamily<float>(row, rule, kKittyDim, codes, numbers);
    DecodeAffineFamily<float>(codes, numbers, rule, kKittyDim, row);
  }
}

// Updates the cache like Kitty's src/kitty_sim/kitty_simulate.py. No token is quantized twice.
CacheLoop Loop(const KittyOptions& o) {
  const auto k_end = std::make_shared<int64_t>(kKittySink);
  return {.k = LoopSide(kKittyHeads, kKittyDim),
          .v = LoopSide(kKittyHeads, kKittyDim),
          .after_prefill =
              [=](LoopSide& k, LoopSide& v) {
                const int64_t tokens = k.tokens();
                if (tokens <= kKittySink + kKittyPage) return;
                for (; *k_end + kKittyPage <= tokens; *k_end += kKittyPage)
                  QuantizePage(k, *k_end, o);
                for (int64_t t = kKittySink; t < tokens - kKittyPage; ++t) QuantizeValue(v, t, o);
              },
          .before_attention = {},
          .after_step =
              [=](LoopSide& k, LoopSide& v) {
                const int64_t tokens = k.tokens();
                const int64_t over = tokens - kKittySink - kKittyPage;
                if (over <= 0) return;
                if (over % kKittyPage == 1 && *k_end + kKittyPage == tokens - 1) {
                  QuantizePage(k, *k_end, o);
                  *k_end += kKittyPage;
                }
                QuantizeValue(v, tokens - kKittyPage - 1, o);
              }};
}

TEST(Kitty, IsItsLoopAfterAnySplitOfASequence) {
  const CacheSides rows = KittyRows(450);
  for (const KittyOptions& options :
       {KittyOptions{}, KittyOptions{.boosted = 0.25, .variant = KittyVariant::kKernel}}) {
    for (const int64_t prefill : {33, 159, 160, 161, 287, 288, 289, 290, 416, 430})
      ExpectSameReads(KittyCache(options, prefill), rows, prefill, Loop(options));
  }
}

// A prefill quantizes every page that it fills. Decoding quantizes a full page one token later.
TEST(Kitty, ThePrefillMatters) {
  EXPECT_EQ(KittyKeysEnd(289, 288), 288);
  EXPECT_EQ(KittyKeysEnd(289, 200), 160);
  EXPECT_EQ(KittyKeysEnd(290, 200), 288);
  EXPECT_EQ(KittyKeysEnd(161, 160), 32);  // the prefill fits the key buffer
  EXPECT_EQ(KittyKeysEnd(289, kAnyPrefill), 288);
  for (const int64_t prefill : {int64_t{100}, int64_t{288}, int64_t{300}, kAnyPrefill}) {
    for (int64_t length = 2; length < 1000; ++length)
      EXPECT_LE(KittyKeysEnd(length - 1, prefill), KittyKeysEnd(length, prefill)) << length;
  }
}

TEST(Kitty, KeysEqualTheScalarPagesBitForBit) {
  at::manual_seed(3);
  at::Tensor pages = at::randn({3, kKittyPage, 2, 64});
  pages[0].mul_(at::arange(64).remainder(5));
  pages[1].copy_(pages[1].mul(3).round());
  pages[2].select(-1, 9).fill_(0);
  pages[2].select(-1, 10).mul_(1e-30);
  pages[2][5][1][11] = 6e4;
  for (const KittyVariant variant : {KittyVariant::kSimulator, KittyVariant::kKernel}) {
    for (const double ratio : {0.0, 0.125, 0.25, 1.0}) {
      const AffineRule rule = KittyRule(variant, true);
      const at::Tensor y = KittyKeysRoundTrip(pages, ratio, rule);
      for (int64_t page = 0; page < 3; ++page) {
        for (int64_t head = 0; head < 2; ++head) {
          const at::Tensor x = pages[page].select(1, head).contiguous(),
                           actual = y[page].select(1, head).contiguous();
          const std::span<const float> values(x.const_data_ptr<float>(), kKittyPage * 64);
          std::vector<float> expected(values.size());
          DecodeKittyPage<float>(EncodeKittyPage<float>(values, {kKittyPage, 64}, ratio, rule),
                                 expected);
          EXPECT_EQ(std::memcmp(expected.data(), actual.const_data_ptr<float>(),
                                expected.size() * sizeof(float)),
                    0)
              << ratio << " page " << page << " head " << head;
        }
      }
    }
  }
}

TEST(Kitty, KeepsEverythingWithinTheWindowsOrWithoutAQuantizer) {
  ExpectEverythingExact(KittyCache({}, kAnyPrefill), KittyRows(kKittySink + kKittyPage + 1));
  ExpectEverythingExact(KittyCache({.quantizes = false}, kAnyPrefill), KittyRows(500));
}

// Pins codes of values halfway between two levels, and of groups whose range is below the floors.
TEST(Kitty, TheSimulatorRoundsHalvesToEvenAndTheKernelUp) {
  const auto codes = [](KittyVariant variant, bool sixteen_bit_rows, std::vector<float> x) {
    std::vector<uint8_t> q(x.size());
    std::vector<float> numbers(2);
    EncodeAffineFamily<float>(x, KittyRule(variant, sixteen_bit_rows), 4, q, numbers);
    return std::vector<int>(q.begin(), q.end());
  };
  using Codes = std::vector<int>;
  const std::vector<float> halves = {-1, -0.5F, 0.5F, 2}, small = {0, 1e-5F, 2e-5F, 3e-5F};
  EXPECT_EQ(codes(KittyVariant::kSimulator, true, halves), (Codes{0, 0, 2, 3}));
  EXPECT_EQ(codes(KittyVariant::kKernel, true, halves), (Codes{0, 1, 2, 3}));
  EXPECT_EQ(codes(KittyVariant::kSimulator, true, small), (Codes{0, 0, 1, 1}));  // step 1e-4 / 3
  EXPECT_EQ(codes(KittyVariant::kSimulator, false, small), (Codes{0, 1, 2, 3}));
  EXPECT_EQ(codes(KittyVariant::kKernel, true, small), (Codes{0, 1, 2, 3}));
  const std::vector<float> least = {0, 1e-7F, 2e-7F, 6e-7F};
  EXPECT_EQ(codes(KittyVariant::kSimulator, false, least), (Codes{0, 0, 1, 2}));  // step 1e-6 / 3
  EXPECT_EQ(codes(KittyVariant::kKernel, true, least), (Codes{0, 0, 0, 1}));      // step 1e-6
}

TEST(Kitty, TheFloorOfTheRangeFollowsTheRows) {
  CacheSides rows = KittyRows(160);
  rows.k.select(-1, 7).copy_(at::arange(160).remainder(4).mul(1e-5).unsqueeze(1));
  const CacheSides sixteen = {rows.k.to(at::kBFloat16), rows.v};
  const auto spread = [](const CacheSides& x) {
    const at::Tensor k = KittyCache({.boosted = 0}, 1).store(x).quantized.k;
    return std::get<0>(at::unique_consecutive(
                           std::get<0>(k.slice(0, kKittySink).select(-1, 7).flatten().sort())))
        .size(0);
  };
  EXPECT_EQ(spread(rows), 4);
  EXPECT_EQ(spread(sixteen), 2);  // step 1e-4 / 3: only codes 0 and 1 occur
}

}  // namespace
}  // namespace oscar
