// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests properties of every method that quantizes each token by itself, and the types of released
// servers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "export/simulate/codecs/float8_tensor.h"
#include "linalg/stored_float.h"
#include "tests/export/simulate/cache_loop.h"
#include "tests/export/simulate/per_token_rows.h"
#include "tests/reference/scalar_float8.h"

namespace oscar {
namespace {

bool IsPerToken(std::string_view name) {
  if (name.ends_with("_feedback_kv")) return false;  // needs a model's o_proj
  for (const std::string_view prefix :
       {"fp8_",          "nvfp4",           "block_gtq_",     "octopus_",
        "naive_",        "quarot_",         "saw_",           "turboquant_",
        "llama_",        "lmdeploy_",       "hadamard_lloyd", "hadamard_trellis",
        "oscar_trellis", "oscar_k2",        "oscar_k3",       "oscar_k4",
        "oscar_shared_", "oscar_per_head_", "oscar_bisect",   "oscar_bf16_",
        "oscar_lloyd"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

std::vector<const CacheMethod*> PerTokenMethods() {
  std::vector<const CacheMethod*> methods;
  for (const CacheMethod& method : CacheMethods()) {
    if (IsPerToken(method.name)) methods.push_back(&method);
  }
  return methods;
}

TEST(PerTokenMethods, AreManyAndAvailable) {
  RowContext rows(kSmallRows);
  const auto methods = PerTokenMethods();
  EXPECT_GE(methods.size(), 46U);
  for (const CacheMethod* method : methods)
    EXPECT_TRUE(!method->available || method->available(rows.context())) << method->name;
}

TEST(PerTokenMethods, WindowsOverEverythingAreExact) {
  RowContext rows(kSmallRows);
  for (const CacheMethod* method : PerTokenMethods()) {
    SCOPED_TRACE(method->name);
    ASSERT_TRUE(method->takes_windows);
    const LayerCache cache = method->make(rows.context(), 0, {.windows = true});
    ExpectEverythingExact(cache, RowsOf(rows, at::kFloat));
    EXPECT_FALSE(method->make(rows.context(), 0, {}).k_exact.any());
  }
}

// A stored row depends only on its own token, so later tokens do not change the rows of a prefix.
// Uses float64, where matrix products of different shapes give the same codes.
TEST(PerTokenMethods, TokensDoNotSeeEachOther) {
  RowContext rows(kSmallRows);
  const CacheSides all = RowsOf(rows, at::kDouble);
  const CacheSides some = {all.k.narrow(0, 0, 37), all.v.narrow(0, 0, 37)};
  for (const CacheMethod* method : PerTokenMethods()) {
    SCOPED_TRACE(method->name);
    for (const bool clip : {false, true}) {
      if (clip && !method->takes_clip) continue;
      const LayerCache cache = method->make(rows.context(), 0, {.clip = clip});
      const CacheSides whole = cache.store(all).quantized, prefix = cache.store(some).quantized;
      ASSERT_EQ(whole.k.sizes(), all.k.sizes());
      ASSERT_EQ(whole.v.scalar_type(), at::kDouble);
      EXPECT_LT((whole.k.narrow(0, 0, 37) - prefix.k).abs().max().item<double>(), 1e-9);
      EXPECT_LT((whole.v.narrow(0, 0, 37) - prefix.v).abs().max().item<double>(), 1e-9);
      EXPECT_GT(RelativeError(whole.k, all.k), 1e-6);  // the rows were quantized
      EXPECT_LT(RelativeError(whole.v, all.v), 0.8);
    }
  }
}

TEST(Float8Methods, CalibratedScalesAreThoseOfCalibrationRows) {
  RowContext rows(kWideRows);
  const CacheSides x = RowsOf(rows, at::kFloat);
  at::Tensor largest = rows.rows().k[0].abs().amax({0, 2});
  for (const at::Tensor& k : rows.rows().k) largest = at::maximum(largest, k.abs().amax({0, 2}));
  const auto expect = [&](std::string_view name, const at::Tensor& amax, Float8Type type) {
    const at::Tensor y = Stored(rows, name, x).k;
    for (int64_t head = 0; head < y.size(1); ++head) {
      const float scale = Float8Scale(amax[head].item<float>(), type);
      for (int64_t i = 0; i < 40; ++i) {
        ASSERT_EQ(y[i][head][i].item<float>(),
                  Float8RoundTrip(x.k[i][head][i].item<float>(), scale, type));
      }
    }
  };
  expect("fp8_e4m3_per_head", largest, Float8Type::kE4M3);
  expect("fp8_e5m2_per_head", largest, Float8Type::kE5M2);
  expect("fp8_e4m3_calibrated", largest.max().expand({2}), Float8Type::kE4M3);
  expect("fp8_e4m3", at::full({2}, 448.F), Float8Type::kE4M3);
  expect("fp8_e5m2", at::full({2}, 57344.F), Float8Type::kE5M2);
}

// Reads back one block of 32 values, as in ggml-quants.c.
void RoundTripQ8(const float* x, float* y) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(x[i]));
  const float d = largest / 127, inverse = d != 0 ? 1.0F / d : 0.0F;
  for (int i = 0; i < 32; ++i) y[i] = std::round(x[i] * inverse) * RoundToFloat16(d);
}
void RoundTripQ4(const float* x, float* y) {
  float largest = 0, value = 0;
  for (int i = 0; i < 32; ++i) {
    if (std::fabs(x[i]) <= largest) continue;
    largest = std::fabs(x[i]);
    value = x[i];
  }
  const float d = value / -8, inverse = d != 0 ? 1.0F / d : 0.0F;
  for (int i = 0; i < 32; ++i) {
    const int code = std::min(15, static_cast<int>(x[i] * inverse + 8.5F));
    y[i] = static_cast<float>(code - 8) * RoundToFloat16(d);
  }
}

TEST(ReleasedTypes, LlamaBlocksAreGgmls) {
  RowContext rows(kSmallRows);
  CacheSides x = RowsOf(rows, at::kFloat);
  x.k[3].zero_();
  for (const auto& [name, round_trip] :
       {std::pair("llama_q8_0", &RoundTripQ8), std::pair("llama_q4_0", &RoundTripQ4)}) {
    const CacheSides y = Stored(rows, name, x);
    for (const auto& [from, to] : {std::pair(x.k, y.k), std::pair(x.v, y.v)}) {
      const at::Tensor flat = from.contiguous(), stored = to.contiguous();
      for (int64_t at = 0; at < flat.numel(); at += 32) {
        float expected[32];
        round_trip(flat.const_data_ptr<float>() + at, expected);
        for (int64_t i = 0; i < 32; ++i)
          ASSERT_EQ(stored.const_data_ptr<float>()[at + i], expected[i]) << name << " " << at + i;
      }
    }
  }
}

TEST(ReleasedTypes, CostWhatTheirServersStore) {
  RowContext rows(kSquareRows);
  const auto bits = [&](std::string_view name) {
    return CacheMethodNamed(name).cost(rows.context(), {}, 4096).actual;
  };
  EXPECT_DOUBLE_EQ(bits("llama_q8_0"), 8.5);     // 34 bytes for 32 values
  EXPECT_DOUBLE_EQ(bits("llama_q4_0"), 4.5);     // 18 bytes
  EXPECT_DOUBLE_EQ(bits("lmdeploy_int8"), 8.5);  // two float16 numbers for 64 values
  EXPECT_DOUBLE_EQ(bits("lmdeploy_int4"), 4.5);
}

}  // namespace
}  // namespace oscar
