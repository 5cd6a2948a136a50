// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs oscar-calibrate --self-generate. A text is generated once and kept when the run is killed or
// its options change, and the artifact describes it. --show-samples stops after generation, so it
// leaves a job with text and without layers.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "capture/files/strict_json.h"
#include "tests/support/run_program.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

const ProgramStrings kRun = Words(
    "--device cpu --tokens 1500 --max-sequence 400 --error-rows 8 --min-tokens 1 --no-auto "
    "--self-length 40 --log-format json");

class SelfGenerate : public testing::Test {
 protected:
  ProgramExit Run(const std::string& output, const ProgramStrings& more = {},
                  const ProgramStrings& environment = {}) const {
    ProgramStrings arguments = ProgramStrings{model_, "-o", scratch_ / output} + kRun;
    if (std::ranges::find(more, "--self-generate") == more.end())
      arguments.insert(arguments.end(), {"--self-generate", "90"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(OSCAR_CALIBRATE, arguments, environment);
  }

  // Returns the log line of an event, or null if there is none.
  static Json Event(const ProgramExit& exit, const std::string& event) {
    for (size_t begin = 0; begin < exit.err.size();) {
      const size_t end = std::min(exit.err.find('\n', begin), exit.err.size());
      const Json line = ParseStrictJson(exit.err.substr(begin, end - begin), "log line");
      if (line.at("event") == event) return line;
      begin = end + 1;
    }
    return nullptr;
  }
  static bool WasRead(const ProgramExit& exit) {
    return Event(exit, "self_generated").at("message").get<std::string>().find("resumed") !=
           std::string::npos;
  }

  Json Manifest(const std::string& output) const {
    return ReadJsonFile(scratch_ / output / "manifest.json");
  }

  static std::map<std::string, std::string> Files(const fs::path& directory) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      if (entry.is_regular_file() && entry.path().filename() != "timings.json")
        files[fs::relative(entry.path(), directory)] = ReadText(entry.path());
    }
    return files;
  }

  const std::string model_ = TestData("tiny-qwen3");
  const fs::path scratch_ = TestScratch("self-generate");
};

// No text is generated if the calibration that follows would be refused.
TEST_F(SelfGenerate, NothingIsWrittenForACalibrationThatCannotFollow) {
  const ProgramExit disk =
      Run("small", {}, {"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_FREE=1000000"});
  EXPECT_TRUE(Exits(disk, 4, "of disk space, but only 1.0 MB are free"));
  const ProgramExit data = Run("few", {"--min-tokens", "100000"});
  EXPECT_TRUE(Exits(data, 3));
  for (const ProgramExit* exit : {&disk, &data})
    EXPECT_EQ(Event(*exit, "self_generation"), nullptr) << exit->err;
  EXPECT_FALSE(fs::exists(scratch_ / "small.job"));
  EXPECT_FALSE(fs::exists(scratch_ / "few.job"));
}

TEST_F(SelfGenerate, TheArtifactSaysWhatTheModelWrote) {
  const ProgramExit exit = Run("out");
  ASSERT_TRUE(Exits(exit, 0));
  EXPECT_FALSE(WasRead(exit));
  const Json data = Manifest("out").at("data");
  const Json& self = data.at("self_generated");
  EXPECT_EQ(self.at("tokens"), 90);
  EXPECT_EQ(self.at("documents"), 3);
  EXPECT_EQ(self.at("longest"), 40);
  EXPECT_EQ(self.at("temperature"), 0);
  EXPECT_EQ(self.at("chat_format").get<std::string>(), "template");
  EXPECT_EQ(self.at("chat_template").at("sha256").get<std::string>().size(), 64u);
  EXPECT_EQ(self.at("prompts_digest").get<std::string>().size(), 64u);
  // Three prompts with their generated text are added to the corpus, which has at most 1500 tokens.
  const Json base = Event(exit, "data").at("fields");
  const auto used = [](const Json& account, const char* what) {
    return account.at(what).at("used").get<int64_t>();
  };
  EXPECT_GT(used(data, "tokens"), used(base, "tokens") + 90);
  EXPECT_EQ(used(data, "documents"), used(base, "documents") + 3);
  EXPECT_NE(data.at("digest"), base.at("digest"));
  EXPECT_FALSE(fs::exists(scratch_ / "out.job"));
  EXPECT_EQ(Manifest("out").at("calibration").at("configuration").at("self_generate"), 90);
}

TEST_F(SelfGenerate, ADrawnTextIsThatOfItsSeed) {
  std::map<std::string, std::string> digests;
  for (const char* seed : {"1", "2", "1"}) {
    const std::string output = std::string("seed") + std::to_string(digests.size()) + seed;
    ASSERT_TRUE(Exits(Run(output, {"--self-temperature", "0.8", "--self-top-p", "0.9", "--seed",
                                   seed, "--show-samples", "1"}),
                      0));
    const Json state = ReadJsonFile(scratch_ / (output + ".job") / "self_generated.json");
    const std::string digest = state.at("digest").get<std::string>();
    const auto [known, is_new] = digests.emplace(seed, digest);
    if (!is_new) {
      EXPECT_EQ(known->second, digest);
    }
  }
  EXPECT_NE(digests.at("1"), digests.at("2"));
}

TEST_F(SelfGenerate, WhatWasWrittenIsReadAgainIfItIsWhole) {
  ASSERT_EQ(Run("out", {"--show-samples", "1"}).code, 0);
  const fs::path kept = scratch_ / "out.job" / "self_generated.json";
  const std::string text = ReadText(kept);

  // These options ask for a different text.
  ProgramExit exit = Run("out", {"--self-temperature", "1"});
  EXPECT_TRUE(Exits(exit, 3, "--self-temperature: 0.0 -> 1.0"));
  EXPECT_TRUE(Says(exit.err, "--restart"));

  Json damaged = Json::parse(text);
  damaged["documents"][0]["ids"][3] = damaged["documents"][0]["ids"][3].get<int>() ^ 1;
  std::ofstream(kept) << damaged.dump();
  exit = Run("out");
  EXPECT_TRUE(Exits(exit, 3, "damaged"));

  std::ofstream(kept) << text;
  exit = Run("out");
  ASSERT_TRUE(Exits(exit, 0));
  EXPECT_TRUE(WasRead(exit));
}

TEST_F(SelfGenerate, RestartWritesAgain) {
  ASSERT_EQ(Run("out", {"--show-samples", "1"}).code, 0);
  const ProgramExit exit =
      Run("out", {"--restart", "--self-temperature", "1", "--show-samples", "1"});
  ASSERT_TRUE(Exits(exit, 0));
  EXPECT_FALSE(WasRead(exit));
}

// The job has layers but no generated text; generating one now would make its layers useless.
TEST_F(SelfGenerate, AnUnfinishedRunWithoutTextIsRefusedBeforeAnythingIsWritten) {
  fs::create_directories(scratch_ / "out.job");
  std::ofstream(scratch_ / "out.job" / "fingerprint.json") << R"({"data": {"digest": "x"}})";
  const ProgramExit exit = Run("out");
  EXPECT_TRUE(Exits(exit, 3, "unfinished run"));
  EXPECT_TRUE(Event(exit, "self_generation").is_null());
}

TEST_F(SelfGenerate, AKilledRunGoesOnWithTheSameText) {
  const fs::path counted = scratch_ / "count";
  const auto fault = [&](const std::string& output, const std::string& setting) {
    fs::create_directories(scratch_ / output);
    return ProgramStrings{"LD_PRELOAD=" OSCAR_WRITE_FAULTS,
                          "OSCAR_FAULT_DIR=" + (scratch_ / output).string(), setting};
  };
  ASSERT_EQ(Run("whole/out", {}, fault("whole", "OSCAR_FAULT_COUNT=" + counted.string())).code, 0);
  const long calls = std::stol(ReadText(counted));
  int read = 0;
  for (const int tenth : {1, 6}) {
    const std::string output = "killed" + std::to_string(tenth);
    const ProgramExit killed =
        Run(output + "/out", {},
            fault(output, "OSCAR_FAULT_KILL_AT=" + std::to_string(1 + calls * tenth / 10)));
    EXPECT_EQ(killed.signal, SIGKILL) << killed.all();
    const ProgramExit resumed = Run(output + "/out");
    ASSERT_TRUE(Exits(resumed, 0));
    read += WasRead(resumed) ? 1 : 0;
    EXPECT_EQ(Files(scratch_ / output / "out"), Files(scratch_ / "whole" / "out"));
  }
  EXPECT_GE(read, 1);  // the first kill may come before the text is done
}

TEST_F(SelfGenerate, ThePlanSaysWhatItTakes) {
  const ProgramExit exit = Run("out", {"--dry-run"});
  ASSERT_TRUE(Exits(exit, 0));
  EXPECT_TRUE(Says(
      exit.out,
      "self-generation   90 tokens from 3 prompts, 3 at once: 40 steps, all weights in memory"));
  EXPECT_TRUE(Says(exit.out, "and keys and values of"));
  EXPECT_FALSE(fs::exists(scratch_ / "out.job"));
  const ProgramExit doctor =
      RunProgram(OSCAR_CALIBRATE, {"doctor", model_, "--device", "cpu", "--self-generate", "90"});
  EXPECT_TRUE(Says(doctor.out, "self-generation"));
}

}  // namespace
}  // namespace oscar
