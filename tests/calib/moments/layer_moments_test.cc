// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/moments/layer_moments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "calib/fit/fit.h"
#include "calib/moments/moments_file.h"
#include "capture/checkpoint/safetensors.h"
#include "capture/files/strict_json.h"
#include "linalg/base/error.h"
#include "tests/calib/moments/sample_moments.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

TEST(LayerMoments, MergeOfHalvesIsTheWhole) {
  const LayerMoments whole = SampleMoments(3, 40, 1), front = SampleMoments(3, 15, 1);
  LayerMoments back = whole;  // becomes whole - front
  back.tokens -= front.tokens;
  for (size_t i = 0; i < back.query.size(); ++i) back.query[i] -= front.query[i];
  for (size_t i = 0; i < back.key.size(); ++i) back.key[i] -= front.key[i];
  for (size_t i = 0; i < back.key_sum.size(); ++i) back.key_sum[i] -= front.key_sum[i];
  for (size_t i = 0; i < back.value.size(); ++i) back.value[i] -= front.value[i];
  for (size_t i = 0; i < back.attention_output.size(); ++i)
    back.attention_output[i] -= front.attention_output[i];
  LayerMoments merged = front;
  merged.Merge(back);
  EXPECT_EQ(merged.tokens, 40);
  EXPECT_LT((merged.QueryCovariance(1) - whole.QueryCovariance(1)).norm(),
            1e-12 * whole.QueryCovariance(1).norm());
  EXPECT_LT((merged.KeyMean(0) - whole.KeyMean(0)).norm(), 1e-12);
}

TEST(LayerMoments, QueriesThatCountAreKept) {
  const auto scratch = TestScratch("counted_moments");
  LayerMoments masked = SampleMoments(3, 40, 1);
  const LayerMoments plain = masked;
  masked.SetTokens(40, 10);
  EXPECT_LT((masked.QueryCovariance(0) - 4 * plain.QueryCovariance(0)).norm(), 1e-9);
  EXPECT_EQ((masked.KeySecondMoment(0) - plain.KeySecondMoment(0)).norm(), 0);
  for (const LayerMoments* moments : {&plain, &std::as_const(masked)}) {
    MomentsWriter writer(scratch / "m.safetensors");
    writer.Add(*moments);
    writer.Commit();
    EXPECT_EQ(MomentsReader(scratch / "m.safetensors").Read(3).queries(), moments->queries());
    const auto file = SafetensorsFile::Open(scratch / "m.safetensors");
    EXPECT_EQ(file.metadata().at("format_version"), moments == &plain ? "2" : "3");
  }
  LayerMoments both = masked;
  both.Merge(plain);
  EXPECT_EQ(both.tokens, 80);
  EXPECT_EQ(both.queries(), 50);
  masked.SetTokens(40, 41);
  MomentsWriter writer(scratch / "bad.safetensors");
  writer.Add(masked);
  writer.Commit();
  EXPECT_THROW(MomentsReader(scratch / "bad.safetensors").Read(3), InputError);
}

TEST(LayerMoments, MaximaOfPartsAreTheLargerWhereBothAreKnown) {
  LayerMoments a = SampleMoments(3, 40, 1), unknown = SampleMoments(3, 40, 3);
  const LayerMoments first = a, second = SampleMoments(3, 40, 2);
  a.Merge(second);
  for (size_t i = 0; i < a.key_abs_max.size(); ++i)
    EXPECT_EQ(a.key_abs_max[i], std::max(first.key_abs_max[i], second.key_abs_max[i]));
  unknown.value_abs_max.clear();
  a.Merge(unknown);
  EXPECT_TRUE(a.value_abs_max.empty());
  EXPECT_FALSE(a.key_abs_max.empty());
}

TEST(LayerMoments, MergedMomentsRefuseTheDiagonalTarget) {
  LayerMoments merged = SampleMoments(3, 40, 1);
  EXPECT_NO_THROW(merged.ValueCovariance(0, ValueTarget::kDiagonal));
  merged.Merge(SampleMoments(3, 40, 2));
  EXPECT_THROW(merged.ValueCovariance(0, ValueTarget::kDiagonal), InputError);
  EXPECT_NO_THROW(merged.ValueCovariance(0, ValueTarget::kAttentionOutput));
}

TEST(LayerMoments, OtherGeometriesAreRefused) {
  LayerMoments a = SampleMoments(3, 40, 1);
  EXPECT_THROW(a.Merge(SampleMoments(4, 40, 1)), InputError);
}

// A layer is latent if its file says so; plain keys and values may also have equal sums. In older
// files, which do not say it, equal sums mean that the layer is latent.
TEST(LayerMoments, LatentsAreDeclared) {
  LayerMoments same = SampleMoments(3, 40, 1);
  same.v_head_dim = same.head_dim;
  same.value = same.attention_output = same.diagonal = same.key;
  same.value_abs_max = same.key_abs_max;
  const std::filesystem::path folder = TestScratch("latent_moments");
  for (const bool latent : {false, true}) {
    same.latent = latent;
    const std::filesystem::path path =
        folder / (latent ? "latents.safetensors" : "plain.safetensors");
    MomentsWriter file(path);
    file.Add(same);
    file.Commit();
    EXPECT_EQ(MomentsReader(path).Read(3).latent, latent);
  }
  LayerMoments plain = same;
  plain.latent = false;
  EXPECT_THROW(plain.Merge(same), InputError);

  for (const bool equal : {false, true}) {
    const std::filesystem::path older = folder / "older.safetensors";
    std::vector<SafetensorsWriter::Declaration> sums;
    for (const char* name : {"query", "key", "value", "attention_output"})
      sums.push_back({std::string("layer.0.") + name, DType::kF64, {1, 2, 2}});
    const Json facts = {
        {"num_q_heads", 2}, {"num_kv_heads", 1}, {"head_dim", 2}, {"v_head_dim", 2}, {"tokens", 5}};
    SafetensorsWriter file(
        older, sums,
        {{"format", "oscar-moments"}, {"format_version", "2"}, {"layer.0", facts.dump()}});
    for (const auto& sum : sums) {
      const bool differs = !equal && sum.name.ends_with("value");
      const std::vector<double> values = {2, 0, 0, differs ? 3.0 : 1.0};
      file.Write(sum.name, std::as_bytes(std::span(values)));
    }
    file.Commit();
    EXPECT_EQ(MomentsReader(older).Read(0).latent, equal);
  }
}

TEST(LayerMoments, NaNAndDeadHeadsAreNamed) {
  LayerMoments m = SampleMoments(7, 40, 1);
  m.key[m.key.size() - 1] = std::nan("");
  EXPECT_TRUE(
      Says(ErrorOf<NumericalError>([&] { m.CheckFinite(); }), "layer 7, KV head 1: the key sums"));
  LayerMoments dead = SampleMoments(7, 40, 1);
  std::fill_n(dead.value.begin(), dead.v_head_dim * dead.v_head_dim, 0.0);
  EXPECT_THROW(dead.CheckFinite(), NumericalError);
  for (auto sums : {&LayerMoments::key_sum, &LayerMoments::diagonal_weight,
                    &LayerMoments::key_abs_max, &LayerMoments::value_abs_max}) {
    LayerMoments one = SampleMoments(7, 40, 1);
    (one.*sums).assign(static_cast<size_t>(one.num_kv_heads * one.head_dim), 0.0);
    EXPECT_NO_THROW(one.CheckFinite());
    (one.*sums).back() = std::nan("");
    EXPECT_THROW(one.CheckFinite(), NumericalError);
  }
}

TEST(Fit, FlattensImportanceOfEveryHeadAndOfTheirMean) {
  const LayerMoments m = SampleMoments(0, 200, 3);
  const LayerFit fit = FitLayer(m, {});
  for (const SideResult* side : {&fit.k, &fit.v, &fit.k_shared, &fit.v_shared}) {
    EXPECT_NEAR(side->importance_max_over_mean, 1, 1e-12);
    EXPECT_LE(side->orthogonality, 1e-12);
    EXPECT_LE(side->float32_orthogonality, 1e-6);
  }
  EXPECT_EQ(fit.k.num_rotations, 2);
  EXPECT_EQ(fit.k_shared.num_rotations, 1);
}

// Both sides of a latent layer are fitted to one joint covariance: the sum of the query and value
// covariances, each divided by its trace.
TEST(Fit, OfLatentsBothSidesAreOfTheJointCovariance) {
  LayerMoments m = SampleMoments(0, 200, 3, 8, 8);
  m.latent = true;
  const LayerFit fit = FitLayer(m, {});
  EXPECT_EQ(fit.k.rotation, fit.v.rotation);
  EXPECT_EQ(fit.k.eigenvalues, fit.v.eigenvalues);
  const LayerMoments joint = JointMoments(m, ValueTarget::kAttentionOutput);
  for (const int64_t head : {0, 1}) {
    const Matrix expected = JointCovariance(m.QueryCovariance(head),
                                            m.ValueCovariance(head, ValueTarget::kAttentionOutput));
    EXPECT_NEAR(expected.trace(), 2, 1e-12);
    EXPECT_LT((joint.QueryCovariance(head) - expected).norm(), 1e-12);
    for (const ValueTarget target : {ValueTarget::kAttentionOutput, ValueTarget::kDiagonal})
      EXPECT_LT((joint.ValueCovariance(head, target) - expected).norm(), 1e-12);
    const double sum = std::accumulate(fit.k.eigenvalues.begin() + head * 8,
                                       fit.k.eigenvalues.begin() + (head + 1) * 8, 0.0);
    EXPECT_NEAR(sum, 2, 1e-12);
  }
}

}  // namespace
}  // namespace oscar
