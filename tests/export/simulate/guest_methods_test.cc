// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares rotations from a file with the methods that have the same rotations built in, and
// methods of another artifact with methods of the run's own artifact.
#include "export/simulate/guest_methods.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <utility>

#include "export/simulate/rotation_caches.h"
#include "linalg/base/error.h"
#include "linalg/hadamard.h"
#include "linalg/rotation.h"
#include "tests/export/simulate/per_token_rows.h"

namespace oscar {
namespace {

FloatTensorPtr Given(const at::Tensor& x) {
  const at::Tensor host = x.to(at::kFloat).contiguous();
  const float* values = host.const_data_ptr<float>();
  return std::make_shared<const FloatTensor>(
      FloatTensor{host.sizes().vec(), {values, values + host.numel()}});
}

RotationFile FileOf(RotationLayer layer, RotationKind kind = RotationKind::kStacked) {
  RotationFile file;
  file.kind = kind;
  file.path = "given.npy";
  file.layers.push_back(std::move(layer));
  return file;
}

RotationLayer LayerWith(const at::Tensor& rotation) {
  RotationLayer layer;
  layer.rotation = Given(rotation);
  return layer;
}

RotationFile Hadamards(int64_t dim) { return FileOf(LayerWith(HadamardTensor(dim)[0])); }

CacheSides Through(const CacheMethod& method, RowContext& rows, const ArmOptions& options) {
  return method.make(rows.context(), 0, options).store(RowsOf(rows, at::kFloat)).quantized;
}

TEST(RotationMethod, AHadamardFromAFileIsTheHadamard) {
  RowContext rows(kWideRows);
  const auto method = RotationMethod("mine", {Hadamards(128), Hadamards(64)});
  EXPECT_EQ(method->name, "mine");
  method->available(rows.context());
  for (const ArmOptions& options :
       {ArmOptions{}, ArmOptions{.clip = true}, ArmOptions{.clip = true, .bf16 = true},
        ArmOptions{.clip = true, .clip_ratio = 0.8}}) {
    const CacheSides mine = Through(*method, rows, options);
    const CacheSides ours = Through(CacheMethodNamed("hadamard"), rows, options);
    EXPECT_TRUE(at::equal(mine.k, ours.k));
    EXPECT_TRUE(at::equal(mine.v, ours.v));
  }
  EXPECT_DOUBLE_EQ(method->cost(rows.context(), {}, 4096).paper,
                   CacheMethodNamed("hadamard").cost(rows.context(), {}, 4096).paper);
}

TEST(RotationMethod, ASideWithoutAFileIsNotRotated) {
  RowContext rows(kWideRows);
  const auto method = RotationMethod("keys", {Hadamards(128), {}});
  EXPECT_TRUE(
      at::equal(Through(*method, rows, {}).v, Through(CacheMethodNamed("naive"), rows, {}).v));
}

TEST(RotationMethod, ScalesMeansAndQueriesCancel) {
  RowContext rows(kWideRows);
  at::manual_seed(3);
  const at::Tensor x = at::eye(128, at::kDouble) + 0.01 * at::randn({2, 128, 128}, at::kDouble);
  RotationLayer layer = LayerWith(x);
  layer.q_rotation = Given(at::linalg_inv(x).transpose(1, 2));
  layer.k_mean = Given(at::randn({2, 128}));
  layer.pair_scale = Given(at::rand({2, 128}) + 0.5);
  const auto method = RotationMethod("skew", {FileOf(std::move(layer)), {}});
  const LayerCache cache = method->make(rows.context(), 0, {.windows = true, .bf16 = true});
  const CacheSides given = RowsOf(rows, at::kFloat);
  const CachedRows stored = cache.store(given);
  EXPECT_LT(RelativeError(stored.exact.k, given.k), 1e-4);
  // The matrix is nearly the identity and the mean is not that of the keys, so the error is similar
  // to that of unrotated 2-bit keys.
  const CacheSides naive = Through(CacheMethodNamed("naive"), rows, {});
  EXPECT_LT(RelativeError(stored.quantized.k, given.k), 2 * RelativeError(naive.k, given.k));
  const at::Tensor q = rows.rows().q[0];
  EXPECT_LT(RelativeError(cache.queries(q), q), 1e-4);
}

TEST(RotationMethod, RefusesAModelOfOtherShapesBeforeAnythingRuns) {
  RowContext rows(kWideRows);
  const auto refuses = [&](GivenRotations given) {
    EXPECT_THROW(RotationMethod("mine", std::move(given))->available(rows.context()), InputError);
  };
  refuses({Hadamards(64), Hadamards(64)});
  refuses({FileOf(LayerWith(HadamardTensor(128).expand({3, 128, 128}))), {}});
  RotationLayer seventh = LayerWith(HadamardTensor(128)[0]);
  seventh.layer_id = 7;
  refuses({FileOf(seventh, RotationKind::kV1), {}});
  RotationFile two = Hadamards(128);
  two.layers.push_back(two.layers[0]);
  refuses({two, {}});
}

TEST(MethodsOfArtifact, AreThoseOfTheTableWithItsRotations) {
  RowContext own(kWideRows), other({.head_dim = 128, .v_head_dim = 64, .tokens = 150, .seed = 9});
  // This pointer owns nothing: the artifact belongs to `other`, which outlives it.
  const std::shared_ptr<const Artifact> artifact(std::shared_ptr<const Artifact>(),
                                                 &other.context().artifact());
  const GuestMethods methods = MethodsOfArtifact("twin", artifact);
  EXPECT_EQ(methods.size(), CacheMethods().size());
  const CacheMethod& guest = CacheMethodNamed("twin:oscar_per_head", methods);
  EXPECT_THROW(CacheMethodNamed("twin:oscar_per_head"), UsageError);
  guest.available(own.context());
  const LayerCache expected =
      CacheMethodNamed("oscar_per_head").make(other.context(), 0, {.clip = true});
  const CacheSides rows = RowsOf(own, at::kFloat);
  const CacheSides read = guest.make(own.context(), 0, {.clip = true}).store(rows).quantized;
  EXPECT_TRUE(at::equal(read.k, expected.store(rows).quantized.k));
  EXPECT_FALSE(
      at::equal(read.k, Through(CacheMethodNamed("oscar_per_head"), own, {.clip = true}).k));
  // A method that the artifact does not contain is refused, and so is a model of another shape.
  EXPECT_THROW(CacheMethodNamed("twin:auto", methods).available(own.context()), InputError);
  RowContext narrow(kSquareRows);
  EXPECT_THROW(CacheMethodNamed("twin:oscar_per_head", MethodsOfArtifact("twin", artifact))
                   .available(narrow.context()),
               InputError);
}

}  // namespace
}  // namespace oscar
