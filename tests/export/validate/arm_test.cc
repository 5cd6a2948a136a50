// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0

#include "export/validate/arm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "export/report/of_record.h"
#include "export/simulate/runtime_cache.h"
#include "linalg/base/error.h"
#include "tests/export/validate/tiny_artifact.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

struct Tiny {
  TinyModel model;
  Artifact artifact = Artifact::Open(TinyArtifact());
  MethodContext context{artifact, model.spec.layers, {}};
};

TEST(Arm, ItsNameIsItsMethodAndModifiersInOneOrder) {
  const Arm arm = ParseArm("hadamard+windows+clip");
  EXPECT_EQ(arm.name, "hadamard+clip+windows");
  EXPECT_EQ(arm.method->name, "hadamard");
  EXPECT_TRUE(arm.options.clip && arm.options.windows);
  EXPECT_FALSE(ParseArm("naive").options.clip);
}

TEST(Arm, ItMayNameItsClipRatio) {
  const Arm arm = ParseArm("oscar_per_head+windows+clip=.880");
  EXPECT_EQ(arm.name, "oscar_per_head+clip=0.88+windows");
  EXPECT_TRUE(arm.options.clip);
  EXPECT_EQ(arm.options.clip_ratio, 0.88);
  EXPECT_EQ(ParseArm(arm.name).options, arm.options);
}

TEST(Arm, NonsenseIsRefused) {
  for (const char* name : {"", "hadamart", "naive+", "naive+clip+clip", "naive+sink", "bf16+clip",
                           "+clip", "naive clip", "naive+clip=", "naive+clip=0", "naive+clip=1.5",
                           "naive+clip=.9x", "naive+windows=3"})
    EXPECT_THROW(ParseArm(name), UsageError) << name;
}

TEST(Arm, TheReferenceComesFirstAndNothingTwice) {
  const Tiny tiny;
  const std::vector<Arm> arms = ParseArms({"naive", "bf16", "naive"}, tiny.context);
  ASSERT_EQ(arms.size(), 2U);
  EXPECT_EQ(arms[0].name, "bf16");
  EXPECT_THROW(ParseArms({"bf16"}, tiny.context), UsageError);
  EXPECT_EQ(ParseArms({}, tiny.context).size(), ParseArms({"default"}, tiny.context).size());
}

std::vector<std::string> NamesOf(const std::vector<Arm>& arms) {
  std::vector<std::string> names;
  for (const Arm& arm : arms) names.push_back(arm.name);
  return names;
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

TEST(Arm, AllIsEveryMethodPlainAndWithWhatItTakes) {
  const Tiny tiny;
  const std::vector<std::string> names = NamesOf(ParseArms({"all"}, tiny.context));
  for (const CacheMethod& method : CacheMethods()) {
    const std::string name(method.name);
    if (method.available && !method.available(tiny.context)) continue;
    const bool clip = method.quantizes && method.takes_clip,
               windows = method.quantizes && method.takes_windows;
    EXPECT_TRUE(Has(names, name)) << name;
    EXPECT_EQ(Has(names, name + "+windows"), windows) << name;
    EXPECT_EQ(Has(names, name + "+clip+windows"), clip && windows) << name;
    EXPECT_EQ(Has(names, name + "+clip"), clip && (method.null_control || !windows)) << name;
  }
  EXPECT_FALSE(Has(names, "naive+clip"));
  EXPECT_TRUE(Has(names, "identity+clip"));
}

// The arms are the exact model, Hadamard, OSCAR as published, the judged arm and a random rotation.
TEST(Arm, QuickIsWhatAVerdictIsMadeOf) {
  const Tiny tiny;
  const std::vector<Arm> arms = ParseArms({"quick"}, tiny.context);
  EXPECT_EQ(NamesOf(arms), (std::vector<std::string>{
                               "bf16", "hadamard+clip+windows", "oscar_shared+clip+windows",
                               "oscar_per_head+clip+windows", "random_rotation+clip+windows"}));
  EXPECT_EQ(HeadlineArm(arms, OwnArms(tiny.artifact.report())).name, "oscar_per_head+clip+windows");
  EXPECT_TRUE(IsArmList("quick"));
}

TEST(Arm, PublishedIsEveryMethodOnceAsItsAuthorsUseIt) {
  const Tiny tiny;
  const std::vector<Arm> arms = ParseArms({"published"}, tiny.context);
  size_t methods = 0;
  for (const CacheMethod& method : CacheMethods()) {
    methods += !method.null_control && (!method.available || method.available(tiny.context));
    const Arm arm = PublishedArm(method.name);
    EXPECT_EQ(ParseArm(arm.name).options, arm.options) << "takes what it says its authors use";
  }
  EXPECT_EQ(arms.size(), methods);
  EXPECT_TRUE(Has(NamesOf(arms), "oscar_per_head+clip+windows"));
  EXPECT_TRUE(Has(NamesOf(arms), "hadamard"));
}

// A dump has no calibration text to fit a method to.
TEST(Arm, MethodsThatNeedTextAreLeftOutOrRefusedWhereThereIsNone) {
  const Tiny tiny;
  for (const char* list : {"default", "published", "all"}) {
    const std::vector<Arm> arms = ParseArms({list}, tiny.context, /*has_rows=*/false);
    EXPECT_FALSE(NeedsRows(arms)) << list;
  }
  for (const CacheMethod& method : CacheMethods()) {
    if (!method.needs_rows) continue;
    const std::string name(method.name);
    EXPECT_TRUE(NeedsRows(ParseArms({name}, tiny.context)));
    EXPECT_TRUE(Says(
        ErrorOf<UsageError>([&] { ParseArms({name}, tiny.context, /*has_rows=*/false); }), name));
  }
}

TEST(Arm, WhatIsShippedForARuntimeIsTheArtifactsOwn) {
  for (const RuntimeSpec& runtime : Runtimes()) {
    if (!runtime.chosen) continue;
    const Json report = {{"serving", {{"auto", {{"for", runtime.runtime}}}}}};
    EXPECT_EQ(OwnArms(report).front(), PublishedArm(runtime.method).name);
    EXPECT_EQ(OwnArms(report).back(), PublishedArm("auto").name);
  }
}

TEST(Arm, OtherMethodsClipAsAValidationOfRecordDoes) {
  EXPECT_EQ(MethodContext::Options().k_clip, kOthersKClip);
  EXPECT_EQ(MethodContext::Options().v_clip, kOthersVClip);
}

TEST(Arm, TheHeadlineIsTheArtifactsOwnChoice) {
  const Tiny tiny;
  const auto headline = [&](const std::vector<std::string>& arms,
                            const std::vector<std::string>& own, const char* asked = "") {
    return HeadlineArm(ParseArms(arms, tiny.context), own, asked).name;
  };
  const std::vector<std::string> kOwn = {"runtime_sglang_auto", "oscar_shared+clip+windows"};
  EXPECT_EQ(headline({"default"}, kOwn), kOwn[1]);
  EXPECT_EQ(headline({"default"}, kOwn, "naive"), "naive");
  EXPECT_EQ(headline({"default"}, kOwn, "hadamard+windows+clip"), "hadamard+clip+windows");
  // Lists without the artifact's own arms are comparisons.
  EXPECT_EQ(headline({"oscar_per_head+windows", "naive"}, kOwn), "oscar_per_head+windows");
  EXPECT_EQ(headline({"naive", "hadamard"}, kOwn), "hadamard");
  EXPECT_THROW(headline({"naive", "hadamard"}, kOwn, "naive+windows"), UsageError);
}

std::vector<std::string> Recall(const std::vector<std::string>& named,
                                const std::vector<std::string>& asked, std::string_view headline) {
  const Tiny tiny;
  const std::vector<Arm> arms = ParseArms(named, tiny.context);
  std::vector<std::string> names;
  for (const size_t i : RecallArms(arms, headline, asked, named)) names.push_back(arms[i].name);
  return names;
}

// Recall tasks take most of a validation's tokens, so by default they run only on the arms that
// readers compare.
TEST(Arm, RecallIsMeasuredOnTheArmsThatAReaderCompares) {
  using Names = std::vector<std::string>;
  const std::string headline = "oscar_per_head+clip+windows";
  const Names four = {"bf16", "naive", "hadamard+clip+windows", headline};
  EXPECT_EQ(Recall({}, {}, headline), four);
  EXPECT_EQ(Recall({"default"}, {}, headline), four);
  // Recall is measured on an arm that is requested by name, but not on every arm of a list.
  EXPECT_EQ(Recall({"default", "int4_hadamard"}, {}, headline),
            (Names{"bf16", "naive", "hadamard+clip+windows", "int4_hadamard", headline}));
  EXPECT_EQ(Recall({"naive+windows", headline}, {}, headline),
            (Names{"bf16", "naive+windows", headline}));
  EXPECT_EQ(Recall({"default"}, {"hadamard+windows"}, headline),
            (Names{"bf16", "hadamard+windows", headline}));
  EXPECT_EQ(Recall({}, {"all"}, headline).size(), ParseArms({}, Tiny().context).size());
  EXPECT_THROW(Recall({"naive"}, {"hadamard"}, "naive"), UsageError);
}

}  // namespace
}  // namespace oscar
