// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that the checks fail when something is wrong. Every way to make a wrong artifact or a wrong
// cache must fail a check or worsen the numbers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "calib/cache/row_comparison.h"
#include "calib/moments/moments_file.h"
#include "export/artifact/artifact_format.h"
#include "export/artifact/moment_check.h"
#include "export/evaluate/gate.h"
#include "export/simulate/rotated_quantizer.h"
#include "export/simulate/rotation_caches.h"
#include "export/validate/validation_observer.h"
#include "linalg/base/error.h"
#include "linalg/rotation.h"
#include "tests/export/validate/tiny_validation.h"

namespace oscar {
namespace {

TEST(NegativeControl, TheArtifactItselfIsRight) {
  const MomentCheck check = CheckRotationsFitMoments(Artifact::Open(TinyArtifact()));
  EXPECT_EQ(check.checked, 4 * (2 + 2 + 1 + 1));
  EXPECT_EQ(check.unchecked, 0);
  EXPECT_LT(check.worst, 1e-5);
}

// The wrong rotations are orthogonal and have correct digests, so no other check notices them.
TEST(NegativeControl, RotationsInAnothersPlaceAreSeen) {
  const std::pair<const char*, std::function<void(RotationTensors&)>> mistakes[] = {
      {"transposed",
       [](RotationTensors& tensors) {
         std::vector<float>& r = tensors.at(RotationTensorName(1, 'k', false, "rotation"));
         const std::vector<float> was = r;
         for (size_t i = 0; i < 64 * 64; ++i) r[i] = was[i % 64 * 64 + i / 64];
       }},
      {"layers",
       [](RotationTensors& tensors) {
         for (const char side : {'k', 'v'})
           for (const char* what : {"rotation", "eigenvalues"})
             std::swap(tensors.at(RotationTensorName(1, side, false, what)),
                       tensors.at(RotationTensorName(2, side, false, what)));
       }},
      {"heads", [](RotationTensors& tensors) {
         std::vector<float>& r = tensors.at(RotationTensorName(0, 'v', false, "rotation"));
         std::swap_ranges(r.begin(), r.begin() + 64 * 64, r.begin() + 64 * 64);
       }}};
  for (const auto& [name, mistake] : mistakes) {
    const Artifact artifact = Artifact::Open(SpoiledArtifact(name, mistake));
    EXPECT_THROW(CheckRotationsFitMoments(artifact), NumericalError) << name;
  }
}

TEST(NegativeControl, OneNanInARotationIsSeen) {
  const auto path = SpoiledArtifact("nan", [](RotationTensors& tensors) {
    tensors.at(RotationTensorName(3, 'v', true, "rotation"))[77] =
        std::numeric_limits<float>::quiet_NaN();
  });
  EXPECT_THROW(CheckRotationsFitMoments(Artifact::Open(path)), NumericalError);
  EXPECT_THROW(ValidateTiny(path, QuickOptions({"oscar_shared"})), NumericalError);
}

// Puts a NaN into the keys of one layer while the model runs.
TEST(NegativeControl, OneNanInTheModelIsSeen) {
  const TinyModel model;
  const Artifact artifact = Artifact::Open(TinyArtifact());
  const std::vector<LayerSpec> layers = {model.spec.layers[0]};
  MethodContext context(artifact, model.spec.layers, {});
  const std::vector<Arm> arms = ParseArms({"hadamard"}, context);
  MeasuredRows rows;
  for (int64_t i = 0; i < 40; ++i) rows.rows.push_back({0, i, 40, i >= 20});
  ValidationObserver observer(context, arms, rows,
                              {.measure_dtype = at::kDouble, .end_to_end = false});
  const AttentionSpec& spec = layers[0].attention;
  const at::Tensor q = at::randn({40, spec.num_q_heads, spec.head_dim}),
                   k = at::randn({40, spec.num_kv_heads, spec.head_dim}),
                   v = at::randn({40, spec.num_kv_heads, spec.v_head_dim}), out = at::empty_like(q);
  k[30][0][5].fill_(NAN);
  observer.OnLayerBegin(layers[0]);
  observer.OnAttention({layers[0], 0, 0, 0, q, k, v, out});
  EXPECT_THROW(observer.OnLayerEnd(layers[0]), NumericalError);
}

TEST(NegativeControl, ValuesThatAreNotRotatedBackFailTheGate) {
  const TinyModel model;
  const AttentionSpec& spec = model.spec.layers[0].attention;
  at::manual_seed(5);
  const at::Tensor q = at::randn({200, spec.num_q_heads, spec.head_dim}, at::kDouble),
                   k = at::randn({200, spec.num_kv_heads, spec.head_dim}, at::kDouble),
                   v = at::randn({200, spec.num_kv_heads, spec.v_head_dim}, at::kDouble);
  const at::Tensor h = RotationTensor({HadamardRotation(spec.v_head_dim).matrix()});
  const RotatedQuantizer quantizer{.rotation = h, .codes = {{4}}};
  const at::Tensor k_stored = RoundTrip(quantizer, k), v_stored = RoundTrip(quantizer, v);
  const at::Tensor not_back = v_stored.matmul(h[0].to(at::kDouble));
  const auto output_error = [&](const at::Tensor& values) {
    RowComparison comparison(spec, k, v, at::kDouble);
    comparison.SetRows({at::arange(200), q});
    const ExactSides none[] = {{}};
    const RowErrors errors =
        comparison.Compare(comparison.Prepare({k_stored, values, {}, {}}), {}, none)[0];
    return errors.output_error_sq.sum()
        .div(comparison.reference().output_sq.sum())
        .sqrt()
        .item<double>();
  };
  const auto passes = [&](double error) {
    const Json arm = {{"name", "x"}, {"local", {{"output_rel_error", error}}}};
    return EvaluateGate(ParseGate("output_rel_error<=0.5"), arm).passed;
  };
  EXPECT_TRUE(passes(output_error(v_stored)));
  EXPECT_FALSE(passes(output_error(not_back)));
}

// OSCAR's rotation spreads the importance of its own layer evenly. The rotation of another layer
// does not, and neither does Hadamard.
TEST(NegativeControl, TheWrongLayersRotationDoesNotFlattenImportance) {
  const Artifact artifact = Artifact::Open(TinyArtifact());
  const MomentsReader moments(TinyArtifact() / kMomentsFile);
  for (const int layer : {0, 1, 2, 3}) {
    const Matrix c = moments.Read(layer).QueryCovariance(0);
    const auto flatness = [&](int from) {
      using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
      const StoredLayer stored = artifact.ReadLayer(from);
      return ImportanceMaxOverMean(Eigen::Map<const RowMajor>(stored.k.rotation.data(), 64, 64), c);
    };
    EXPECT_NEAR(flatness(layer), 1, 1e-4);
    EXPECT_GT(flatness((layer + 2) % 4), 1.3);
    EXPECT_GT(ImportanceMaxOverMean(HadamardRotation(64).matrix(), c), 1.3);
  }
}

}  // namespace
}  // namespace oscar
