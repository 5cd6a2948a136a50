// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs oscar-capture. If it is killed or the disk is full, nothing is left under the final name;
// invalid requests are refused before it runs.
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
  return RunProgram(OSCAR_CAPTURE,
                    ProgramStrings{Model(), "-o", output.string(), "--device", "cpu", "--tokens",
                                   "400", "--max-sequence", "200"} +
                        more,
                    environment);
}

std::vector<std::string> Fault(const std::string& setting, const fs::path& output, long at) {
  return {"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_DIR=" + output.parent_path().string(),
          setting + "=" + std::to_string(at)};
}

// Counts the calls that change files in an undisturbed run with these arguments.
long CountCalls(const fs::path& scratch, const std::vector<std::string>& more) {
  fs::create_directories(scratch / "whole");
  const fs::path output = scratch / "whole" / "dump", count = scratch / "count";
  EXPECT_TRUE(Exits(
      Capture(output, more,
              {"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_DIR=" + output.parent_path().string(),
               "OSCAR_FAULT_COUNT=" + count.string()}),
      0));
  return std::stol(ReadText(count));
}

const std::vector<std::vector<std::string>> kFormats = {{}, {"--format", "upstream"}};

TEST(Capture, KilledAnywhereItLeavesNothingUnderTheName) {
  for (const auto& format : kFormats) {
    const fs::path scratch = TestScratch("capture-kill");
    const long calls = CountCalls(scratch, format);
    for (int point = 0; point < kKillPoints; ++point) {
      const long at = 1 + point * (calls - 1) / kKillPoints;  // skips calls after the final rename
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
      EXPECT_TRUE(Exits(exit, 4));
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
  EXPECT_TRUE(Exits(shared, 3));
  EXPECT_NE(shared.err.find("cannot hold its queries"), std::string::npos) << shared.err;
  EXPECT_TRUE(fs::is_empty(scratch));
  const std::string answers = TestScratch("capture-answers") / "answers.jsonl";
  std::ofstream(answers) << R"({"input_ids": [1, 2, 3], "labels": [-100, 2, 3]})";
  expect(2, "cannot store which queries count", {"--format", "upstream", "--data", answers});
  std::ofstream(scratch / "there") << "x";
  const ProgramExit exit = Capture(scratch / "there");
  EXPECT_TRUE(Exits(exit, 3));
  EXPECT_NE(exit.all().find("exists already"), std::string::npos) << exit.all();
}

TEST(Capture, DryRunSaysHowMuchItWouldWrite) {
  const fs::path scratch = TestScratch("capture-dry");
  const ProgramExit exit = Capture(scratch / "d.h5", {"--dry-run", "--scores", "none"});
  EXPECT_TRUE(Exits(exit, 0));
  EXPECT_TRUE(fs::is_empty(scratch));
  EXPECT_NE(exit.all().find("total"), std::string::npos) << exit.all();
  EXPECT_NE(exit.all().find("(0 rows per layer)"), std::string::npos) << exit.all();
}

// An rms_norm_eps of 0.9 outweighs the mean squares in the norms, so the model cannot predict text.
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
  EXPECT_TRUE(Exits(stopped, 3));
  EXPECT_NE(stopped.err.find("'head_mode' are the likely cause"), std::string::npos) << stopped.err;
  EXPECT_FALSE(fs::exists(scratch / "wrong.h5"));
  EXPECT_EQ(capture("wrong.h5", {"--unknown-config", "ignore"}).code, 0);
}

}  // namespace
}  // namespace oscar
