// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the programs and kills them, or fills their disk, at points throughout a run. The next run
// must finish, and the artifact must have the bytes of an uninterrupted run. Points are counted in
// file operations (write_faults.c), so they fall on layer boundaries and inside writes alike.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/test_data.h"
#include "tests/tools/artifact_bytes.h"
#include "tests/tools/small_runs.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr int kKillPoints = 10, kExpertsKillPoints = 10, kFullDiskPoints = 8,
              kFailedCallPoints = 10;

using Arguments = std::vector<std::string>;

// Returns arguments for the bundled model with little data.
Arguments BundledModel() {
  return Words("% --tokens 1500 --max-sequence 400 --error-rows 8",
               {TestData("tiny-qwen3/config.json").parent_path()});
}

// Returns arguments for a model without a tokenizer, whose data are token ids.
Arguments ModelOf(const std::string& family, const fs::path& scratch) {
  const fs::path data = scratch / "ids.jsonl";
  WriteDocuments(data, std::vector<int>(6, 150), 32);
  return Words("% --data % --quant-group-size 0 --sink-tokens 8 --recent-tokens 8",
               {TestData("families/" + family), data});
}

// Skips the automatic choices, which take half of the time. The faults depend on how files are
// written, not on their contents.
Arguments WithoutChoices(Arguments subject) {
  subject.emplace_back("--no-auto");
  return subject;
}

// Runs oscar-calibrate with `environment` (NAME=VALUE) added, and appends its output to `log`.
ProgramExit Calibrate(const Arguments& subject, const fs::path& output,
                      const std::vector<std::string>& environment, const fs::path& log) {
  Arguments arguments = subject;
  for (const char* argument : {"--device", "cpu", "--min-tokens", "1", "-o"})
    arguments.emplace_back(argument);
  arguments.push_back(output);
  const ProgramExit exit = RunProgram(OSCAR_CALIBRATE, arguments, environment);
  std::ofstream(log, std::ios::app) << exit.all();
  return exit;
}

class Crash : public testing::Test {
 protected:
  // Makes the uninterrupted run that others are compared with, and counts its file operations.
  void Prepare(const Arguments& subject) {
    subject_ = subject;
    const ProgramExit exit = Calibrate(
        subject_, scratch_ / "work" / "whole",
        {"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_DIR=" + (scratch_ / "work").string(),
         "OSCAR_FAULT_COUNT=" + (scratch_ / "count").string()},
        scratch_ / "log");
    ASSERT_EQ(exit.code, 0) << ReadText(scratch_ / "log");
    whole_ = ArtifactBytes(scratch_ / "work" / "whole");
    calls_ = std::stol(ReadText(scratch_ / "count"));
    ASSERT_EQ(whole_.size(), 6u);
  }

  std::vector<std::string> Fault(const std::string& setting, const fs::path& output, int point,
                                 int points) const {
    const long at = 1 + point * (calls_ - 1) / (points - 1);
    return {"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_DIR=" + output.parent_path().string(),
            setting + "=" + std::to_string(at)};
  }

  void ExpectWhole(const fs::path& output, const fs::path& log) const {
    const ProgramExit exit = Calibrate(subject_, output, {}, log);
    ASSERT_EQ(exit.code, 0) << ReadText(log);
    const auto files = ArtifactBytes(output);
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

  void KillAndResume(int points) const {
    ASSERT_GT(calls_, 5 * points);
    for (int point = 0; point < points; ++point) {
      SCOPED_TRACE("point " + std::to_string(point));
      const fs::path output = scratch_ / ("kill" + std::to_string(point)) / "out",
                     log = scratch_ / ("kill-log" + std::to_string(point));
      fs::create_directories(output.parent_path());
      const ProgramExit exit =
          Calibrate(subject_, output, Fault("OSCAR_FAULT_KILL_AT", output, point, points), log);
      EXPECT_EQ(exit.signal, SIGKILL) << ReadText(log);
      if (fs::exists(output)) {
        EXPECT_EQ(ArtifactBytes(output).size(), whole_.size()) << "a partial artifact";
      }
      ExpectWhole(output, log);
    }
  }

  const fs::path scratch_ = TestScratch("crash");
  Arguments subject_;
  std::map<std::string, std::string> whole_;
  long calls_ = 0;
};

TEST_F(Crash, KilledAnywhereItResumesToTheSameBytes) {
  Prepare(BundledModel());
  KillAndResume(kKillPoints);
}

TEST_F(Crash, KilledAnywhereAmongExpertsItResumesToTheSameBytes) {
  Prepare(ModelOf("qwen3_moe", scratch_));
  KillAndResume(kExpertsKillPoints);
}

TEST_F(Crash, AFullDiskIsExitCode4AndNoPartialArtifact) {
  Prepare(WithoutChoices(BundledModel()));
  for (int point = 0; point < kFullDiskPoints; ++point) {
    SCOPED_TRACE("point " + std::to_string(point));
    const fs::path output = scratch_ / ("full" + std::to_string(point)) / "out",
                   log = scratch_ / ("full-log" + std::to_string(point));
    fs::create_directories(output.parent_path());
    const ProgramExit exit = Calibrate(
        subject_, output, Fault("OSCAR_FAULT_ENOSPC_AT", output, point, kFullDiskPoints), log);
    if (fs::exists(output)) {  // the last calls only clean up
      EXPECT_EQ(exit.code, 0) << ReadText(log);
      EXPECT_EQ(ArtifactBytes(output).size(), whole_.size());
      continue;
    }
    EXPECT_EQ(exit.code, 4) << ReadText(log);
    EXPECT_NE(ReadText(log).find("No space left"), std::string::npos) << ReadText(log);
    ExpectWhole(output, log);
  }
}

// A file size limit (`ulimit -f`) is reported as an error; SIGXFSZ does not kill the process.
TEST_F(Crash, AFileSizeLimitIsExitCode4AndResumed) {
  Prepare(WithoutChoices(BundledModel()));
  const fs::path output = scratch_ / "limited" / "out", log = scratch_ / "limited-log";
  fs::create_directories(output.parent_path());
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{300 << 10, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  std::signal(SIGXFSZ, SIG_DFL);
  const ProgramExit exit = Calibrate(subject_, output, {}, log);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(exit.code, 4) << exit.signal << ReadText(log);
  EXPECT_NE(exit.err.find("File too large"), std::string::npos) << exit.err;
  for (const auto& entry : fs::recursive_directory_iterator(output.parent_path()))
    EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
  ExpectWhole(output, log);
}

// A resumed run must not mix layers of two models in one artifact.
TEST_F(Crash, OtherWeightsInTheSamePlaceAreNoticed) {
  const fs::path model = scratch_ / "model";
  fs::copy(TestData("tiny-qwen3/config.json").parent_path(), model, fs::copy_options::recursive);
  Arguments subject = WithoutChoices(BundledModel());
  subject[0] = model;
  Prepare(subject);
  const fs::path output = scratch_ / "replaced" / "out", log = scratch_ / "replaced-log";
  fs::create_directories(output.parent_path());
  EXPECT_EQ(Calibrate(subject_, output, Fault("OSCAR_FAULT_KILL_AT", output, 1, 3), log).signal,
            SIGKILL);
  const fs::path job = output.string() + ".job";
  ASSERT_TRUE(fs::exists(job)) << ReadText(log);
  // Flips one bit outside the sampled parts of the file; its size and time stay the same.
  const fs::path weights = model / "model.safetensors";
  const auto time = fs::last_write_time(weights);
  std::string bytes = ReadText(weights);
  const size_t stride = bytes.size() / 256;
  ASSERT_GT(stride, 4200u);
  bytes[200 * stride + 4100] ^= 1;
  std::ofstream(model / "new", std::ios::binary) << bytes;
  fs::rename(model / "new", weights);
  fs::last_write_time(weights, time);
  const ProgramExit exit = Calibrate(subject_, output, {}, log);
  EXPECT_TRUE(Exits(exit, 3));
  EXPECT_NE(exit.err.find(weights.filename().string()), std::string::npos) << exit.err;
  EXPECT_NE(exit.err.find("--restart"), std::string::npos) << exit.err;
}

// One call fails once. An interrupted call (EINTR) is repeated; any other error ends the run with a
// reason, and the next run finishes it.
TEST_F(Crash, ACallThatFailsOnceIsRepeatedOrReported) {
  Prepare(WithoutChoices(ModelOf("qwen3_moe", scratch_)));
  for (const int error : {EIO, EINTR}) {
    for (int point = 0; point < kFailedCallPoints; ++point) {
      SCOPED_TRACE(std::string(strerror(error)) + ", point " + std::to_string(point));
      const std::string name = std::to_string(error) + "-" + std::to_string(point);
      const fs::path output = scratch_ / ("failed" + name) / "out", log = scratch_ / ("log" + name);
      fs::create_directories(output.parent_path());
      std::vector<std::string> fault =
          Fault("OSCAR_FAULT_ERRNO_AT", output, point, kFailedCallPoints);
      fault.push_back("OSCAR_FAULT_ERRNO=" + std::to_string(error));
      const ProgramExit exit = Calibrate(subject_, output, fault, log);
      EXPECT_TRUE(exit.code == 0 || exit.code == 4) << exit.code << ReadText(log);
      if (exit.code == 0) {
        EXPECT_TRUE(ArtifactBytes(output) == whole_);
      }
      if (exit.code != 0) ExpectWhole(output, log);
    }
  }
}

TEST_F(Crash, LocaleTimeZoneUmaskFolderAndHomeDoNotMatter) {
  Prepare(BundledModel());
  const fs::path folder = fs::current_path();
  const mode_t mask = umask(0077);
  fs::current_path("/");
  const ProgramExit exit = Calibrate(subject_, scratch_ / "other",
                                     {"LC_ALL=C.UTF-8", "LANG=de_DE.UTF-8", "TZ=Asia/Kolkata",
                                      "HOME=/nonexistent", "XDG_CACHE_HOME=/nonexistent"},
                                     scratch_ / "log");
  fs::current_path(folder);
  umask(mask);
  ASSERT_EQ(exit.code, 0) << ReadText(scratch_ / "log");
  for (const auto& [name, bytes] : ArtifactBytes(scratch_ / "other"))
    EXPECT_TRUE(whole_.at(name) == bytes) << name << " differs";
}

TEST_F(Crash, ThreadsDoNotChangeTheArtifact) {
  for (Arguments subject : {BundledModel(), ModelOf("gemma", scratch_)}) {
    subject.emplace_back("--no-auto");
    Prepare(subject);
    for (const std::string threads : {"1", "3", "16"}) {
      const fs::path output = scratch_ / threads;
      const ProgramExit exit =
          Calibrate(subject_, output, {"OMP_NUM_THREADS=" + threads, "OMP_WAIT_POLICY=PASSIVE"},
                    scratch_ / "log");
      ASSERT_EQ(exit.code, 0) << ReadText(scratch_ / "log");
      for (const auto& [name, bytes] : ArtifactBytes(output))
        EXPECT_TRUE(whole_.at(name) == bytes) << subject[0] << ", " << threads << ": " << name;
      fs::remove_all(output);
    }
    fs::remove_all(scratch_ / "work");
  }
}

// The planned disk space is compared with the free space before a layer runs.
TEST(SmallDisk, IsSaidBeforeALayerRuns) {
  const fs::path scratch = TestScratch("small-disk");
  const ProgramExit exit =
      Calibrate(BundledModel(), scratch / "out",
                {"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_FREE=1000000"}, scratch / "log");
  EXPECT_TRUE(Exits(exit, 4));
  EXPECT_NE(exit.err.find("of disk space, but only 1.0 MB are free"), std::string::npos)
      << exit.err;
  EXPECT_EQ(exit.err.find("layer 0"), std::string::npos) << exit.err;
  EXPECT_FALSE(fs::exists(scratch / "out.job"));
}

}  // namespace
}  // namespace oscar
