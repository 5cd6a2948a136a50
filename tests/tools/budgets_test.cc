// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the programs with a list of --bits. One run contains the choices of all single runs, each
// choice can be exported and measured, and a failed gate names the bits that would pass.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/artifact/artifact_reader.h"
#include "tests/support/run_program.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"
#include "tests/tools/small_runs.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

ProgramExit CalibrateBits(const fs::path& path, const ProgramStrings& flags) {
  return RunProgram(OSCAR_CALIBRATE, TinyRun(path) + flags);
}

// Returns the artifact that all tests use, with choices at four budgets. Up to 4 bits, scales are
// stored in a byte; at 5 bits, in 16 bits.
const fs::path& OfList() {
  static const fs::path artifact = [] {
    const fs::path path = TestScratch("budgets") / "artifact";
    const ProgramExit exit = CalibrateBits(path, {"--for", "sglang-oct", "--bits", "3,2.5,2,5"});
    EXPECT_TRUE(Exits(exit, 0));
    EXPECT_TRUE(Says(exit.out, "choices for the runtime 'any' at each budget"));
    return path;
  }();
  return artifact;
}

TEST(BudgetsProgram, AListHoldsWhatSingleRunsChoose) {
  const Artifact list = Artifact::Open(OfList());
  ASSERT_EQ(list.budgets().size(), 4u);
  EXPECT_EQ(list.Choice().at("for"), "sglang-oct");  // the headline choice is unchanged
  double last = 100;
  for (const double bits : {5.0, 3.0, 2.5, 2.0}) {
    SCOPED_TRACE(bits);
    const fs::path path = TestScratch("budgets_single") / "artifact";
    // In a list, 2 means the fewest bits: 2-bit codes, and a byte each for scale and zero per 64
    // values.
    ASSERT_TRUE(Exits(CalibrateBits(path, {"--for", "any", "--bits",
                                           fmt::format("{:g}", bits == 2 ? 2.25 : bits)}),
                      0));
    const Artifact single = Artifact::Open(path);
    for (const int id : single.layer_ids()) {
      const StoredChoice a = list.ReadChoice(id, list.ChoiceAt(bits));
      const StoredChoice b = single.ReadChoice(id, kHeadlineChoice);
      EXPECT_TRUE(a.k == b.k && a.v == b.v) << "layer " << id;
      EXPECT_EQ(a.k_codes.bits, b.k_codes.bits);
      EXPECT_EQ(a.v_codes.bits, b.v_codes.bits);
      EXPECT_EQ(a.k_codes.clip, b.k_codes.clip);
      EXPECT_EQ(a.v_codes.clip, b.v_codes.clip);
      EXPECT_EQ(a.k_codes.metadata, b.k_codes.metadata);
    }
    const Json serving = single.manifest().at("serving");
    for (const Json& row : list.manifest().at("serving").at("budgets")) {
      if (row.at("bits") != bits) continue;
      EXPECT_EQ(row.at("bits_stored"), serving.at("auto").at("bits_stored"));
      EXPECT_EQ(row.contains("bits_by"), serving.at("auto").contains("bits_by"));
      EXPECT_LT(row.at("bits_stored"), last);
      last = row.at("bits_stored");
    }
    fs::remove_all(path);
  }
}

TEST(BudgetsProgram, AnExportTakesOneOfThem) {
  const fs::path scratch = TestScratch("budgets_export");
  const auto write = [&](const char* to, const char* name, std::vector<std::string> flags) {
    flags.insert(flags.begin(), {OfList().string(), "--to", to, "-o", (scratch / name).string()});
    return RunProgram(OSCAR_EXPORT, flags);
  };
  const auto codes = [&](const char* name) {
    return ReadJsonFile((scratch / name / "manifest.json").string()).at("auto").at("layers");
  };
  ASSERT_EQ(write("oscar-torch", "three", {"--bits", "3"}).code, 0);
  ASSERT_EQ(write("oscar-torch", "plain", {}).code, 0);
  const Artifact list = Artifact::Open(OfList());
  const Json &three = list.Choice(list.ChoiceAt(3)).at("layers"),
             &any = list.Choice("any").at("layers");
  for (size_t i = 0; i < three.size(); ++i) {
    for (const char* side : {"k_bits", "v_bits"}) {
      EXPECT_EQ(codes("three").at(i).at(side), three.at(i).at(side));
      EXPECT_EQ(codes("plain").at(i).at(side), any.at(i).at(side));  // the default is `any`
    }
    EXPECT_EQ(codes("plain").at(i).at("quant_group_size"), 16);
  }
  EXPECT_TRUE(Exits(write("oscar-torch", "x", {"--bits", "3.5"}), 3,
                    "no choice at 3.5 bits, but choices at 3, 2.5, 2, 5"));
  const ProgramExit width = write("sglang", "x", {"--bits", "3"});
  EXPECT_TRUE(Exits(width, 2));
  EXPECT_TRUE(Says(
      width.err,
      "sglang stores 2 bits everywhere; --bits works with --to oscar-torch, modelopt, trtllm"));
  EXPECT_FALSE(fs::exists(scratch / "x"));
}

TEST(BudgetsProgram, AreMeasuredAndAFailedGateIsToldWhatPasses) {
  const fs::path output = TestScratch("budgets_validate") / "report";
  const auto validate = [&](const char* gate, std::vector<std::string> flags = {}) {
    return RunProgram(
        OSCAR_VALIDATE,
        Words("% --model % --device cpu --rows 16 --bootstrap 20 --sequences 1 --length 1024 "
              "--self-generate 0 --needle-samples 0 -o % --gate %",
              {OfList().string(), TinyModel(), output.string(), gate}) +
            flags);
  };
  const ProgramExit failed = validate("top1_agreement>=0.93");
  ASSERT_TRUE(Exits(failed, 1));
  const Json report = ReadJsonFile((output / "report.json").string());
  const Json& validation = report.at("validation");
  EXPECT_GT(validation.at("capacity").at("weight_bytes"), 0);
  double last_bits = 0, last_kl = 1e9, fewest = 0;
  size_t measured = 0;
  for (const char* name : {"any@2+windows", "any@2.5+windows", "any@3+windows", "any@5+windows"}) {
    for (const Json& arm : validation.at("arms")) {
      if (arm.at("name") != name) continue;
      ++measured;
      const Json& capacity = arm.at("capacity");
      const double bits = capacity.at("held").at(1).at("bits");
      const double kl = arm.at("text").at("token_kl").at("mean");
      EXPECT_GT(bits, last_bits) << name;
      EXPECT_LT(kl, last_kl) << name;
      EXPECT_EQ(capacity.at("passes_gate"), arm.at("text").at("top1_agreement") >= 0.93);
      if (fewest == 0 && capacity.at("passes_gate")) fewest = capacity.at("budget");
      // 32768 tokens, 4 layers, 2 KV heads, keys and values, head_dim 64.
      EXPECT_NEAR(capacity.at("held").at(1).at("bytes").get<double>(),
                  bits / 8 * 32768 * 4 * 2 * 2 * 64, 1);
      last_bits = bits;
      last_kl = kl;
    }
  }
  EXPECT_EQ(measured, 4u);
  ASSERT_GT(fewest, 2);
  EXPECT_TRUE(Says(failed.out, fmt::format("{:g} bits would pass, the fewest among", fewest)));
  EXPECT_TRUE(Says(failed.out, "requests of 32768 on 80 GB"));
  const std::string page = ReadText(output / "report.html");
  EXPECT_TRUE(Says(page, "id=\"bits\""));
  EXPECT_TRUE(Says(page, "chosen at 2.5 bits"));
  EXPECT_TRUE(Says(page, "llama.cpp"));
  fs::remove_all(output);
  const ProgramExit plan = validate("kl<=1", {"--dry-run"});
  EXPECT_TRUE(Exits(plan, 0));
  for (const char* bits : {"2", "2.5", "3", "5"})
    EXPECT_TRUE(Says(plan.out, fmt::format("choice of oscar-calibrate at {} bits", bits)));
  const ProgramExit without = validate("kl<=0", {"--arms", "naive"});
  EXPECT_EQ(without.code, 1);
  for (const char* advice : {"measured budgets", "size at each number of bits"})
    EXPECT_EQ(without.out.find(advice), std::string::npos) << advice;
  fs::remove_all(output);
  EXPECT_EQ(validate("kl<=0", {"--arms", "any@3+windows"}).code, 1);
  fs::remove_all(output);
  EXPECT_TRUE(Exits(validate("kl<=1", {"--arms", "any@7+windows"}), 2));
}

TEST(BudgetsProgram, MergedArtifactsKeepTheirBits) {
  const fs::path merged = TestScratch("budgets_merged") / "artifact";
  ASSERT_TRUE(
      Exits(RunProgram(OSCAR_CALIBRATE, {"--merge", OfList().string(), "-o", merged.string()}), 0));
  const Artifact artifact = Artifact::Open(merged), list = Artifact::Open(OfList());
  ASSERT_EQ(artifact.budgets(), list.budgets());
  for (const auto& [bits, name] : list.budgets()) {
    for (const int id : list.layer_ids()) {
      EXPECT_EQ(artifact.ReadChoice(id, name).k_codes.bits, list.ReadChoice(id, name).k_codes.bits);
      EXPECT_EQ(artifact.ReadChoice(id, name).v_codes.bits, list.ReadChoice(id, name).v_codes.bits);
    }
  }
}

TEST(BudgetsProgram, ListsThatMakeNoSenseAreRefused) {
  const fs::path path = TestScratch("budgets_refused") / "artifact";
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused = {
      {{"--bits", "3,2.5,3"}, "--bits: 3 is given twice"},
      {{"--bits", "2.5,9"}, "expected at most 8"},
      {{"--bits", "2.5,0"}, "0 cannot be part of a list"},
      {{"--bits", "2.5,1"}, "found 1 in a list, expected 2 to 8"},
      {{"--bits", "2.1,3"},
       "2.1 bits per element were requested, but 2-bit codes with their scales and zeros take "
       "2.25"},
      {{"--bits", "2,2.25,2.5,2.75,3,3.25,3.5,3.75,4"}, "9 budgets were given, expected at most 8"},
      {{"--bits", "2,x"}, "expected a list of values, each a number"},
      {{"--bits", "2.5,3", "--windows", "auto"}, "give --bits one number"},
      {{"--bits", "2.5,3", "--refine", "5"}, "give --bits one number"},
      {{"--bits", "5,6", "--for", "modelopt"}, "--for modelopt takes one budget"},
      {{"--bits", "2.5,3", "--no-auto"}, "--bits has no effect with --no-auto"}};
  for (const auto& [flags, why] : refused) {
    EXPECT_TRUE(Exits(CalibrateBits(path, flags), 2, why));
    EXPECT_FALSE(fs::exists(path));
  }
}

}  // namespace
}  // namespace oscar
