// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/by_domain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "export/validate/arm_share.h"
#include "export/validate/piece_sums.h"
#include "tests/export/validate/tiny_validation.h"

namespace oscar {
namespace {

constexpr int kSequences = 8;

// Returns the KL of a piece that all arms have in common. It differs between sequences a hundred
// times as much as arms differ.
double Common(int sequence, int piece) { return 5 + 4 * std::sin(7 * sequence + piece); }

Json MadeArm(const std::string& name, double more_first, double more_second) {
  PieceSums kl;
  for (int sequence = 0; sequence < kSequences; ++sequence) {
    const double more = sequence % 2 == 0 ? more_first : more_second;
    for (int piece = 0; piece < 16; ++piece)
      kl.Add(sequence, piece, 16, Common(sequence, piece) + more * (1 + 0.1 * std::sin(piece)));
  }
  return {{"name", name}, {"local", {{kPieces, kl.ToJson()}}}};
}

Json FinishedWith(const Json& domains) {
  Json validation = {{"settings", {{"bootstrap", 500}, {"seed", 0}}},
                     {"headline_arm", "ours"},
                     {kTextDomains, domains},
                     {"arms", {MadeArm("other", 0.04, -0.02), MadeArm("ours", 0, 0)}}};
  FinishArms(validation);
  return validation;
}

TEST(ByDomain, DifferencesArePaired) {
  const Json validation = FinishedWith(Json::array());
  const Json &other = validation.at("arms").at(0), &ours = validation.at("arms").at(1);
  EXPECT_FALSE(validation.contains(kTextDomains));
  EXPECT_FALSE(other.at("local").contains(kPieces));
  EXPECT_FALSE(ours.contains("behind"));
  EXPECT_FALSE(ours.contains("by_domain"));
  const Json& behind = other.at("behind").at("local");
  EXPECT_EQ(behind.at("rows"), kSequences * 16);
  EXPECT_NEAR(behind.at("mean").get<double>(), 0.01, 1e-3);
  // The interval's width follows from the spread of the differences over sequences (0.03), not from
  // the spread of the KL.
  const double width =
      behind.at("interval").at(1).get<double>() - behind.at("interval").at(0).get<double>();
  EXPECT_NEAR(width, 2 * 1.96 * 0.03 / std::sqrt(kSequences), 0.015);
}

TEST(ByDomain, EachDomainStandsByItself) {
  Json names = Json::array();
  for (int i = 0; i < kSequences; ++i) names.push_back(i % 2 == 0 ? "prose" : "code");
  const Json validation = FinishedWith(names);
  double rows = 0, sum = 0;
  for (const Json& domain : validation.at("arms").at(0).at("by_domain")) {
    const bool prose = domain.at("domain") == "prose";
    const Json& behind = domain.at("behind").at("local");
    EXPECT_NEAR(behind.at("mean").get<double>(), prose ? 0.04 : -0.02, 2e-3);
    EXPECT_EQ(behind.at("interval").at(prose ? 0 : 1).get<double>() > 0, prose);
    rows += domain.at("local").at("rows").get<double>();
    sum +=
        domain.at("local").at("rows").get<double>() * domain.at("local").at("mean").get<double>();
  }
  double all = 0;
  for (int s = 0; s < kSequences; ++s)
    for (int p = 0; p < 16; ++p)
      all += Common(s, p) + (s % 2 == 0 ? 0.04 : -0.02) * (1 + 0.1 * std::sin(p));
  EXPECT_EQ(rows, kSequences * 16);
  EXPECT_NEAR(sum, all, 1e-9);
  EXPECT_EQ(validation.at("arms").at(1).at("by_domain").at(0).at("domain"), "prose");
}

TEST(ByDomain, OfSharedArmsIsTheSame) {
  const auto measure = [](const ArmsOfRank& share) {
    const TinyModel model;
    ValidationOptions options = QuickOptions({"naive", "hadamard", "hadamard+windows"});
    options.share = share;
    return ValidateModel(model.checkpoint, model.spec, at::kCPU, at::kFloat,
                         {.texts = TinyTexts(1, 2, 512), .domains = {"prose", "code"}},
                         Artifact::Open(TinyArtifact()), options, {});
  };
  const Json alone = measure({});
  EXPECT_EQ(MergeArms({measure({0, 2}), measure({1, 2})}), alone);
  const Json& naive = ArmOf(alone, "naive");
  EXPECT_EQ(naive.at("by_domain").size(), 2u);
  EXPECT_NEAR(
      naive.at("behind").at("text").at("mean").get<double>(),
      naive.at("text").at("token_kl").at("mean").get<double>() -
          ArmOf(alone, "hadamard+windows").at("text").at("token_kl").at("mean").get<double>(),
      1e-9);
}

}  // namespace
}  // namespace oscar
