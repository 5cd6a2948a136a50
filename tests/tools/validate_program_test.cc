// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Longer than 400 lines because it tests one program with many flags.
//
// Runs oscar-validate on the bundled model: what it refuses, the exit code of its gate, where it
// writes the report, and that a dump suffices for local measurements.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <regex>
#include <thread>
#include <vector>

#include "capture/dump/dump_format.h"
#include "capture/dump/dump_reader.h"
#include "capture/dump/hdf5_file.h"
#include "capture/files/strict_json.h"
#include "export/artifact/artifact_reader.h"
#include "tests/support/run_program.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"
#include "tests/tools/small_runs.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Returns the artifact that all tests share, calibrated on the first 3000 tokens of the built-in
// text.
const fs::path& Calibrated() {
  static const fs::path artifact = [] {
    const fs::path path = TestScratch("validate_program") / "artifact";
    const ProgramExit exit =
        RunProgram(OSCAR_CALIBRATE, TinyRun(path) + ProgramStrings{"--no-auto", "-q"});
    EXPECT_TRUE(Exits(exit, 0));
    EXPECT_EQ(exit.all(), path.string() + "\n");  // --quiet prints only the path
    return path;
  }();
  return artifact;
}

fs::path Copy(const std::string& name) {
  const fs::path path = TestScratch("validate_" + name) / "artifact";
  fs::copy(Calibrated(), path);
  return path;
}

ProgramExit Validate(const fs::path& artifact, const ProgramStrings& more,
                     const ProgramStrings& environment = {}) {
  return RunProgram(
      OSCAR_VALIDATE,
      ProgramStrings{artifact.string(), "--device", "cpu", "--rows", "16", "--bootstrap", "20"} +
          more,
      environment);
}

// Returns an environment that kills a validation after it has drawn its texts, before it measures.
ProgramStrings KilledAfterDrawing(const fs::path& output) {
  return {"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_DIR=" + output.parent_path().string(),
          "OSCAR_FAULT_MATCH=fingerprint.json", "OSCAR_FAULT_KILL_AT=1"};
}

ProgramStrings Quick(ProgramStrings more = {}) {
  more.insert(more.begin(),
              {"--model", TinyModel(), "--sequences", "1", "--length", "512", "--arms", "hadamard",
               "oscar_per_head+clip+windows", "--needle-lengths", "512", "--needle-tasks",
               "single_1", "--self-generate", "0"});
  return more;
}

void ExpectSameChoices(const Artifact& artifact, const Artifact& expected) {
  ASSERT_EQ(artifact.choice_names(), expected.choice_names());
  for (const std::string& name : expected.choice_names()) {
    for (const int id : expected.layer_ids()) {
      const StoredChoice a = artifact.ReadChoice(id, name), b = expected.ReadChoice(id, name);
      EXPECT_TRUE(a.k == b.k && a.v == b.v) << name << ", layer " << id;
      EXPECT_EQ(a.k_codes.clip, b.k_codes.clip);
      EXPECT_EQ(a.v_codes.clip, b.v_codes.clip);
      EXPECT_EQ(a.k_codes.bits, b.k_codes.bits);
    }
  }
}

// Returns arguments with enough text for a validation of record.
ProgramStrings OfRecord(ProgramStrings more = {}) {
  more.insert(more.begin(),
              {"--model", TinyModel(), "--sequences", "2", "--length", "1024", "--arms", "hadamard",
               "oscar_per_head+clip+windows", "--needle-lengths", "512", "--needle-tasks",
               "single_1", "--self-generate", "1"});
  return more;
}

// The validation of record is stored in the artifact. Only --replace replaces it, and a comparison
// never does.
TEST(ValidateProgram, AComparisonNeverReplacesTheValidationOfRecord) {
  const fs::path artifact = Copy("record");
  ASSERT_EQ(Validate(artifact, OfRecord({"--gate", "kl<=10"})).code, 0);
  const std::string record = ReadText(artifact / "report.json");
  const auto beside = [&](const ProgramStrings& more, const char* place, const char* why) {
    const ProgramExit exit = Validate(artifact, more);
    ASSERT_TRUE(Exits(exit, 0));
    const fs::path path = artifact.string() + place;
    EXPECT_TRUE(exit.out.ends_with((path / "report.html").string() + "\n")) << exit.out;
    EXPECT_TRUE(Says(exit.err, why));
    EXPECT_TRUE(ReadJsonFile(path / "report.json").contains("validation"));
    EXPECT_EQ(ReadText(artifact / "report.json"), record);
  };
  beside({"--model", TinyModel(), "--sequences", "3", "--length", "512", "--needle-samples", "0",
          "--self-generate", "0", "--methods", "kivi2"},
         "-comparison", "its headline is kivi2");
  beside(Quick(), "-comparison-2", "scores 191 tokens");
  beside(OfRecord({"--recent-tokens", "128"}), "-comparison-3", "keeps 64 first and 128 recent");
  beside(OfRecord(), "-comparison-4", "--replace replaces it");
  EXPECT_TRUE(Exits(Validate(artifact, Quick({"--replace"})), 2));
  EXPECT_EQ(Validate(artifact, OfRecord({"--replace", "-o", artifact.string() + "-x"})).code, 2);
  EXPECT_EQ(ReadText(artifact / "report.json"), record);
  ASSERT_TRUE(Exits(Validate(artifact, OfRecord({"--replace", "--gate", "kl<=9"})), 0));
  EXPECT_EQ(Artifact::Open(artifact).report().at("validation").at("gate").at("text"), "kl<=9");
}

// The kept state of a validation and the output of a merge are compared with the free disk space.
TEST(ValidateProgram, ASmallDiskIsSaidFirst) {
  const fs::path artifact = Copy("disk");
  const ProgramStrings full = {"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_FREE=100000"};
  ProgramStrings arguments = {artifact, "--device", "cpu", "-o", artifact.parent_path() / "report"};
  for (const std::string& argument : Quick()) arguments.push_back(argument);
  const ProgramExit validated = RunProgram(OSCAR_VALIDATE, arguments, full);
  const ProgramExit merged = RunProgram(
      OSCAR_CALIBRATE, {"--merge", artifact, "-o", artifact.parent_path() / "merged"}, full);
  for (const ProgramExit* exit : {&validated, &merged}) {
    EXPECT_EQ(exit->code, 4) << exit->all();
    EXPECT_TRUE(Says(exit->err, "of disk space, but only 0.1 MB are free"));
  }
  EXPECT_FALSE(fs::exists(artifact.parent_path() / "report.validation.job"));
  EXPECT_FALSE(fs::exists(artifact.parent_path() / "merged"));
}

// Text and recall are measured on text that the model generated. A resumed run does not generate it
// again.
TEST(ValidateProgram, TheModelsOwnWordsSayWhatTheCacheDoes) {
  const fs::path artifact = Copy("own"), output = artifact.parent_path() / "report";
  const auto run = [&](const ProgramStrings& more, const ProgramStrings& environment = {}) {
    return Validate(
        artifact,
        Words("--model % --sequences 1 --length 512 --arms naive --self-generate 6 --needle-tasks "
              "passages -o % --self-length 768 --headline-arm naive",
              {TinyModel(), output}) +
            more,
        environment);
  };
  const ProgramExit killed = run({}, KilledAfterDrawing(output));
  EXPECT_EQ(killed.signal, SIGKILL) << killed.all();
  EXPECT_FALSE(Says(killed.err, "in the run that is resumed"));
  EXPECT_TRUE(Exits(run({"--seed", "1"}), 3, "seed"));
  ASSERT_TRUE(Exits(run({}), 0, "in the run that is resumed"));
  EXPECT_FALSE(fs::exists(output.string() + ".validation.job"));

  const Json validation = ReadJsonFile(output / "report.json").at("validation");
  EXPECT_EQ(validation.at("own_words").at("sequences"), 6);
  const Json& verdict = validation.at("verdict_text");
  EXPECT_EQ(verdict.at("member"),
            verdict.at("perplexity_ratio").get<double>() > 3 ? "own_words" : "text");
  const Json &exact = validation.at("arms").at(0), &naive = validation.at("arms").at(1);
  // Scores the tokens predicted from positions beyond the 320 that the windows keep exact.
  EXPECT_EQ(naive.at("own_words").at("scored_tokens"), 6 * (768 - 320 - 1));
  // On text drawn from the model, the log of the perplexity ratio equals the token KL in
  // expectation; on other text it does not.
  const auto excess = [&](const char* text) {
    return std::log(naive.at(text).at("ppl_ratio").get<double>()) /
           naive.at(text).at("token_kl").at("mean").get<double>();
  };
  EXPECT_NEAR(excess("own_words"), 1, 0.1);
  EXPECT_GE(exact.at("needle").at("accuracy"), 0.9);
  EXPECT_LT(naive.at("needle").at("accuracy"), 0.75);
}

// This model cannot make exact tool calls, so exact match is reported as not measured. The KL of
// the arguments still ranks caches.
TEST(ValidateProgram, ToolCallsAreMeasuredOnTheirArguments) {
  const fs::path output = Copy("tool_calls").parent_path() / "report";
  const ProgramExit exit = Validate(
      Calibrated(), Words("--model % --sequences 1 --length 512 --arms naive int4_hadamard+windows "
                          "--self-generate 0 --needle-samples 0 --tool-calls 1 --tool-call-lengths "
                          "3000 --headline-arm naive --gate tool_call>=0.9,tool_call_kl<=9 -o %",
                          {TinyModel(), output}));
  EXPECT_TRUE(Exits(exit, 1));
  EXPECT_TRUE(Says(exit.out, "exact match of tool calls cannot be measured"));
  EXPECT_TRUE(Says(exit.out, "tool_call >= 0.9 for naive: FAILED (not measured"));
  EXPECT_TRUE(Says(exit.out, "tool_call_kl <= 9 for naive: passed"));
  const Json validation = ReadJsonFile(output / "report.json").at("validation");
  EXPECT_EQ(validation.at("tool_call").at("tasks").size(), 4U);
  const auto high_and_low = [&](size_t arm) {
    return validation.at("arms").at(arm).at("tool_call").at("token_kl").at("interval");
  };
  EXPECT_EQ(high_and_low(0), Json({0.0, 0.0}));
  EXPECT_GT(high_and_low(2).at(0), 0.0);
  EXPECT_GT(high_and_low(1).at(0), high_and_low(2).at(1));
}

// The exact model reproduces the continuation that it drew. Arms with fewer bits diverge sooner.
TEST(ValidateProgram, ContinuationsSayWhereAnArmDeparts) {
  const fs::path output = Copy("reasoning").parent_path() / "report";
  const auto run = [&](const ProgramStrings& more, const ProgramStrings& environment = {}) {
    return Validate(Calibrated(),
                    Words("--model % --sequences 2 --length 1024 --arms naive "
                          "int4_hadamard+windows --self-generate "
                          "0 --needle-samples 0 --reasoning-prefix 256 --reasoning-length 48 "
                          "--headline-arm naive -o "
                          "%",
                          {TinyModel(), output}) +
                        more,
                    environment);
  };
  // After their opening tokens, the texts have room for eight prefixes.
  EXPECT_TRUE(Exits(run({"--reasoning", "9"}), 2, "the texts have 8 prefixes of 256 tokens"));
  const ProgramStrings eight = {"--reasoning", "8", "--gate", "divergence>=40,reasoning_kl<=9"};
  EXPECT_EQ(run(eight, KilledAfterDrawing(output)).signal, SIGKILL);
  const ProgramExit exit = run(eight);
  EXPECT_TRUE(Exits(exit, 1));
  EXPECT_TRUE(Says(exit.out, "divergence >= 40 for naive: FAILED"));
  EXPECT_TRUE(Says(exit.out, "reasoning_kl <= 9 for naive: passed"));
  EXPECT_FALSE(Says(exit.err, "self-generation")) << "drawn twice";
  const Json arms = ReadJsonFile(output / "report.json").at("validation").at("arms");
  const auto reasoning = [&](size_t arm) { return arms.at(arm).at("reasoning"); };
  EXPECT_EQ(reasoning(0).at("tokens_until"), 48);
  EXPECT_EQ(reasoning(0).at("tokens"), 8 * 48);
  EXPECT_LT(reasoning(1).at("tokens_until_interval").at(1),
            reasoning(2).at("tokens_until_interval").at(0));
  EXPECT_GT(reasoning(1).at("token_kl").at("interval").at(0),
            reasoning(2).at("token_kl").at("interval").at(1));
}

TEST(ValidateProgram, AFailedGateIsExitCode1AndTheReportIsThere) {
  const fs::path artifact = Copy("gate");
  const fs::path output = artifact.parent_path() / "report";
  const std::string before = ReadJsonFile((artifact / "manifest.json").string()).dump();
  const ProgramExit exit =
      Validate(artifact, Quick({"--gate", "top1_agreement>1", "-o", output.string(), "--json"}));
  EXPECT_TRUE(Exits(exit, 1));
  const Json said = Json::parse(exit.out);
  EXPECT_EQ(said.at("exit_code"), 1);
  EXPECT_EQ(said.at("path"), (output / "report.html").string());
  EXPECT_EQ(said.at("gate").at("passed"), false);
  EXPECT_EQ(said.at("arms").at(0).at("name"), "bf16");
  EXPECT_EQ(
      ReadJsonFile((output / "report.json").string()).at("validation").at("gate").at("passed"),
      false);
  EXPECT_EQ(ReadJsonFile((artifact / "manifest.json").string()).dump(), before);
}

// The default scope takes minutes on a CPU: five arms, little text, no recall. Screen, report and
// page say so and name the options that add what is missing. Options that are given take
// precedence.
TEST(ValidateProgram, AQuickScopeSaysWhatItLeavesOut) {
  const fs::path output = Copy("scope").parent_path() / "report";
  const auto run = [&](const ProgramStrings& more) {
    fs::remove_all(output);
    const ProgramExit exit = RunProgram(
        OSCAR_VALIDATE, ProgramStrings{Calibrated(), "--model", TinyModel(), "--device", "cpu",
                                       "--length", "512", "--bootstrap", "20", "-o", output} +
                            more);
    EXPECT_TRUE(Exits(exit, 0));
    return exit;
  };
  const auto validation = [&] { return ReadJsonFile(output / "report.json").at("validation"); };
  const ProgramExit quick = run({});
  const Json settings = validation().at("settings");
  EXPECT_EQ(settings.at("arms"),
            Json({"bf16", "hadamard+clip+windows", "oscar_shared+clip+windows",
                  "oscar_per_head+clip+windows", "random_rotation+clip+windows"}));
  EXPECT_EQ(settings.at("scope"), "quick");
  EXPECT_EQ(settings.at("configuration").at("scope"), "quick");
  EXPECT_EQ(settings.at("rows_per_sequence"), 128);
  EXPECT_EQ(settings.at("measure_dtype"), "f32");
  EXPECT_EQ(validation().at("data").at("tokens"), 4 * 512);
  EXPECT_FALSE(validation().contains("recall") || validation().contains("own_words"));
  const std::string left_out = settings.at("left_out");
  for (const char* option : {"--needle-samples 1", "--self-generate 4", "--arms default",
                             "--sequences 6 --length 4096", "--rows 320", "--measure f64"})
    EXPECT_TRUE(Says(left_out, option));
  EXPECT_TRUE(Says(quick.err, left_out + "\n"));
  EXPECT_TRUE(Says(quick.out, left_out + "\n"));
  EXPECT_TRUE(Says(ReadText(output / "report.html"), left_out.substr(0, left_out.find(','))));

  run({"--sequences", "1", "--rows", "16", "--measure", "f64", "--arms", "naive", "--needle-tasks",
       "passages", "--self-length", "640"});
  const Json given = validation().at("settings");
  EXPECT_EQ(given.at("arms"), Json({"bf16", "naive"}));
  EXPECT_EQ(given.at("rows_per_sequence"), 16);
  EXPECT_EQ(given.at("measure_dtype"), "f64");
  EXPECT_FALSE(given.contains("left_out")) << given.at("left_out");
  EXPECT_EQ(validation().at("own_words").at("sequences"), 4);
  EXPECT_EQ(validation().at("recall").at("tasks").at(0).at("task"), "passages");
}

// The expected time of each part is a range. A run first prints the same plan as a dry run.
TEST(ValidateProgram, ADryRunSaysHowLongEachPartTakes) {
  const ProgramExit plan =
      Validate(Calibrated(), {"--model", TinyModel(), "--dry-run", "--self-generate", "1",
                              "--self-length", "400", "--needle-lengths", "1024"});
  ASSERT_TRUE(Exits(plan, 0));
  const std::string range = "([0-9]+( s)? to [0-9]+ (s|min)|under 1 s)";
  const std::regex time("expected time +" + range + ": text " + range + ", own words " + range +
                        ", recall " + range);
  EXPECT_TRUE(std::regex_search(plan.out, time)) << plan.out;
  const ProgramExit quick = Validate(
      Calibrated(), {"--model", TinyModel(), "--dry-run", "--sequences", "1", "--length", "512"});
  EXPECT_TRUE(Says(quick.out, "own words none, recall none"));
}

// A stop takes effect even within a layer, and the printed command resumes from the kept state.
TEST(ValidateProgram, AStopIsObeyedWithinTwoSeconds) {
  const fs::path scratch = Copy("stop").parent_path(), output = scratch / "report";
  const ProgramStrings arguments = Words(
      "% --model % --device cpu --sequences 2 --length 3072 --bootstrap 20 --rows 0 --measure f64 "
      "--arms hadamard oscar_per_head+clip+windows -o %",
      {Calibrated(), TinyModel(), output});
  const pid_t child = StartProgram(OSCAR_VALIDATE, arguments, {}, scratch / "log");
  const fs::path kept = output.string() + ".validation.job/state.json";
  const auto wait_until = [&](auto holds) {
    for (int i = 0; i < 2400 && !holds(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  wait_until([&] { return fs::exists(kept); });  // a layer is done, the next one takes long
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto asked = std::chrono::steady_clock::now();
  kill(child, SIGINT);
  const ProgramExit stopped = WaitForProgram(child, scratch / "log");
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(2)) << stopped.all();
  EXPECT_TRUE(Exits(stopped, 130, "to resume: "));
  EXPECT_TRUE(Exits(RunProgram(OSCAR_VALIDATE, arguments), 0, "resuming: "));
}

// These are checked before artifact and model are opened: neither exists here, but no message says
// so.
TEST(ValidateProgram, OutputNamesAndDeviceAreCheckedFirst) {
  const fs::path scratch = TestScratch("validate_first");
  const auto refusal = [&](const ProgramStrings& more) {
    const ProgramExit exit =
        RunProgram(OSCAR_VALIDATE,
                   ProgramStrings{"no-artifact", "--model", "no-model", "--device", "cpu"} + more);
    EXPECT_NE(exit.code, 0);
    return exit.err;
  };
  EXPECT_TRUE(Says(refusal({"-o", scratch / "a" / "b"}), "is not a directory"));
  EXPECT_TRUE(Says(refusal({"-o", scratch}), "exists already"));
  EXPECT_TRUE(Says(refusal({"--device", "cuda:77"}), "cuda:77"));
  EXPECT_TRUE(Says(refusal({"--arms", "bf16,oscr_shared"}), "oscar_shared"));
  EXPECT_TRUE(Says(refusal({"--needle-tasks", "single"}), "single_1"));
  EXPECT_TRUE(Says(refusal({"--data", "no-text"}), "no-text: no such file"));
  EXPECT_TRUE(Says(refusal({"--k-bits", "3"}), "no effect without --kernels"));
  EXPECT_TRUE(Says(refusal({"--local-only", "--needle-samples", "2"}), "with --local-only"));
}

// --help explains the dozen main flags; --help-all explains all of them.
TEST(Programs, TheFirstHelpIsOneScreen) {
  for (const char* program :
       {OSCAR_CALIBRATE, OSCAR_CAPTURE, OSCAR_EXPORT, OSCAR_VALIDATE, OSCAR_ZOO_PROGRAM}) {
    const ProgramExit first = RunProgram(program, {"--help"});
    EXPECT_TRUE(Exits(first, 0));
    EXPECT_LE(std::ranges::count(first.out, '\n'), 60) << first.out;
    if (program == std::string(OSCAR_ZOO_PROGRAM)) continue;  // has verbs, each with few flags
    EXPECT_TRUE(Says(first.out, "--help-all explains these options in full, and "));
    const ProgramExit all = RunProgram(program, {"--help-all"});
    EXPECT_TRUE(Exits(all, 0));
    EXPECT_TRUE(Says(all.out, "--log-format"));
    EXPECT_GT(std::ranges::count(all.out, '\n'), std::ranges::count(first.out, '\n'));
  }
}

TEST(Programs, AModelMayBeGivenByItsFlag) {
  const std::string dump = TestScratch("model_flag") / "d.h5";
  for (const auto& [program, line] : std::vector<std::pair<const char*, ProgramStrings>>{
           {OSCAR_CALIBRATE, {"--dry-run"}},
           {OSCAR_CALIBRATE, {"doctor"}},
           {OSCAR_CAPTURE, {"--dry-run", "-o", dump}}}) {
    ProgramStrings arguments = line;
    arguments.insert(arguments.end(), {"--model", TinyModel(), "--device", "cpu"});
    EXPECT_TRUE(Exits(RunProgram(program, arguments), 0));
  }
}

TEST(CalibrateProgram, FlagsThatWouldDoNothingAreRefused) {
  for (const char* line : {"--no-auto --bits 3", "--clip-k 0.9", "--self-length 9", "--max-vram 3",
                           "--read direct", "--scale 0.1", "--for sglang-oct --bits-of layer"})
    EXPECT_TRUE(
        Exits(RunProgram(OSCAR_CALIBRATE, Words("% --device cpu", {TinyModel()}) + Words(line)), 2,
              "no effect"))
        << line;
}

TEST(ExportProgram, FlagsThatWouldDoNothingAreRefused) {
  const std::string artifact = Copy("export_flags").string();
  for (const char* line :
       {"--to sglang --fold-scales exact -o x", "--to sglang --fold-values -o x",
        "--to sglang --model % -o x", "--to sglang --merge-into x.gguf -o x",
        "--inspect --rotations oscar", "--inspect --folded", "--inspect -o x",
        "--to sglang --device cpu -o x", "--to absorbed-checkpoint --model % --fold-values -o x",
        "--to folded-checkpoint --model % --rotations oscar -o x"})
    EXPECT_TRUE(
        Exits(RunProgram(OSCAR_EXPORT, ProgramStrings{artifact} + Words(line, {TinyModel()})), 2,
              "no effect"))
        << line;
}

// An absorbed copy is published only after its logits were compared with the model's.
TEST(ExportProgram, AnAbsorbedCopyIsComparedBeforeItIsDone) {
  const fs::path scratch = TestScratch("absorbed_program");
  const ProgramStrings arguments = {Calibrated().string(),
                                    "--to",
                                    "absorbed-checkpoint",
                                    "--model",
                                    TinyModel(),
                                    "--device",
                                    "cpu"};
  const auto run = [&](const ProgramStrings& more, const ProgramStrings& environment = {}) {
    return RunProgram(OSCAR_EXPORT, arguments + more, environment);
  };
  const ProgramExit done = run({"-o", scratch / "copy", "--json"});
  ASSERT_TRUE(Exits(done, 0));
  const Json logits = Json::parse(done.out).at("logits");
  EXPECT_EQ(logits.at("tokens"), 96);
  EXPECT_GT(logits.at("median_difference"), 0);  // absorbed weights are rounded to BF16
  EXPECT_LT(logits.at("median_difference"), logits.at("allowed_difference"));
  EXPECT_GT(logits.at("same_next_token"), 0.9);
  EXPECT_EQ(ReadJsonFile(scratch / "copy" / "oscar_fold.json").at("values"), "rotation");
  EXPECT_EQ(ReadJsonFile(scratch / "copy" / "config.json"),
            ReadJsonFile(fs::path(TinyModel()) / "config.json"));
  // If the export's child process cannot start, no output is left.
  EXPECT_TRUE(Exits(run({"-o", scratch / "lost"}, {"TMPDIR=" + (scratch / "no").string()}), 4));
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch), fs::directory_iterator()), 1);
  EXPECT_TRUE(Exits(
      RunProgram(OSCAR_EXPORT, {Calibrated().string(), "--to", "absorbed-checkpoint", "-o", "x"}),
      2));
}

TEST(ExportProgram, AFoldedCopyIsComparedToo) {
  const fs::path scratch = TestScratch("folded_program");
  const auto run = [&](const char* scales, const fs::path& to) {
    const ProgramExit done = RunProgram(
        OSCAR_EXPORT, {Calibrated().string(), "--to", "folded-checkpoint", "--model", TinyModel(),
                       "--device", "cpu", "--fold-scales", scales, "-o", to.string(), "--json"});
    EXPECT_TRUE(Exits(done, 0));
    return Json::parse(done.out).at("logits");
  };
  const Json exact = run("power_of_two", scratch / "pow2"), rounded = run("exact", scratch / "any");
  EXPECT_EQ(exact.at("largest_difference"), 0);
  EXPECT_EQ(exact.at("allowed_difference"), 0);
  EXPECT_GT(rounded.at("median_difference"), 0);
  EXPECT_LT(rounded.at("median_difference"), rounded.at("allowed_difference"));
}

// Without these checks, a run of minutes would end in an error or at a gate that nothing can pass.
TEST(ValidateProgram, WhatCannotBeMeasuredIsRefusedFirst) {
  const fs::path artifact = Copy("cannot");
  const auto refused = [&](const ProgramStrings& more, int code, const std::string& why) {
    ProgramStrings arguments =
        Words("--model % --sequences 1 --length 512 --arms naive --self-generate 0 -o %",
              {TinyModel(), (artifact.parent_path() / "x").string()});
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramExit exit = Validate(artifact, arguments);
    EXPECT_EQ(exit.code, code) << exit.all();
    EXPECT_TRUE(Says(exit.err, why));
    EXPECT_FALSE(Says(exit.err, "layer 0"));
  };
  refused({"--score-from", "100000"}, 3, "no token can be scored");
  refused({"--recent-tokens", "1000"}, 3, "for the 1064 tokens that the windows keep exact");
  refused({"--local-only", "--gate", "ppl_ratio<=1"}, 2, "ppl_ratio will not be measured");
  refused({"--needle-samples", "0", "--gate", "needle>=0.5"}, 2, "needle will not be measured");
  refused({"--gate", "tool_call>=0.5"}, 2, "tool_call will not be measured");
  refused({"--tool-calls", "1", "--tool-call-tasks", "json"}, 2, "json_edit");
  refused({"--tool-call-lengths", "4096"}, 2, "--tool-calls");
}

// Text that the rotations were fitted to is refused, however it is cut into sequences.
TEST(ValidateProgram, TextOfTheCalibrationIsRefused) {
  const fs::path scratch = TestScratch("validate_overlap");
  const fs::path text = scratch / "text.jsonl", artifact = scratch / "artifact";
  WriteDrawnDocuments(text, std::vector<int>(8, 500), 8000, 1);
  ASSERT_EQ(RunProgram(OSCAR_CALIBRATE, {TinyModel(), "-o", artifact.string(), "--device", "cpu",
                                         "--data", text.string(), "--error-rows", "8", "--no-auto"})
                .code,
            0);
  for (const char* pack : {"--pack", "--no-pack"}) {
    EXPECT_TRUE(Exits(Validate(artifact, Quick({"--data", text.string(), pack, "-o",
                                                (scratch / "report").string()})),
                      3, "calibrat"));
    EXPECT_FALSE(fs::exists(scratch / "report"));
  }
}

TEST(ValidateProgram, ADumpDoesForTheLocalPart) {
  const fs::path artifact = Copy("dump");
  const fs::path scratch = artifact.parent_path();
  const std::string text = (scratch / "text.txt").string(), dump = (scratch / "d.h5").string();
  std::ofstream(text) << std::string(2000, 'a') + " words that were never calibrated on, " +
                             std::string(300, 'z');
  ASSERT_EQ(
      RunProgram(OSCAR_CAPTURE, {TinyModel(), "-o", dump, "--device", "cpu", "--data", text}).code,
      0);
  ASSERT_TRUE(Exits(Validate(artifact, {"--from", dump, "--arms", "hadamard", "oscar_shared", "-o",
                                        (scratch / "report").string()}),
                    0));
  const Json validation = ReadJsonFile((scratch / "report/report.json").string()).at("validation");
  EXPECT_EQ(validation.at("source"), "dump");
  for (const Json& arm : validation.at("arms")) {
    EXPECT_TRUE(arm.contains("local"));
    EXPECT_FALSE(arm.contains("text"));
  }

  // A dry run measures and writes nothing.
  const fs::path planned = scratch / "planned";
  const ProgramExit plan =
      Validate(artifact, {"--from", dump, "--dry-run", "-o", planned.string()});
  EXPECT_TRUE(Exits(plan, 0));
  EXPECT_FALSE(fs::exists(planned));
  EXPECT_TRUE(Says(plan.out, "configurations"));

  // The report names the cache dtype: a float32 dump is rounded to bf16 unless --cache-dtype
  // differs.
  EXPECT_EQ(validation.at("settings").at("cache_dtype"), "bf16");
  const fs::path unrounded = scratch / "unrounded";
  ASSERT_EQ(Validate(artifact, {"--from", dump, "--arms", "hadamard", "oscar_shared",
                                "--cache-dtype", "compute", "-o", unrounded.string()})
                .code,
            0);
  const Json other = ReadJsonFile((unrounded / "report.json").string()).at("validation");
  EXPECT_EQ(other.at("settings").at("cache_dtype"), "as captured");
  EXPECT_NE(other.at("arms").at(1).at("local"), validation.at("arms").at(1).at("local"));
}

// Writes a file for --quantized with the keys and values (or latents) of a float32 dump. Keys and
// latents are multiplied by `factor`.
std::string QuantizedCopy(const std::string& from, const fs::path& path, float factor) {
  const DumpReader dump(from);
  Hdf5Writer file(path);
  file.SetAttribute("/", "bits_per_element", 2.25);
  const auto tokens = std::ssize(dump.token_ids());
  file.Write<int32_t>("/input_ids", {tokens}, dump.token_ids());
  for (size_t i = 0; i < dump.layers().size(); ++i) {
    const DumpLayer& layer = dump.layers()[i];
    for (const DumpTensor tensor : {DumpTensor::kK, DumpTensor::kV, DumpTensor::kCKv}) {
      if (layer.latent() != (tensor == DumpTensor::kCKv)) continue;
      std::vector<float> rows(
          static_cast<size_t>(tokens * layer.heads(tensor) * layer.dim(tensor)));
      dump.ReadRows(i, tensor, 0, std::as_writable_bytes(std::span(rows)));
      if (tensor != DumpTensor::kV)
        for (float& value : rows) value *= factor;
      file.Write<float>(dump_format::LayerPath(layer.layer_id, DumpTensorName(tensor)),
                        layer.shape(tensor, tokens), rows);
    }
  }
  file.Commit();
  return path;
}

// Writes an array [layers, d, d] for the bundled model, as numpy.save does. Each matrix rotates all
// pairs of dimensions by 90 degrees.
std::string TurnedPlanes(const fs::path& path) {
  constexpr int kLayers = 4, kDim = 64;
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 64, 64), }";
  header.resize(117, ' ');
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  bytes += header + '\n';
  std::vector<float> matrices(kLayers * kDim * kDim);
  for (int layer = 0; layer < kLayers; ++layer) {
    for (int i = 0; i < kDim; ++i)
      matrices[static_cast<size_t>((layer * kDim + i) * kDim + (i ^ 1))] = i % 2 == 0 ? 1 : -1;
  }
  bytes.append(reinterpret_cast<const char*>(matrices.data()), matrices.size() * sizeof(float));
  std::ofstream(path, std::ios::binary) << bytes;
  return path.string();
}

// Users may add arms: their own rotations, a second artifact and a sweep. All arms go into a CSV
// file, and a script that does not depend on oscar reads the report.
TEST(ValidateProgram, AUserBringsHisOwnArms) {
  const fs::path artifact = Copy("own");
  const fs::path scratch = artifact.parent_path(), report = scratch / "report";
  const std::string turns = TurnedPlanes(scratch / "turns.npy");
  const auto run = [&](ProgramStrings more) {
    more.insert(more.begin(), {"--model", TinyModel(), "--sequences", "1", "--length", "512",
                               "--local-only", "--arms", "oscar_per_head+clip+windows"});
    return Validate(artifact, more);
  };
  ASSERT_TRUE(
      Exits(run(Words("--rotation % --other-artifact % --sweep clip=.90:.96:.03 --csv % -o %",
                      {"turned=" + turns + ":none", "again=" + Calibrated().string(),
                       (scratch / "arms.csv").string(), report.string()})),
            0));
  const Json validation = ReadJsonFile((report / "report.json").string()).at("validation");
  EXPECT_EQ(validation.at("settings").at("arms"),
            Json({"bf16", "oscar_per_head+clip+windows", "turned+clip+windows",
                  "again:oscar_per_head+clip+windows", "oscar_per_head+clip=0.9+windows",
                  "oscar_per_head+clip=0.93+windows", "oscar_per_head+clip=0.96+windows"}));
  const auto kl = [&](size_t arm) {
    return validation.at("arms").at(arm).at("local").at("kl").at("mean").get<double>();
  };
  EXPECT_EQ(kl(3), kl(1));  // the same artifact under another name
  EXPECT_NE(kl(4), kl(6));
  EXPECT_TRUE(validation.at("settings").at("rotations").at("turned").contains("keys"));
  EXPECT_TRUE(validation.at("settings").at("artifacts").contains("again"));
  EXPECT_EQ(validation.at("settings").at("clip").at("oscar_per_head+clip=0.9+windows"), "0.9");

  const std::string csv = ReadText(scratch / "arms.csv");
  EXPECT_EQ(std::ranges::count(csv, '\n'), 8) << csv;
  EXPECT_TRUE(Says(csv, "\"turned+clip+windows\""));
  const ProgramExit table =
      RunProgram(OSCAR_PYTHON, {OSCAR_READ_REPORT, report.string(), "kl", "perplexity"});
  ASSERT_TRUE(Exits(table, 0));
  EXPECT_EQ(std::ranges::count(table.out, '\n'), 8) << table.out;
  EXPECT_TRUE(Says(table.out, "again:oscar_per_head+clip+windows"));
  EXPECT_NE(RunProgram(OSCAR_PYTHON, {OSCAR_READ_REPORT, turns}).code, 0);

  const auto refuses = [&](int code, const std::string& why, ProgramStrings more) {
    more.insert(more.end(), {"-o", (scratch / "refused").string()});
    const ProgramExit refused = run(more);
    EXPECT_EQ(refused.code, code) << refused.all();
    EXPECT_TRUE(Says(refused.err, why));
    EXPECT_FALSE(fs::exists(scratch / "refused"));
  };
  refuses(2, "NAME=FILE", {"--rotation", turns});
  refuses(2, "a method 'naive' exists already", {"--rotation", "naive=" + turns});
  std::ofstream(scratch / "text.npy") << "no array";
  refuses(3, "not a file written by numpy.save",
          {"--rotation", "x=" + (scratch / "text.npy").string()});
  refuses(2, "clip=FIRST:LAST:STEP", {"--sweep", "clip=.9:.8:.1"});
  refuses(2, "only the clip ratio can be varied", {"--sweep", "bits=2:4:1"});
}

// All methods run in one pass. Those that need fitting are fitted to text that is not evaluated.
TEST(ValidateProgram, AllMethodsInOnePass) {
  const fs::path artifact = Copy("all_methods");
  ASSERT_TRUE(Exits(Validate(artifact, {"--model", TinyModel(), "--sequences", "1", "--length",
                                        "384", "--needle-samples", "0", "--self-generate", "0",
                                        "--methods", "all", "--method-tokens", "1024"}),
                    0));
  const Json validation =
      ReadJsonFile(artifact.string() + "-comparison/report.json").at("validation");
  EXPECT_GE(validation.at("arms").size(), 6U);
  for (const Json& arm : validation.at("arms")) {
    EXPECT_EQ(arm.at("null_control"), false) << arm.at("name");
    EXPECT_TRUE(arm.contains("end_to_end")) << arm.at("name");
  }
}

// Half of the text is the prompt. Each simulated runtime is compared with the arm it approximates.
TEST(ValidateProgram, RuntimesAreHeldAgainstTheirIdeal) {
  const fs::path artifact = Copy("runtimes");
  const ProgramExit exit =
      Validate(artifact, {"--model", TinyModel(), "--sequences", "1", "--length", "1024",
                          "--needle-samples", "0", "--arms", "naive", "--runtime", "sglang",
                          "--headline-arm", "bf16", "--gate", "kl<=0.001"});
  ASSERT_TRUE(Exits(exit, 0));
  EXPECT_TRUE(Says(exit.out,
                   "gate: bf16 alone is judged; it would FAIL for runtime_sglang, "
                   "runtime_sglang_lm (--headline-arm judges another)"));
  const Json validation =
      ReadJsonFile(artifact.string() + "-comparison/report.json").at("validation");
  EXPECT_EQ(
      validation.at("settings").at("arms"),
      Json({"bf16", "naive", "oscar_shared+clip+windows", "runtime_sglang", "runtime_sglang_lm"}));
  EXPECT_EQ(validation.at("settings").at("prefill_tokens"), 512);
  const Json& arms = validation.at("arms");
  const auto kl = [&](size_t i) {
    return arms.at(i).at("local").at("kl").at("mean").get<double>();
  };
  for (const size_t i : {3U, 4U}) {
    EXPECT_EQ(arms.at(i).at("ideal").at("arm"), "oscar_shared+clip+windows");
    EXPECT_EQ(arms.at(i).at("ideal").at("kl").get<double>(), kl(i) - kl(2));
    EXPECT_TRUE(arms.at(i).at("ideal").contains("perplexity"));
  }
  EXPECT_NE(kl(3), kl(2));  // the runtime's bf16 and bisection change results
  EXPECT_NE(kl(4), kl(3));
  EXPECT_FALSE(arms.at(2).contains("ideal"));
}

TEST(ValidateProgram, NeedlesAtDepthsAndReportsOfTwoModelsOnOnePage) {
  const fs::path artifact = Copy("depths"), scratch = artifact.parent_path();
  for (const char* name : {"one", "two"}) {
    ASSERT_TRUE(
        Exits(Validate(artifact, Quick({"--needle-depths", "0", "100", "-o", scratch / name})), 0));
  }
  const Json report = ReadJsonFile(scratch / "one" / "report.json");
  EXPECT_EQ(report.at("validation").at("recall").at("tasks").at(0).at("samples"), 2);
  const auto combine = [&](const ProgramStrings& more) {
    return RunProgram(
        OSCAR_VALIDATE,
        ProgramStrings{"--combine", scratch / "one", scratch / "two" / "report.json"} + more);
  };
  const ProgramExit exit = combine({"-o", scratch / "both"});
  ASSERT_TRUE(Exits(exit, 0));
  EXPECT_TRUE(Says(exit.out, "comparison.html"));
  EXPECT_EQ(ReadJsonFile(scratch / "both" / "comparison.json").at("models").size(), 2U);
  EXPECT_TRUE(fs::exists(scratch / "both" / "comparison.csv"));
  const ProgramExit written = combine({"--write", scratch / "written"});
  ASSERT_TRUE(Exits(written, 0));
  EXPECT_TRUE(Says(written.out, "written"));
  const std::string name =
      "tiny-qwen3_" + report.at("validation").at("headline_arm").get<std::string>();
  size_t results = 0;
  for (const auto& entry : fs::recursive_directory_iterator(scratch / "written" / "lm-eval"))
    results += entry.path().extension() == ".json" ? 1 : 0;
  EXPECT_EQ(results, 2 * report.at("validation").at("arms").size());  // for arms of both reports
  EXPECT_TRUE(Says(ReadText(scratch / "written" / "llama-perplexity" / (name + ".txt")),
                   "\n99.9%   KLD: "));
  EXPECT_FALSE(fs::is_empty(scratch / "written" / "plots" / "tiny-qwen3"));
  EXPECT_EQ(combine({"--write", scratch / "written"}).code, 3);  // the output exists
  EXPECT_GT(report.at("validation").at("data").at("scored_bytes"),
            report.at("validation").at("data").at("scored_words"));
  const fs::path page = scratch / "page.md";
  std::ofstream(page) << "a\n<!-- oscar-validate --combine: begin -->\nold\n"
                         "<!-- oscar-validate --combine: end -->\nb\n";
  ASSERT_EQ(
      combine({"-o", scratch / "table", "--table-rows", "hadamard", "--table-into", page}).code, 0);
  const std::string table = ReadText(scratch / "table" / "comparison.md"), text = ReadText(page);
  EXPECT_TRUE(Says(text, table + "<!-- oscar-validate --combine: end -->\nb\n"));
  EXPECT_FALSE(Says(text, "old"));
  EXPECT_EQ(combine({"-o", scratch / "n", "--table-rows", "no_such_arm"}).code, 2);
  EXPECT_EQ(combine({"-o", scratch / "n", "--table-into", scratch / "absent"}).code, 3);
  EXPECT_FALSE(fs::exists(scratch / "n"));
  EXPECT_EQ(combine({}).code, 2);  // -o is missing
  EXPECT_EQ(combine({"-o", scratch / "x", "--model", TinyModel()}).code,
            2);                                          // --combine uses no model
  EXPECT_EQ(combine({"-o", scratch / "both"}).code, 3);  // the output exists
  EXPECT_EQ(RunProgram(OSCAR_VALIDATE,
                       {"--combine", artifact, artifact / "manifest.json", "-o", scratch / "y"})
                .code,
            3);
}

// A model with latent attention goes through all commands with their defaults: choices, validation,
// export, and a second calibration from a dump, which finds the same eigenvalues.
TEST(ValidateProgram, LatentAttentionAllTheWay) {
  const fs::path scratch = TestScratch("validate_latent"), model = TestData("families/deepseek_v3");
  const std::string data = scratch / "data.jsonl", held_out = scratch / "held_out.jsonl";
  WriteDrawnDocuments(data, std::vector<int>(5, 100), 64, 1);
  WriteDrawnDocuments(held_out, std::vector<int>(5, 100), 64, 7);
  const auto run = [&](const char* program, ProgramStrings arguments) {
    return RunProgram(program, arguments);
  };
  const auto at = [&](const char* name) { return (scratch / name).string(); };
  ASSERT_TRUE(Exits(
      run(OSCAR_CALIBRATE, {model, "--device", "cpu", "--data", data, "-o", at("artifact")}), 0));
  const Artifact artifact = Artifact::Open(scratch / "artifact");
  EXPECT_TRUE(artifact.has_choices());
  EXPECT_TRUE(Exits(run(OSCAR_ZOO_PROGRAM, {"lint", at("artifact")}), 0));
  EXPECT_TRUE(Exits(
      run(OSCAR_EXPORT, {at("artifact"), "--to", "sglang-oct", "--folded", "-o", at("folded")}), 3,
      "without --folded"));

  ASSERT_TRUE(
      Exits(run(OSCAR_VALIDATE, Words("% --model % --device cpu --data % --no-pack --bootstrap 20 "
                                      "--sink-tokens 4 --recent-tokens 16 --scope normal",
                                      {at("artifact"), model, held_out})),
            0));
  const Json validation =
      ReadJsonFile(scratch / "artifact-comparison" / "report.json").at("validation");
  std::vector<std::string> arms;
  for (const Json& arm : validation.at("arms")) {
    arms.push_back(arm.at("name"));
    EXPECT_TRUE(arm.contains("end_to_end") && arm.contains("text")) << arms.back();
  }
  for (const char* arm :
       {"auto+windows", "oscar_per_head+clip+windows", "wrong_layer+clip+windows"})
    EXPECT_NE(std::ranges::find(arms, arm), arms.end()) << arm;
  EXPECT_EQ(run(OSCAR_VALIDATE, {at("artifact"), "--model", model, "--device", "cpu", "--data",
                                 held_out, "--no-pack", "--runtime", "sglang"})
                .code,
            2);

  const auto exported = [&](const char* to, const char* rotations, const char* name) {
    return run(OSCAR_EXPORT,
               {at("artifact"), "--to", to, "--rotations", rotations, "-o", at(name)});
  };
  EXPECT_TRUE(Exits(exported("sglang", "auto", "main"), 3, "use --to sglang-oct"));
  // SGLang's latent cache cannot clip, and the artifact has a choice without clipping for it.
  EXPECT_EQ(exported("sglang-oct", "auto", "chosen").code, 0);
  ASSERT_EQ(exported("sglang-oct", "oscar", "oct").code, 0);
  for (const char* file : {"layer_0.pt", "layer_1.pt", "layer_2.pt", "launch.txt"})
    EXPECT_TRUE(fs::exists(scratch / "oct" / file)) << file;

  ASSERT_EQ(
      run(OSCAR_CAPTURE, {model, "--device", "cpu", "--data", data, "-o", at("dump.h5")}).code, 0);
  const ProgramExit again =
      run(OSCAR_CALIBRATE, {"--from", at("dump.h5"), "--device", "cpu", "-o", at("again")});
  ASSERT_TRUE(Exits(again, 0));
  const Artifact from_dump = Artifact::Open(scratch / "again");
  EXPECT_EQ(from_dump.manifest().at("calibration").at("latent_layers"), Json({0, 1, 2}));
  for (const int id : {0, 1, 2}) {
    const StoredLayer a = artifact.ReadLayer(id), b = from_dump.ReadLayer(id);
    ASSERT_EQ(a.k.eigenvalues.size(), b.k.eigenvalues.size());
    for (size_t i = 0; i < a.k.eigenvalues.size(); ++i)
      EXPECT_NEAR(b.k.eigenvalues[i], a.k.eigenvalues[i], 1e-4) << id;
  }
  const ProgramExit of_dump =
      run(OSCAR_VALIDATE, {at("again"), "--from", at("dump.h5"), "--device", "cpu"});
  EXPECT_EQ(of_dump.code, 3) << of_dump.all();  // refused: it is the text of the calibration
  EXPECT_EQ(
      run(OSCAR_CAPTURE, {model, "--device", "cpu", "--data", held_out, "-o", at("other.h5")}).code,
      0);
  const ProgramExit local =
      run(OSCAR_VALIDATE, {at("again"), "--from", at("other.h5"), "--device", "cpu",
                           "--sink-tokens", "4", "--recent-tokens", "16"});
  EXPECT_TRUE(Exits(local, 0));
  const std::string same = QuantizedCopy(at("other.h5"), at("same.h5"), 1),
                    half = QuantizedCopy(at("other.h5"), at("half.h5"), 0.5f);
  const ProgramExit quantized =
      run(OSCAR_VALIDATE,
          Words("% --from % --device cpu --sink-tokens 4 --recent-tokens 16 --cache-dtype compute "
                "--arms hadamard --quantized % % -o %",
                {at("again"), at("other.h5"), "same=" + same, "half=" + half, at("quantized")}));
  ASSERT_TRUE(Exits(quantized, 0));
  const Json latents = ReadJsonFile(at("quantized") + "/report.json").at("validation").at("arms");
  EXPECT_EQ(latents.at(2).at("local").at("output_rel_error"), 0);
  EXPECT_NEAR(latents.at(4).at("local").at("v_rel_error").get<double>(), 0.5, 1e-6);
  const ProgramExit merged = run(OSCAR_CALIBRATE, {"--merge", at("artifact"), "-o", at("merged")});
  EXPECT_TRUE(Exits(merged, 0));
  ExpectSameChoices(Artifact::Open(scratch / "merged"), artifact);
}

// A merge of one artifact keeps its moments, so the refitted choices equal the original ones in
// every matrix. When two are merged, value targets that cannot be added (diagonal) are replaced,
// and the program says so.
TEST(ValidateProgram, AMergeMakesTheChoicesAgain) {
  const fs::path scratch = TestScratch("merge-program");
  const auto run = [&](ProgramStrings arguments, const char* to) {
    arguments.insert(arguments.end(), {"-o", (scratch / to).string()});
    return RunProgram(OSCAR_CALIBRATE, arguments);
  };
  for (const auto& [name, tokens] : {std::pair("a", "3000"), std::pair("b", "2000")})
    ASSERT_EQ(run({TinyModel(), "--device", "cpu", "--tokens", tokens}, name).code, 0);
  const Artifact first = Artifact::Open(scratch / "a");
  const std::string a = scratch / "a", b = scratch / "b";
  ASSERT_EQ(run({"--merge", a}, "one").code, 0);
  ExpectSameChoices(Artifact::Open(scratch / "one"), first);

  const ProgramExit both = run({"--merge", b, a}, "both");
  ASSERT_TRUE(Exits(both, 0));
  const Artifact merged = Artifact::Open(scratch / "both");
  EXPECT_EQ(merged.report().at("calibration").at("choices").at("from"), first.identity());
  bool diagonal = false;
  for (const std::string& name : first.choice_names())
    for (const Json& layer : first.Choice(name).at("layers"))
      diagonal |= layer.at("values").get<std::string>().starts_with("diagonal");
  EXPECT_EQ(both.err.find("one run's own tokens") != std::string::npos, diagonal) << both.err;
  EXPECT_EQ(
      RunProgram(OSCAR_EXPORT, {scratch / "both", "--to", "sglang-oct", "-o", scratch / "oct"})
          .code,
      0);
  EXPECT_EQ(run({"--merge", a, "--for", "sglang"}, "for").code, 2);
}

}  // namespace
}  // namespace oscar
