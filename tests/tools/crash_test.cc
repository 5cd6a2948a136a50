// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The real programs, killed and starved of disk at points all over a run: whatever happens, the
// next run finishes, and the artifact has the bytes of an uninterrupted one. Points are counted in
// file operations (write_faults.c), so they lie at layer boundaries and inside writes alike.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr int kKillPoints = 20, kFullDiskPoints = 8;

// Runs oscar-calibrate on the bundled model with little data; `environment` adds NAME=VALUE. Output
// goes to `log`.
ProgramExit Calibrate(const fs::path& output, const std::vector<std::string>& environment,
                      const fs::path& log) {
  const std::string model = TestData("tiny-qwen3/config.json").parent_path();
  const ProgramExit exit =
      RunProgram(OSCAR_CALIBRATE,
                 {model, "-o", output.string(), "--device", "cpu", "--tokens", "1500",
                  "--max-sequence", "400", "--error-rows", "8", "--min-tokens", "1"},
                 environment);
  std::ofstream(log, std::ios::app) << exit.all();
  return exit;
}

std::map<std::string, std::string> Files(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file() || entry.path().filename() == "timings.json") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[fs::relative(entry.path(), directory)] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

class Crash : public testing::Test {
 protected:
  void SetUp() override {
    scratch_ = TestScratch("crash");
    const ProgramExit exit = Calibrate(
        scratch_ / "work" / "whole",
        {"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_DIR=" + (scratch_ / "work").string(),
         "OSCAR_FAULT_COUNT=" + (scratch_ / "count").string()},
        scratch_ / "log");
    ASSERT_EQ(exit.code, 0) << ReadText(scratch_ / "log");
    whole_ = Files(scratch_ / "work" / "whole");
    calls_ = std::stol(ReadText(scratch_ / "count"));
    ASSERT_EQ(whole_.size(), 6u);
    ASSERT_GT(calls_, 5 * kKillPoints);
  }

  std::vector<std::string> Fault(const std::string& setting, const fs::path& output, int point,
                                 int points) const {
    const long at = 1 + point * (calls_ - 1) / (points - 1);
    return {"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_DIR=" + output.parent_path().string(),
            setting + "=" + std::to_string(at)};
  }

  void ExpectWhole(const fs::path& output, const fs::path& log) const {
    const ProgramExit exit = Calibrate(output, {}, log);
    ASSERT_EQ(exit.code, 0) << ReadText(log);
    const auto files = Files(output);
    ASSERT_EQ(files.size(), whole_.size());
    for (const auto& [name, bytes] : whole_)
      EXPECT_TRUE(files.at(name) == bytes) << name << " differs";
    size_t left = 0;
    for (const auto& entry : fs::directory_iterator(output.parent_path())) {
      (void)entry;
      ++left;
    }
    EXPECT_EQ(left, 1u) << "something was left beside the artifact";
  }

  fs::path scratch_;
  std::map<std::string, std::string> whole_;
  long calls_ = 0;
};

TEST_F(Crash, KilledAnywhereItResumesToTheSameBytes) {
  for (int point = 0; point < kKillPoints; ++point) {
    SCOPED_TRACE("point " + std::to_string(point));
    const fs::path output = scratch_ / ("kill" + std::to_string(point)) / "out",
                   log = scratch_ / ("kill-log" + std::to_string(point));
    fs::create_directories(output.parent_path());
    const ProgramExit exit =
        Calibrate(output, Fault("OSCAR_FAULT_KILL_AT", output, point, kKillPoints), log);
    EXPECT_EQ(exit.signal, SIGKILL) << ReadText(log);
    if (fs::exists(output)) {
      EXPECT_EQ(Files(output).size(), whole_.size()) << "a partial artifact";
    }
    ExpectWhole(output, log);
  }
}

TEST_F(Crash, AFullDiskIsExitCode4AndNoPartialArtifact) {
  for (int point = 0; point < kFullDiskPoints; ++point) {
    SCOPED_TRACE("point " + std::to_string(point));
    const fs::path output = scratch_ / ("full" + std::to_string(point)) / "out",
                   log = scratch_ / ("full-log" + std::to_string(point));
    fs::create_directories(output.parent_path());
    const ProgramExit exit =
        Calibrate(output, Fault("OSCAR_FAULT_ENOSPC_AT", output, point, kFullDiskPoints), log);
    if (fs::exists(output)) {  // the last calls only clear up
      EXPECT_EQ(exit.code, 0) << ReadText(log);
      EXPECT_EQ(Files(output).size(), whole_.size());
      continue;
    }
    EXPECT_EQ(exit.code, 4) << ReadText(log);
    EXPECT_NE(ReadText(log).find("No space left"), std::string::npos) << ReadText(log);
    ExpectWhole(output, log);
  }
}

}  // namespace
}  // namespace oscar
