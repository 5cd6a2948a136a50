// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests properties that hold for every method of the table.
#include "export/simulate/cache_method.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "export/evaluate/bits_per_element.h"
#include "export/simulate/affine_cost.h"
#include "linalg/base/error.h"
#include "tests/export/simulate/row_context.h"

namespace oscar {
namespace {

constexpr RowGeometry kGeometry{.sequences = 2, .tokens = 420};

// Calls `check` for every method that is available in the context.
void ForEachMethod(RowContext& rows, const std::function<void(const CacheMethod&)>& check) {
  for (const CacheMethod& method : CacheMethods()) {
    if (method.available && !method.available(rows.context())) continue;
    SCOPED_TRACE(std::string(method.name));
    check(method);
  }
}

CacheSides Sequence(const RowContext& rows, size_t index, at::ScalarType dtype) {
  return {rows.rows().k.at(index).to(dtype), rows.rows().v.at(index).to(dtype)};
}

// Returns rows that most tests share, so that Published() makes each method only once.
RowContext& Rows() {
  static RowContext rows(kGeometry);
  return rows;
}
const LayerCache& Published(const CacheMethod& method) {
  static std::map<std::string_view, LayerCache> made;
  const auto [found, is_new] = made.try_emplace(method.name);
  if (is_new) found->second = method.make(Rows().context(), 0, method.as_published);
  return found->second;
}

TEST(CacheMethods, NamesAreUsedOnceAndFound) {
  std::set<std::string_view> names;
  for (const CacheMethod& method : CacheMethods()) {
    EXPECT_TRUE(names.insert(method.name).second) << method.name;
    EXPECT_EQ(&CacheMethodNamed(method.name), &method);
    EXPECT_EQ(method.name.find('+'), std::string_view::npos) << method.name;
  }
  EXPECT_THROW(CacheMethodNamed("no such method"), UsageError);
}

TEST(CacheMethods, StoreGivesRowsOfTheSameShape) {
  ForEachMethod(Rows(), [&](const CacheMethod& method) {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
      const CacheSides sides = Sequence(Rows(), 0, dtype);
      const CachedRows stored = Published(method).store(sides);
      const auto expect = [&](const at::Tensor& found, const at::Tensor& given) {
        EXPECT_EQ(found.sizes(), given.sizes());
        EXPECT_EQ(found.scalar_type(), dtype == at::kDouble ? at::kDouble : at::kFloat);
        EXPECT_TRUE(found.isfinite().all().item<bool>());
      };
      expect(stored.quantized.k, sides.k);
      expect(stored.quantized.v, sides.v);
      if (stored.exact.k.defined()) expect(stored.exact.k, sides.k);
      if (stored.exact.v.defined()) expect(stored.exact.v, sides.v);
    }
  });
}

// Arms that differ only in their windows share stored rows in oscar-validate, so windows must not
// change the quantized rows.
TEST(CacheMethods, WindowsChangeWhatIsExactAndNothingElse) {
  const CacheSides sides = Sequence(Rows(), 0, at::kFloat);
  ForEachMethod(Rows(), [&](const CacheMethod& method) {
    if (!method.quantizes || !method.takes_windows) return;
    const LayerCache with = method.make(Rows().context(), 0, {.windows = true});
    const LayerCache without = method.make(Rows().context(), 0, {});
    EXPECT_FALSE(without.k_exact.any());
    EXPECT_FALSE(without.v_exact.any());
    for (const ExactTokens* tokens : {&with.k_exact, &with.v_exact}) {
      EXPECT_EQ(tokens->sink, 64);
      ASSERT_TRUE(tokens->quantized_end);
      EXPECT_EQ(tokens->quantized_end(1000), 1000 - 256);
    }
    const CachedRows a = with.store(sides), b = without.store(sides);
    EXPECT_TRUE(a.quantized.k.equal(b.quantized.k));
    EXPECT_TRUE(a.quantized.v.equal(b.quantized.v));
    EXPECT_EQ(static_cast<bool>(with.queries), static_cast<bool>(without.queries));
  });
}

// Compares a cache of 300 tokens with a cache of the whole sequence. Returns the largest difference
// in the rows that are already quantized after 300 tokens.
double ChangedLater(const LayerCache& cache, const CacheSides& whole) {
  constexpr int64_t kShort = 300;
  const CachedRows all = cache.store(whole),
                   part = cache.store({whole.k.slice(0, 0, kShort), whole.v.slice(0, 0, kShort)});
  const auto change = [&](const ExactTokens& tokens, const at::Tensor& a, const at::Tensor& b) {
    const int64_t end = tokens.quantized_end ? tokens.quantized_end(kShort) : kShort;
    if (end <= tokens.sink) return 0.0;
    const auto quantized = [&](const at::Tensor& x) { return x.slice(0, tokens.sink, end); };
    return (quantized(a) - quantized(b)).abs().max().item<double>();
  };
  return std::max(change(cache.k_exact, all.quantized.k, part.quantized.k),
                  change(cache.v_exact, all.quantized.v, part.quantized.v));
}

// With a prefill of one token, a stored row must not depend on later tokens. A cache that looks
// ahead must fail the check.
TEST(CacheMethods, WhatATokenGivesBackDependsOnThePast) {
  RowContext rows(kGeometry, {.prefill_tokens = 1});
  const CacheSides whole = Sequence(rows, 1, at::kDouble);
  ForEachMethod(rows, [&](const CacheMethod& method) {
    EXPECT_LT(ChangedLater(method.make(rows.context(), 0, method.as_published), whole), 1e-5);
  });
  const LayerCache looks_ahead{.store = [](const CacheSides& sides) {
    return CachedRows{.quantized = {sides.k - sides.k.mean(0, true), sides.v}};
  }};
  EXPECT_GT(ChangedLater(looks_ahead, whole), 1e-3);
}

TEST(CacheMethods, WhatQuantizesLosesSomethingAndWhatDoesNotNothing) {
  const CacheSides sides = Sequence(Rows(), 0, at::kDouble);
  ForEachMethod(Rows(), [&](const CacheMethod& method) {
    const CachedRows stored = Published(method).store(sides);
    const auto error = [](const at::Tensor& a, const at::Tensor& b) {
      return (a - b).norm().div(b.norm()).item<double>();
    };
    const double k = error(stored.quantized.k, sides.k), v = error(stored.quantized.v, sides.v);
    if (method.quantizes) {
      EXPECT_GT(k + v, 1e-4);
      EXPECT_LT(std::max(k, v), 1.5);
    } else {
      EXPECT_LT(std::max(k, v), 1e-6);
    }
  });
}

TEST(CacheMethods, Float32AndFloat64StoreTheSame) {
  ForEachMethod(Rows(), [&](const CacheMethod& method) {
    const LayerCache& cache = Published(method);
    const CachedRows narrow = cache.store(Sequence(Rows(), 0, at::kFloat)),
                     wide = cache.store(Sequence(Rows(), 0, at::kDouble));
    const auto expect_same = [](const at::Tensor& a, const at::Tensor& b) {
      const at::Tensor difference = (a.to(at::kDouble) - b).abs();
      const double tolerance = 2e-5 * b.abs().mean().item<double>();
      EXPECT_LT(difference.gt(tolerance).to(at::kDouble).mean().item<double>(), 0.02);
    };
    expect_same(narrow.quantized.k, wide.quantized.k);
    expect_same(narrow.quantized.v, wide.quantized.v);
  });
}

TEST(CacheMethods, CostsAreBitsOfACache) {
  ForEachMethod(Rows(), [&](const CacheMethod& method) {
    const CacheCost cost = method.cost(Rows().context(), method.as_published, 1 << 17);
    if (method.quantizes) {
      EXPECT_GT(cost.paper, 1);
      EXPECT_LT(cost.paper, 16);
      EXPECT_GT(cost.actual, 1);
      EXPECT_LT(cost.actual, 20);
    } else {
      EXPECT_EQ(cost.paper, 16);
      EXPECT_EQ(cost.actual, 16);
    }
  });
}

TEST(AffineCost, IsTheMeanOfBothSides) {
  RowContext rows({.head_dim = 64, .v_head_dim = 32});
  const AffineSide k{.bits = 4, .metadata_bits = 32, .actual_metadata_bits = 64},
      v{.bits = 2, .metadata_bits = 16, .actual_metadata_bits = 32, .quant_group_size = 16};
  const CacheCost plain = AffineCost(k, v)(rows.context(), {}, 8000);
  EXPECT_DOUBLE_EQ(plain.paper, ((4 + 32 / 64.0) * 64 + (2 + 16 / 16.0) * 32) / 96);
  EXPECT_DOUBLE_EQ(plain.actual, ((4 + 64 / 64.0) * 64 + (2 + 32 / 16.0) * 32) / 96);
  // With windows, keys and values each cost what the formula in bits_per_element.h gives.
  const auto both = [&](auto bits) {
    const auto side = [&](const AffineSide& of, int64_t group) {
      return bits(CacheLayout{.payload_bits = of.bits,
                              .metadata_bits = of.metadata_bits,
                              .actual_metadata_bits = of.actual_metadata_bits,
                              .quant_group_size = group},
                  8000);
    };
    return (side(k, 64) * 64 + side(v, 16) * 32) / 96;
  };
  const CacheCost windows = AffineCost(k, v)(rows.context(), {.windows = true}, 8000);
  EXPECT_DOUBLE_EQ(windows.paper, both(PaperBitsPerElement));
  EXPECT_DOUBLE_EQ(windows.actual, both(ActualBitsPerElement));
}

}  // namespace
}  // namespace oscar
