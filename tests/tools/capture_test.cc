// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The real oscar-capture: killed and starved of disk it leaves nothing under the final name, what
// it refuses it refuses before it runs, and oscar-calibrate --from fits from what it wrote.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr int kKillPoints = 8, kFullDiskPoints = 4;

std::string Model() { return TestData("tiny-qwen3/config.json").parent_path(); }

ProgramExit Capture(const fs::path& output, std::vector<std::string> more = {},
                    const std::vector<std::string>& environment = {}) {
  std::vector<std::string> arguments = {Model(),    "-o",  output.string(),  "--device", "cpu",
                                        "--tokens", "400", "--max-sequence", "200"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunProgram(OSCAR_CAPTURE, arguments, environment);
}

std::vector<std::string> Fault(const std::string& setting, const fs::path& output, long at) {
  return {"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_DIR=" + output.parent_path().string(),
          setting + "=" + std::to_string(at)};
}

// How often an undisturbed run with these arguments changes files.
long CountCalls(const fs::path& scratch, const std::vector<std::string>& more) {
  fs::create_directories(scratch / "whole");
  const fs::path output = scratch / "whole" / "dump", count = scratch / "count";
  const ProgramExit exit =
      Capture(output, more,
              {"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_DIR=" + output.parent_path().string(),
               "OSCAR_FAULT_COUNT=" + count.string()});
  EXPECT_EQ(exit.code, 0) << exit.all();
  return std::stol(ReadText(count));
}

const std::vector<std::vector<std::string>> kFormats = {{}, {"--format", "upstream"}};

TEST(Capture, KilledAnywhereItLeavesNothingUnderTheName) {
  for (const auto& format : kFormats) {
    const fs::path scratch = TestScratch("capture-kill");
    const long calls = CountCalls(scratch, format);
    for (int point = 0; point < kKillPoints; ++point) {
      const long at = 1 + point * (calls - 1) / kKillPoints;  // the last calls come after the name
      SCOPED_TRACE(std::to_string(at) + " of " + std::to_string(calls));
      const fs::path output = scratch / std::to_string(point) / "dump";
      fs::create_directories(output.parent_path());
      const ProgramExit exit = Capture(output, format, Fault("OSCAR_FAULT_KILL_AT", output, at));
      EXPECT_EQ(exit.signal, SIGKILL) << exit.all();
      EXPECT_FALSE(fs::exists(output));
    }
  }
}

TEST(Capture, AFullDiskIsExitCode4AndNothingIsLeft) {
  for (const auto& format : kFormats) {
    const fs::path scratch = TestScratch("capture-full");
    const long calls = CountCalls(scratch, format);
    for (int point = 0; point < kFullDiskPoints; ++point) {
      const long at = 1 + point * (calls - 1) / (kFullDiskPoints + 2);
      SCOPED_TRACE(std::to_string(at) + " of " + std::to_string(calls));
      const fs::path output = scratch / std::to_string(point) / "dump";
      fs::create_directories(output.parent_path());
      const ProgramExit exit = Capture(output, format, Fault("OSCAR_FAULT_ENOSPC_AT", output, at));
      EXPECT_EQ(exit.code, 4) << exit.all();
      EXPECT_NE(exit.all().find("No space left"), std::string::npos) << exit.all();
      EXPECT_TRUE(fs::is_empty(output.parent_path()));
    }
  }
}

TEST(Capture, EqualRunsGiveEqualBytes) {
  const fs::path scratch = TestScratch("capture-equal");
  for (const char* name : {"a.h5", "b.h5"})
    ASSERT_EQ(Capture(scratch / name, {"--logits", "--deflate", "1"}).code, 0);
  EXPECT_EQ(ReadText(scratch / "a.h5"), ReadText(scratch / "b.h5"));
}

TEST(Capture, RefusesBeforeItRuns) {
  const std::string ids = TestScratch("capture-ids") / "ids.jsonl";
  std::ofstream(ids) << R"({"input_ids": [1, 2, 3, 4]})";
  const fs::path scratch = TestScratch("capture-refused");
  const auto expect = [&](int code, const char* reason, const std::vector<std::string>& more) {
    const ProgramExit exit = Capture(scratch / "d", more);
    EXPECT_EQ(exit.code, code) << exit.all();
    EXPECT_NE(exit.all().find(reason), std::string::npos) << exit.all();
    EXPECT_TRUE(fs::is_empty(scratch));
  };
  expect(2, "at most 17.2 GB",
         {"--scores", "all", "--pack", "--max-sequence", "8192", "--tokens", "57344"});
  expect(2, "give no --scores and no --logits", {"--format", "upstream", "--logits"});
  expect(2, "give no --scores and no --logits", {"--format", "upstream", "--scores", "rows"});
  expect(2, "--deflate has no effect", {"--format", "upstream", "--deflate", "1"});
  const ProgramExit shared =
      RunProgram(OSCAR_CAPTURE, {TestData("families/gemma4_text-ple"), "-o", scratch / "d",
                                 "--format", "upstream", "--device", "cpu", "--data", ids});
  EXPECT_EQ(shared.code, 3) << shared.all();
  EXPECT_NE(shared.err.find("cannot hold its queries"), std::string::npos) << shared.err;
  EXPECT_TRUE(fs::is_empty(scratch));
  std::ofstream(scratch / "there") << "x";
  const ProgramExit exit = Capture(scratch / "there");
  EXPECT_EQ(exit.code, 3);
  EXPECT_NE(exit.all().find("exists already"), std::string::npos) << exit.all();
}

TEST(Capture, DryRunSaysHowMuchItWouldWrite) {
  const fs::path scratch = TestScratch("capture-dry");
  const ProgramExit exit = Capture(scratch / "d.h5", {"--dry-run", "--scores", "none"});
  EXPECT_EQ(exit.code, 0);
  EXPECT_TRUE(fs::is_empty(scratch));
  EXPECT_NE(exit.all().find("total"), std::string::npos) << exit.all();
  EXPECT_NE(exit.all().find("(0 rows per layer)"), std::string::npos) << exit.all();
}

std::string ChoicesOf(const fs::path& artifact) {
  Json layers = ReadJsonFile(artifact / "report.json").at("layers");
  EXPECT_TRUE(layers.at(0).contains("auto"));
  return layers.dump();
}

// Runs everything, with automatic choices and an automatic dump type. The artifact equals the
// model's, except for its source. Models: a plain one, one whose last layers read the keys of
// others, and one with latent attention.
TEST(Capture, ADumpCalibratesToTheArtifactOfTheModel) {
  const fs::path scratch = TestScratch("capture-artifact"), ids = scratch / "ids.jsonl";
  std::ofstream rows(ids);
  for (int document = 0; document < 3; ++document) {
    Json tokens = Json::array();
    for (int i = 0; i < 60; ++i) tokens.push_back((i * 7919 + document * 104729) % 30);
    rows << Json{{"input_ids", tokens}} << "\n";
  }
  rows.close();
  const auto run = [&](const char* program, std::vector<std::string> arguments,
                       const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"--device", "cpu"});
    const ProgramExit exit = RunProgram(program, arguments);
    EXPECT_EQ(exit.code, 0) << exit.all();
  };
  const std::vector<std::string> fit = {"--min-tokens",       "1", "--error-rows", "8",
                                        "--quant-group-size", "0"};
  for (const auto& [name, dtype] :
       {std::pair("../tiny-qwen3", "f32"), std::pair("gemma4_text-ple", "bf16"),
        std::pair("deepseek_v3", "f32")}) {
    SCOPED_TRACE(name);
    const fs::path model = TestData("families") / name;
    const std::string stem = scratch / model.filename();
    const std::vector<std::string> data = {model, "--data", ids, "--dtype", dtype};
    run(OSCAR_CALIBRATE, fit, {data[0], data[1], data[2], data[3], data[4], "-o", stem + "-model"});
    run(OSCAR_CAPTURE, data, {"-o", stem + ".h5"});
    run(OSCAR_CALIBRATE, fit, {"--from", stem + ".h5", "-o", stem + "-dump"});
    for (const char* file : {"rotations.safetensors", "moments.safetensors"}) {
      const std::string of_model = ReadText(fs::path(stem + "-model") / file);
      EXPECT_FALSE(of_model.empty());
      EXPECT_TRUE(ReadText(fs::path(stem + "-dump") / file) == of_model) << file;
    }
    EXPECT_EQ(ChoicesOf(stem + "-dump"), ChoicesOf(stem + "-model"));
  }
}

// Covers every requested precision, and upstream's directories, which say nothing of rope; without
// automatic choices.
TEST(Capture, ADumpCalibratesToTheRotationsOfTheModel) {
  const fs::path scratch = TestScratch("capture-calibrate");
  const std::vector<std::string> fit = {"--device",     "cpu", "--min-tokens", "1",
                                        "--error-rows", "8",   "--no-auto"};
  const auto calibrate = [&](const char* name, std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), fit.begin(), fit.end());
    arguments.insert(arguments.end(), {"-o", (scratch / name).string()});
    const ProgramExit exit = RunProgram(OSCAR_CALIBRATE, arguments);
    EXPECT_EQ(exit.code, 0) << exit.all();
    return ReadText(scratch / name / "rotations.safetensors");
  };
  for (const char* dtype : {"f32", "bf16"}) {
    const std::string suffix = dtype;
    const std::string model =
        calibrate(("model-" + suffix).c_str(),
                  {Model(), "--tokens", "400", "--max-sequence", "200", "--dtype", dtype});
    ASSERT_EQ(Capture(scratch / (suffix + ".h5"), {"--dtype", dtype}).code, 0);
    EXPECT_TRUE(calibrate(("hdf5-" + suffix).c_str(),
                          {"--from", scratch / (suffix + ".h5"), "--dtype", dtype}) == model);
    ASSERT_EQ(Capture(scratch / ("up-" + suffix), {"--dtype", dtype, "--format", "upstream"}).code,
              0);
    EXPECT_TRUE(calibrate(("upstream-" + suffix).c_str(),
                          {"--from", scratch / ("up-" + suffix), "--dtype", dtype}) == model);
  }
  const ProgramExit refused = RunProgram(OSCAR_CALIBRATE, {Model(), "--from", scratch / "f32.h5"});
  EXPECT_EQ(refused.code, 2);
  const ProgramExit damaged =
      RunProgram(OSCAR_CALIBRATE, {"--from", scratch / "model-f32" / "manifest.json"});
  EXPECT_EQ(damaged.code, 3);
  EXPECT_NE(damaged.all().find("not an HDF5 file"), std::string::npos) << damaged.all();
}

// With an eps that drowns what the norms divide by, text is noise to the model.
TEST(Capture, AFieldThatNobodyKnowsNeedsALossThatProvesTheForwardPass) {
  const fs::path scratch = TestScratch("capture-unknown"), model = scratch / "model";
  fs::copy(Model(), model, fs::copy_options::recursive);
  Json config = ReadJsonFile((model / "config.json").string());
  config["head_mode"] = 1;
  const auto capture = [&](const std::string& name, std::vector<std::string> more) {
    std::ofstream(model / "config.json", std::ios::trunc) << config.dump();
    more.insert(more.begin(), {model.string(), "-o", (scratch / name).string(), "--device", "cpu",
                               "--tokens", "400", "--max-sequence", "200"});
    return RunProgram(OSCAR_CAPTURE, more);
  };
  EXPECT_EQ(capture("sound.h5", {}).code, 0);
  config["rms_norm_eps"] = 0.9;
  const ProgramExit stopped = capture("wrong.h5", {});
  EXPECT_EQ(stopped.code, 3) << stopped.all();
  EXPECT_NE(stopped.err.find("'head_mode' are the likely cause"), std::string::npos) << stopped.err;
  EXPECT_FALSE(fs::exists(scratch / "wrong.h5"));
  EXPECT_EQ(capture("wrong.h5", {"--unknown-config", "ignore"}).code, 0);
}

}  // namespace
}  // namespace oscar
