// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs whole validations of the bundled model. Tests that the reference has no error, that null
// controls behave as expected, and that two ways to compute a number agree.
#include "export/validate/validate.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "capture/dump/attention_dump.h"
#include "capture/model/run/device.h"
#include "export/artifact/attach_validation.h"
#include "export/report/report_consistency.h"
#include "linalg/base/error.h"
#include "tests/export/validate/tiny_validation.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

TEST(Validate, TheReferenceHasNoErrorAtAll) {
  const Json v = ValidateTiny(TinyArtifact(), QuickOptions({"naive"}));
  const Json& bf16 = ArmOf(v, "bf16");
  for (const char* mode : {"local", "end_to_end"}) {
    EXPECT_EQ(bf16.at(mode).at("kl").at("max"), 0) << mode;
    // A matrix product may round differently if the call has other rows.
    EXPECT_LT(bf16.at(mode).at("output_rel_error"), 1e-15) << mode;
  }
  EXPECT_EQ(bf16.at("text").at("ppl_ratio"), 1);
  EXPECT_EQ(bf16.at("text").at("top1_agreement"), 1);
  EXPECT_GT(Kl(v, "naive"), 0.1);
  EXPECT_GT(ArmOf(v, "naive").at("text").at("ppl_ratio").get<double>(), 1.5);
}

TEST(Validate, WithoutAQuantizerTheRotationChangesNothing) {
  const Json v = ValidateTiny(TinyArtifact(), QuickOptions({"quantizer_off"}));
  EXPECT_LT(ArmOf(v, "quantizer_off").at("local").at("kl").at("max").get<double>(), 1e-9);
  EXPECT_LT(ArmOf(v, "quantizer_off").at("local").at("output_rel_error").get<double>(), 1e-5);
  EXPECT_LT(Kl(v, "quantizer_off", "end_to_end"), 1e-5);
  EXPECT_NEAR(ArmOf(v, "quantizer_off").at("text").at("ppl_ratio").get<double>(), 1, 1e-3);
}

TEST(Validate, RowsThatSeeAQuantizedKeyAreMeasured) {
  ValidationOptions options = QuickOptions({"naive+windows"});
  options.rows_per_sequence = 0;
  options.methods.windows = {64, 400};
  const Json v = ValidateTiny(TinyArtifact(), options);
  for (const Json& arm : v.at("arms")) {
    EXPECT_EQ(arm.at("local").at("rows"), 2 * (768 - 464));
    EXPECT_EQ(arm.at("text").at("scored_tokens"), 2 * (768 - 464 - 1));
    EXPECT_EQ(arm.at("local").at("inside_windows").at("kl"), 0);
  }
  const Json &local = ArmOf(v, "naive+windows").at("local"), &beyond = local.at("beyond_windows");
  EXPECT_EQ(beyond.at("rows"), local.at("rows"));
  EXPECT_NEAR(beyond.at("kl").get<double>(), local.at("kl").at("mean").get<double>(), 1e-9);
  options.methods.windows = {64, 704};
  for (const bool local_only : {false, true}) {
    options.local_only = local_only;
    EXPECT_THROW(ValidateTiny(TinyArtifact(), options), InputError);
  }
}

TEST(Validate, MethodsRankAsTheyMust) {
  const Json v = ValidateTiny(
      TinyArtifact(), QuickOptions({"naive", "hadamard", "int4_hadamard", "hadamard+windows",
                                    "oscar_per_head+clip+windows", "hadamard+clip+windows"}));
  EXPECT_LT(Kl(v, "hadamard"), Kl(v, "naive"));
  EXPECT_LT(Kl(v, "int4_hadamard"), 0.1 * Kl(v, "hadamard"));
  EXPECT_LT(Kl(v, "hadamard+windows"), 0.5 * Kl(v, "hadamard"));
  EXPECT_LT(Kl(v, "oscar_per_head+clip+windows"), Kl(v, "hadamard+windows"));
  EXPECT_EQ(v.at("headline_arm"), "oscar_per_head+clip+windows");
  // End-to-end errors include those of the layers before.
  EXPECT_GT(Kl(v, "naive", "end_to_end"), Kl(v, "naive"));
}

// Queries that do not count are measured neither as rows nor by their next tokens. Even and odd
// queries together give all.
TEST(Validate, QueriesThatDoNotCountAreNotMeasured) {
  ValidationOptions options = QuickOptions({"hadamard"});
  options.rows_per_sequence = 0;
  options.methods.windows = {0, 0};
  const TinyModel model;
  const auto validate = [&](int odd) {  // -1: all queries
    CountedQueries counted;
    for (int sequence = 0; odd >= 0 && sequence < 2; ++sequence) {
      counted.emplace_back(256);
      for (size_t i = 0; i < 256; ++i) counted.back()[i] = static_cast<int>(i % 2) == odd;
    }
    return ValidateModel(model.checkpoint, model.spec, at::kCPU, at::kFloat,
                         {.texts = TinyTexts(1, 2, 256), .counted = counted, .needles = {}},
                         Artifact::Open(TinyArtifact()), options, {});
  };
  const Json all = validate(-1), even = validate(0), odd = validate(1);
  for (const char* mode : {"local", "end_to_end"}) {
    EXPECT_NEAR((Kl(even, "hadamard", mode) + Kl(odd, "hadamard", mode)) / 2,
                Kl(all, "hadamard", mode), 1e-9);
    EXPECT_NE(Kl(even, "hadamard", mode), Kl(odd, "hadamard", mode));
  }
  const auto scored = [](const Json& v) {
    return ArmOf(v, "hadamard").at("text").at("scored_tokens").get<int64_t>();
  };
  EXPECT_EQ(scored(even) + scored(odd), scored(all));
}

TEST(Validate, NullControlsBehave) {
  const Json v = ValidateTiny(
      TinyArtifact(), QuickOptions({"hadamard+clip", "random_rotation+clip", "wrong_layer+clip",
                                    "shuffled_tokens+clip", "naive+clip", "identity+clip"}));
  const double hadamard = Kl(v, "hadamard+clip");
  for (const char* control : {"random_rotation+clip", "wrong_layer+clip"})
    EXPECT_NEAR(Kl(v, control) / hadamard, 1, 0.25) << control;
  EXPECT_EQ(Kl(v, "identity+clip"), Kl(v, "naive+clip"));
  for (const Json& arm : v.at("arms"))
    EXPECT_EQ(arm.at("null_control").get<bool>(), arm.at("method") != "bf16" &&
                                                      arm.at("method") != "hadamard" &&
                                                      arm.at("method") != "naive");
}

TEST(Validate, Float32MeasuresTheSame) {
  ValidationOptions options = QuickOptions({"hadamard+windows"});
  options.local_only = true;
  const Json exact = ValidateTiny(TinyArtifact(), options);
  options.measure_in_float32 = true;
  const Json rough = ValidateTiny(TinyArtifact(), options);
  // Rows are quantized in the measuring type too, so a code at a rounding boundary may differ.
  EXPECT_NEAR(Kl(rough, "hadamard+windows") / Kl(exact, "hadamard+windows"), 1, 2e-2);
  EXPECT_FALSE(ArmOf(exact, "bf16").contains("text"));
}

// Compares a GPU with the CPU. Float32 results differ in the last bits, so codes at rounding
// boundaries differ too.
TEST(ValidateGpu, GivesTheNumbersOfTheCpu) {
  if (NumGpus() == 0) GTEST_SKIP() << "needs a GPU";
  const ValidationOptions options =
      QuickOptions({"hadamard", "oscar_per_head+clip+windows", "quantizer_off"});
  const Json cpu = ValidateTiny(TinyArtifact(), options);
  const Json gpu = ValidateTiny(TinyArtifact(), options, at::Device("cuda:0"));
  EXPECT_LT(Kl(gpu, "quantizer_off"), 1e-9);
  for (const char* arm : {"hadamard", "oscar_per_head+clip+windows"}) {
    EXPECT_NEAR(Kl(gpu, arm) / Kl(cpu, arm), 1, 0.01) << arm;
    EXPECT_NEAR(Kl(gpu, arm, "end_to_end") / Kl(cpu, arm, "end_to_end"), 1, 0.03) << arm;
    const auto perplexity = [&](const Json& v) {
      return ArmOf(v, arm).at("text").at("perplexity").get<double>();
    };
    EXPECT_NEAR(perplexity(gpu) / perplexity(cpu), 1, 0.02) << arm;
  }
}

TEST(Validate, RecallRunsOnItsArmsAlone) {
  const TinyModel& model = TinyModel();
  NeedleSample needle;
  needle.task = "single_1";
  needle.length = 200;
  // Any model predicts that a long run of equal tokens continues.
  needle.ids.assign(200, 5);
  needle.answers = {{.begin = 190, .end = 191, .depth = 50, .value = "1", .rivals = {77}}};
  const auto validate = [&](std::vector<std::string> needle_arms) {
    ValidationOptions options = QuickOptions({"naive", "hadamard"});
    options.needle_arms = std::move(needle_arms);
    return ValidateModel(model.checkpoint, model.spec, at::kCPU, at::kFloat,
                         {.texts = TinyTexts(1, 2, 400), .needles = {needle}},
                         Artifact::Open(TinyArtifact()), options, {});
  };
  const Json all = validate({"all"}), one = validate({"hadamard"});
  for (const char* arm : {"bf16", "naive", "hadamard"}) {
    EXPECT_TRUE(ArmOf(all, arm).contains("needle")) << arm;
    EXPECT_EQ(ArmOf(all, arm).at("end_to_end"), ArmOf(one, arm).at("end_to_end")) << arm;
    EXPECT_EQ(ArmOf(all, arm).at("text"), ArmOf(one, arm).at("text")) << arm;
  }
  EXPECT_FALSE(ArmOf(one, "naive").contains("needle"));
  for (const char* arm : {"bf16", "hadamard"})
    EXPECT_EQ(ArmOf(all, arm).at("needle"), ArmOf(one, arm).at("needle")) << arm;
}

TEST(Validate, TwoRunsGiveTheSameNumbers) {
  const ValidationOptions options = QuickOptions({"oscar_shared+clip+windows", "random_rotation"});
  EXPECT_EQ(ValidateTiny(TinyArtifact(), options), ValidateTiny(TinyArtifact(), options));
}

TEST(Validate, AnArmAloneIsTheArmAmongOthers) {
  const Json alone = ValidateTiny(TinyArtifact(), QuickOptions({"hadamard+clip+windows"}));
  const Json among = ValidateTiny(
      TinyArtifact(), QuickOptions({"hadamard+clip", "naive", "hadamard+clip+windows"}));
  EXPECT_EQ(ArmOf(alone, "hadamard+clip+windows"), ArmOf(among, "hadamard+clip+windows"));
}

TEST(Validate, EveryRowInAnyPiecesIsTheSameMean) {
  ValidationOptions options = QuickOptions({"hadamard"});
  options.local_only = true;
  options.rows_per_sequence = 0;
  options.methods.windows = {0, 0};
  const Json v = ValidateTiny(TinyArtifact(), options, at::kCPU, 400);
  const Json& local = ArmOf(v, "hadamard").at("local");
  EXPECT_EQ(local.at("rows"), 2 * 200);  // the second half of both texts
  double sum = 0, rows = 0;
  for (const Json& bucket : local.at("by_position")) {
    sum += bucket.at("kl").get<double>() * bucket.at("rows").get<double>();
    rows += bucket.at("rows").get<double>();
  }
  EXPECT_EQ(rows, 800);
  EXPECT_NEAR(sum / rows, local.at("kl_all").get<double>(), 1e-9);
  double heads = 0;
  for (const Json& layer : local.at("heads").at("kl")) {
    for (const Json& head : layer) heads += head.get<double>() / 8;
  }
  EXPECT_NEAR(heads, local.at("kl").at("mean").get<double>(), 1e-6);
}

TEST(Validate, DistancesTakeTheHeadlinesKlApart) {
  const Json v = ValidateTiny(TinyArtifact(), QuickOptions({"naive", "hadamard+windows"}));
  double mass = 0, kl = 0;
  int64_t next = 0;
  for (const Json& bucket : v.at("by_distance").at("buckets")) {
    EXPECT_EQ(bucket.at("from"), next);
    next = bucket.value("to", int64_t{0});
    mass += bucket.at("mass").get<double>();
    kl += bucket.at("kl").get<double>();
  }
  EXPECT_NEAR(mass, 1, 1e-9);
  EXPECT_NEAR(kl, Kl(v, v.at("headline_arm").get<std::string>()), 1e-6);
}

TEST(Validate, TheReportGoesIntoTheArtifactAndHoldsTogether) {
  const std::filesystem::path copy = TestScratch("attach") / "artifact";
  std::filesystem::copy(TinyArtifact(), copy);
  const Artifact before = Artifact::Open(copy);
  Json v =
      ValidateTiny(copy, QuickOptions({"naive", "oscar_per_head+clip+windows"}), at::kCPU, 896);
  v["rotations"] = before.manifest().at("files").at("rotations.safetensors");
  v["data"] = {{"name", "x"},
               {"digest", std::string(64, 'a')},
               {"tokens", 1792},
               {"texts", {{{"length", 896}, {"sequences", 2}}}},
               {"overlap", {{"fraction", 0.0}}}};
  v["program"] = {{"name", "oscar"}};
  v["machine"] = {{"device", "cpu"}};
  v["model"] = {{"id", "tiny"}, {"calibrated_on_it", true}};
  CheckNumbersAgree(ReportWithValidation(before, v), "the report");
  Json comparison = v;
  comparison["headline_arm"] = "naive";
  EXPECT_THROW(AttachReport(before, ReportWithValidation(before, comparison)), UsageError);
  EXPECT_FALSE(HasValidation(before));
  AttachReport(before, ReportWithValidation(before, v));
  const Artifact after = Artifact::Open(copy);  // checks the digests
  EXPECT_EQ(after.report().at("validation"), v);
  EXPECT_NE(after.identity(), before.identity());
  EXPECT_EQ(after.manifest().at("files").at("rotations.safetensors"),
            before.manifest().at("files").at("rotations.safetensors"));
  for (const auto& entry : std::filesystem::directory_iterator(copy.parent_path()))
    EXPECT_EQ(entry.path().filename(), "artifact") << "something was left behind";
}

TEST(Validate, AnotherModelsArtifactIsRefused) {
  const TinyModel model;
  ModelSpec other = model.spec;
  other.layers.pop_back();
  EXPECT_THROW(ValidateModel(model.checkpoint, other, at::kCPU, at::kFloat,
                             {.texts = TinyTexts(1, 1, 64), .needles = {}},
                             Artifact::Open(TinyArtifact()), QuickOptions({"naive"}), {}),
               InputError);
}

}  // namespace
}  // namespace oscar
