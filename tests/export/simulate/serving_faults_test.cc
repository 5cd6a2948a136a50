// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares each fault with a direct computation of the server's mistake, such as logits of queries
// and keys that are in different spaces.
#include "export/simulate/methods/serving_faults.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "export/simulate/rotation_caches.h"
#include "linalg/base/error.h"
#include "tests/export/simulate/row_context.h"

namespace oscar {
namespace {

constexpr ArmOptions kOptions{.clip = true, .windows = true};

class ServingFaultsTest : public ::testing::Test {
 protected:
  LayerCache Fault(const std::string& name) const {
    const GuestMethods faults = ServingFaults(right_, kOptions, context_);
    const auto found = std::ranges::find_if(faults, [&](const auto& f) { return f->name == name; });
    return (*found)->make(context_, 0, {});
  }
  at::Tensor Rotation(bool keys) const {
    const StoredLayer& layer = context_.Stored(0);
    return RotationTensor(keys ? layer.k : layer.v);
  }

  RowContext rows_of_{{.head_dim = 64, .v_head_dim = 64}};
  const MethodContext& context_ = rows_of_.context();
  const CacheMethod& right_ = CacheMethodNamed("oscar_per_head");
  LayerCache cache_ = MakeLayerCache(right_, context_, 0, kOptions);
  CacheSides rows_{context_.rows().k[0], context_.rows().v[0]};
  at::Tensor q_ = context_.rows().q[0].slice(1, 0, 4, 2);  // one query head per KV head
};

// Returns logits [heads, queries, keys].
at::Tensor Logits(const at::Tensor& q, const at::Tensor& k) {
  return at::matmul(q.transpose(0, 1), k.permute({1, 2, 0}));
}
at::Tensor Rotated(const at::Tensor& rows, const at::Tensor& rotation) {
  return at::matmul(rows.transpose(0, 1), rotation).transpose(0, 1);
}

TEST_F(ServingFaultsTest, QueriesNotRotatedMeetKeysInTheirBasis) {
  const CacheSides read = Fault("queries_not_rotated").store(rows_).quantized;
  const at::Tensor keys = Rotated(cache_.store(rows_).quantized.k, Rotation(true));
  EXPECT_TRUE(at::allclose(Logits(q_, read.k), Logits(q_, keys), 1e-4, 1e-4));
  EXPECT_TRUE(at::equal(read.v, cache_.store(rows_).quantized.v));
}

TEST_F(ServingFaultsTest, QueriesOfAnotherHeadMeetKeysInTheirBasis) {
  const at::Tensor rotation = Rotation(true), keys = cache_.store(rows_).quantized.k;
  const at::Tensor expected =
      Logits(Rotated(q_, at::stack({rotation[1], rotation[0]})), Rotated(keys, rotation));
  const at::Tensor read = Fault("other_head").store(rows_).quantized.k;
  EXPECT_TRUE(at::allclose(Logits(q_, read), expected, 1e-4, 1e-4));
  EXPECT_FALSE(at::allclose(Logits(q_, keys), expected, 1e-1, 1e-1));
}

TEST_F(ServingFaultsTest, CodesWithoutScalesHaveAStepOfOne) {
  const CacheSides read = Fault("scales_ignored").store(rows_).quantized;
  for (const bool keys : {true, false}) {
    const at::Tensor turned = Rotated(keys ? read.k : read.v, Rotation(keys));
    const at::Tensor codes = turned.sub(turned.amin(-1, true));
    EXPECT_TRUE(at::allclose(codes, codes.round(), 0, 1e-3));
    EXPECT_NEAR(codes.max().item<double>(), 3, 1e-3);
  }
}

// On random rows, a wrong artifact causes errors as large as the right one, but in other
// directions.
TEST_F(ServingFaultsTest, AWrongArtifactErrsAsMuchElsewhere) {
  const auto error = [&](const LayerCache& cache) {
    return cache.store(rows_).quantized.k - rows_.k;
  };
  const at::Tensor right = error(cache_), wrong = error(Fault("wrong_artifact"));
  EXPECT_NEAR((wrong.norm() / right.norm()).item<double>(), 1, 0.05);
  EXPECT_LT((wrong * right).sum().abs().item<double>(), 0.5 * (right * right).sum().item<double>());
}

TEST_F(ServingFaultsTest, WithoutWindowsNothingIsExact) {
  EXPECT_TRUE(cache_.k_exact.any());
  const LayerCache fault = Fault("windows_ignored");
  EXPECT_FALSE(fault.k_exact.any() || fault.v_exact.any());
}

TEST_F(ServingFaultsTest, OfOneSharedRotationThereIsNoOtherHead) {
  EXPECT_EQ(ServingFaults(right_, kOptions, context_).size(), 5U);
  EXPECT_EQ(ServingFaults(CacheMethodNamed("oscar_shared"), kOptions, context_).size(), 4U);
  EXPECT_THROW(ServingFaults(CacheMethodNamed("kivi2"), {}, context_), UsageError);
}

}  // namespace
}  // namespace oscar
