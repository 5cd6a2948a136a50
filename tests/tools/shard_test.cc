// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs oscar-calibrate as independent jobs of a cluster array. Whatever their number, and whatever
// happens to one of them, merging their shards gives the artifact of a single run.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"
#include "tests/tools/artifact_bytes.h"
#include "tests/tools/small_runs.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

using Arguments = std::vector<std::string>;

class Shards : public testing::Test {
 protected:
  // Returns arguments for a model of four layers that runs in a second, with data of three pieces
  // (FamilyRun).
  Arguments Small() const {
    Arguments model = FamilyRun("exaone4", scratch_, 24);
    model.insert(model.end(), {"--no-auto", "--clip", "fixed"});
    return model;
  }

  fs::path output() const { return scratch_ / "out"; }
  fs::path PathOf(int number, int count) const {
    return output().string() + ".shard-" + std::to_string(number) + "-of-" + std::to_string(count);
  }

  ProgramExit Run(Arguments arguments, const Arguments& more,
                  const Arguments& environment = {}) const {
    for (const char* argument : {"--device", "cpu"}) arguments.emplace_back(argument);
    if (std::ranges::find(more, "-o") == more.end())
      arguments.insert(arguments.end(), {"-o", output()});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(OSCAR_CALIBRATE, arguments, environment);
  }
  ProgramExit RunShard(const Arguments& subject, int number, int count,
                       const Arguments& environment = {}) const {
    return Run(subject, {"--shard", std::to_string(number) + "/" + std::to_string(count)},
               environment);
  }
  std::vector<fs::path> MakeShards(const Arguments& subject, int count) const {
    std::vector<fs::path> paths;
    for (int number = count; number >= 1; --number) {
      EXPECT_TRUE(Exits(RunShard(subject, number, count), 0));
      paths.push_back(PathOf(number, count));
    }
    return paths;
  }
  ProgramExit Merge(const Arguments& subject, const std::vector<fs::path>& shards,
                    const Arguments& environment = {}) const {
    Arguments more = {"--merge"};
    more.insert(more.end(), shards.begin(), shards.end());
    return Run(subject, more, environment);
  }
  void ExpectRefused(const Arguments& subject, const std::vector<fs::path>& shards,
                     const std::string& said) const {
    EXPECT_TRUE(Exits(Merge(subject, shards), 3, said));
    EXPECT_FALSE(fs::exists(output()));
  }
  static Arguments KilledAt(const std::string& file) {
    return {"LD_PRELOAD=" OSCAR_WRITE_FAULTS, "OSCAR_FAULT_DIR=/", "OSCAR_FAULT_MATCH=" + file,
            "OSCAR_FAULT_KILL_AT=1"};
  }

  std::map<std::string, std::string> BytesOfOne(const Arguments& subject) const {
    const ProgramExit exit = Run(subject, {"-o", scratch_ / "one"});
    EXPECT_TRUE(Exits(exit, 0));
    return exit.code == 0 ? ArtifactBytes(scratch_ / "one") : std::map<std::string, std::string>();
  }
  void ExpectWhole(const ProgramExit& exit,
                   const std::map<std::string, std::string>& expected) const {
    ASSERT_TRUE(Exits(exit, 0));
    const auto files = ArtifactBytes(output());
    ASSERT_EQ(files.size(), expected.size());
    for (const auto& [name, bytes] : files)
      EXPECT_TRUE(bytes == expected.at(name)) << name << " differs";
    EXPECT_FALSE(fs::exists(output().string() + ".job"));
  }
  void ExpectSameBytes(const Arguments& subject, int count) const {
    const auto expected = BytesOfOne(subject);
    ASSERT_EQ(expected.size(), 6U);
    ExpectWhole(Merge(subject, MakeShards(subject, count)), expected);
  }

  fs::path scratch_ = TestScratch("shards");
};

TEST_F(Shards, OfTheBundledModelMakeTheBytesOfOneUnlessOneReadOtherWeights) {
  const fs::path copy = scratch_ / "copy" / "tiny-qwen3";
  fs::create_directories(copy.parent_path());
  fs::copy(TestData("tiny-qwen3/config.json").parent_path(), copy, fs::copy_options::recursive);
  const Arguments model = {copy,           "--tokens", "2600",      "--max-sequence", "600",
                           "--error-rows", "8",        "--no-auto", "--clip",         "fixed"};
  ExpectSameBytes(model, 2);
  fs::remove_all(output());
  fs::remove_all(PathOf(2, 2));
  // Changes a byte outside the sampled parts of the file.
  std::fstream file(copy / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(7360000);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(7360000);
  file.put(byte);
  file.close();
  ASSERT_EQ(RunShard(model, 2, 2).code, 0);
  ExpectRefused(model, {PathOf(1, 2), PathOf(2, 2)},
                PathOf(1, 2).string() + " read a different model.safetensors");
}
TEST_F(Shards, LeaveBitsByTheNextTokenToTheMerge) {
  Arguments model = FamilyRun("exaone4", scratch_, 12);
  const std::vector<fs::path> shards = MakeShards(model, 2);
  // Only the merge is given the options for bits.
  model.insert(model.end(), {"--for", "any", "--bits", "7,4"});
  ExpectWhole(Merge(model, shards), BytesOfOne(model));
}

// Kills a shard while it writes a layer, hidden states or shard.json, then a merge. All are
// resumed.
TEST_F(Shards, ThatAreKilledGoOn) {
  const Arguments model = Small();
  Arguments other = model;
  other.insert(other.end(), {"--held-out", "0.2"});
  const auto expected = BytesOfOne(model);
  ASSERT_EQ(RunShard(model, 1, 2).code, 0);
  const fs::path path = PathOf(2, 2);
  for (const char* file : {"2-of-2.job/layer_00000", "2-of-2.job/hidden_00002", "job/shard.json"}) {
    const ProgramExit exit = RunShard(model, 2, 2, KilledAt(file));
    EXPECT_EQ(exit.signal, SIGKILL) << file << exit.all();
  }
  const ProgramExit done = RunShard(model, 2, 2);
  EXPECT_TRUE(Says(done.err, "resuming: 4 of 4")) << done.all();
  EXPECT_FALSE(fs::exists(path.string() + ".job"));
  const auto made = fs::last_write_time(path / "shard.json");
  EXPECT_TRUE(Exits(RunShard(model, 2, 2), 0, "shard 2 of 2 exists already"));
  EXPECT_EQ(fs::last_write_time(path / "shard.json"), made);
  EXPECT_TRUE(Exits(RunShard(other, 2, 2), 3, "is not shard 2 of 2 of this run"));

  const std::vector<fs::path> shards = {path, PathOf(1, 2)};
  ExpectRefused(other, shards, "options.held_out.share: was 0.1, now 0.2");
  const ProgramExit killed = Merge(model, shards, KilledAt("out.job/layer_00001"));
  EXPECT_EQ(killed.signal, SIGKILL) << killed.all();
  // A run without shards cannot resume the job that the killed merge left.
  EXPECT_TRUE(Exits(Run(model, {}), 3, "shards: was 2, now absent"));
  const ProgramExit exit = Merge(model, shards);
  EXPECT_TRUE(Says(exit.err, "resuming: 1 of 4"));
  ExpectWhole(exit, expected);
}

TEST_F(Shards, ThatCannotBeAreRefused) {
  const Arguments model = Small();
  const auto refused = [&](const Arguments& more, const std::string& said) {
    EXPECT_TRUE(Exits(Run(model, more), 2, said));
  };
  refused({"--shard", "4/3"}, "expected I/N with I from 1 to N");
  refused({"--shard", "1/90"}, "the data makes only 3 pieces");
  const ProgramExit plan = Run(model, {"--shard", "1/3", "--dry-run"});
  EXPECT_TRUE(plan.code == 0 && Says(plan.out, "disk, shard")) << plan.all();
  EXPECT_FALSE(fs::exists(PathOf(1, 3)));
  refused({"--shard", "1/2", "--self-generate", "100"},
          "generate it once and give it to all shards as --data");
  refused({"--shard", "1/2", "--ranks", "2"}, "it runs in one process");
  std::ofstream(scratch_ / "shard.json") << "{}";
  refused({"--merge", scratch_, "--self-generate", "100"}, "the shards contain their own data");
}

}  // namespace
}  // namespace oscar
