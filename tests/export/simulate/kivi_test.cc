// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares KIVI's cache with a loop that updates it step by step.
#include "export/simulate/methods/kivi.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/export/simulate/cache_loop.h"
#include "tests/reference/scalar_affine_families.h"

namespace oscar {
namespace {

constexpr int64_t kKiviHeads = 2, kKiviDim = 16;

AffineRule Rule(int bits) {
  return {.family = AffineFamily::kMinOffset, .bits = bits, .metadata = StoredFloat::kFloat16};
}

std::vector<float> RoundTrip(const std::vector<float>& group, int bits) {
  std::vector<uint8_t> codes(group.size());
  std::vector<float> numbers(2), y(group.size());
  const auto size = static_cast<int64_t>(group.size());
  EncodeAffineFamily<float>(group, Rule(bits), size, codes, numbers);
  DecodeAffineFamily<float>(codes, numbers, Rule(bits), size, y);
  return y;
}

// Updates the cache as KIVI does: it quantizes keys in whole blocks of `residual` tokens, and
// values one token at a time.
CacheLoop Loop(const KiviOptions& o) {
  struct State {
    int64_t k_end = 0, v_end = 0;
  };
  const auto state = std::make_shared<State>();
  state->k_end = state->v_end = o.sink;
  const auto quantize_keys = [=](LoopSide& k, int64_t count) {
    for (const int64_t end = state->k_end + count; state->k_end < end;
         state->k_end += o.quant_group_size) {
      for (size_t head = 0; head < k.heads(); ++head) {
        for (size_t c = 0; c < k.dim(); ++c) {
          k.SetChannel(state->k_end, head, c,
                       RoundTrip(k.Channel(state->k_end, o.quant_group_size, head, c), o.bits));
        }
      }
    }
  };
  const auto quantize_value = [=](LoopSide& v) {
    const auto group = std::min(v.dim(), static_cast<size_t>(o.quant_group_size));
    for (size_t head = 0; head < v.heads(); ++head) {
      for (size_t c = 0; c < v.dim(); c += group) {
        std::vector<float> values;
        for (size_t i = c; i < c + group; ++i) values.push_back(v.at(state->v_end, head, i));
        values = RoundTrip(values, o.bits);
        for (size_t i = 0; i < group; ++i) v.at(state->v_end, head, c + i) = values[i];
      }
    }
    ++state->v_end;
  };
  return {.k = LoopSide(kKiviHeads, kKiviDim),
          .v = LoopSide(kKiviHeads, kKiviDim),
          .after_prefill =
              [=](LoopSide& k, LoopSide& v) {
                const int64_t behind = k.tokens() - o.sink;
                if (behind >= o.residual) quantize_keys(k, behind - behind % o.residual);
                while (v.tokens() - state->v_end > o.residual) quantize_value(v);
              },
          .before_attention = {},
          .after_step =
              [=](LoopSide& k, LoopSide& v) {
                if (k.tokens() - state->k_end == o.residual) quantize_keys(k, o.residual);
                if (v.tokens() - state->v_end > o.residual) quantize_value(v);
              }};
}

CacheSides KiviRows(int64_t tokens, uint64_t seed = 1) {
  at::manual_seed(seed);
  CacheSides rows = {at::randn({tokens, kKiviHeads, kKiviDim}),
                     at::randn({tokens, kKiviHeads, kKiviDim})};
  rows.k.select(-1, 3).mul_(20);
  rows.k.select(-1, 5).fill_(2.5);  // a constant channel: scale 0
  rows.v[7].fill_(1);
  rows.v.copy_(rows.v.mul(2).round());  // ties
  return rows;
}

TEST(Kivi, IsItsLoopAfterAnySplitOfASequence) {
  for (const int64_t sink : {0, 5}) {
    for (const int bits : {2, 4}) {
      const KiviOptions options = {
          .bits = bits, .quant_group_size = 8, .residual = 16, .sink = sink};
      const CacheSides rows = KiviRows(75);
      for (const int64_t prefill : {1, 4, 15, 16, 17, 21, 32, 37, 48, 70, 74})
        ExpectSameReads(KiviCache(options), rows, prefill, Loop(options));
    }
  }
}

TEST(Kivi, IsItsLoopWithThePublishedSizes) {
  for (const KiviOptions& options :
       {KiviOptions{}, KiviOptions{.sink = 32}, KiviOptions{.quant_group_size = 32}}) {
    const CacheSides rows = KiviRows(300);
    for (const int64_t prefill : {100, 128, 250})
      ExpectSameReads(KiviCache(options), rows, prefill, Loop(options));
  }
}

TEST(Kivi, ReadsTheResidualOfTheSpecification) {
  const LayerCache cache = KiviCache({});
  // The first decoding step after a prefill of 300 tokens reads 300 mod 128 = 44 keys and 128
  // values exactly, plus its own key and value.
  EXPECT_EQ(cache.k_exact.quantized_end(301), 300 - 44);
  EXPECT_EQ(cache.v_exact.quantized_end(301), 300 - 128);
  EXPECT_EQ(cache.k_exact.quantized_end(384), 256);  // the step that fills a block reads it exactly
  EXPECT_EQ(cache.k_exact.quantized_end(385), 384);
}

TEST(Kivi, KeepsEverythingWithinTheResidualOrWithoutAQuantizer) {
  ExpectEverythingExact(KiviCache({}), KiviRows(128));
  ExpectEverythingExact(KiviCache({.sink = 32}), KiviRows(128 + 32));
  ExpectEverythingExact(KiviCache({.bits = 0}), KiviRows(400));
  const CacheSides rows = KiviRows(300);
  EXPECT_FALSE(KiviCache({}).store(rows).quantized.k.equal(rows.k));
}

}  // namespace
}  // namespace oscar
