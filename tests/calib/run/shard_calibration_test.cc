// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that shards of a calibration, run one after another and merged, give the same layer files
// and loss as one process, byte for byte, for every kind of layer.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <optional>

#include "calib/run/calibrate.h"
#include "calib/run/plan.h"
#include "calib/run/shard_directory.h"
#include "linalg/base/error.h"
#include "tests/calib/run/short_texts.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

class ShardCalibration : public testing::Test {
 protected:
  // Uses one thread; the tests of the program use more.
  ShardCalibration() { at::set_num_threads(1); }

  void Open(const ShortRun& of) {
    of_ = of;
    const fs::path model = TestData("families/" + of.family + "/config.json").parent_path();
    spec_ = ReadModelSpec(model);
    checkpoint_.emplace(Checkpoint::Open(model));
  }

  // Returns the input for all documents or, if `count` is given, for shard `own` (from 0) of
  // `count`.
  CalibrationInput InputOf(int count = 0, size_t own = 0) const {
    return ShortInput(of_, spec_, *checkpoint_, count, own);
  }

  // Contents by name: the layer files, and the loss of the text.
  using Results = std::map<std::string, std::string>;
  Results Run(const CalibrationInput& input, const std::string& name) const {
    JobDirectory job(scratch_ / name, {}, false);
    RunCalibration(input, job, {});
    Results results;
    for (size_t i = 0; i < job.finished_layers(); ++i)
      results[LayerFileName(i)] = ReadText(job.LayerPath(i));
    if (const auto loss = LossOfText(input))
      results["loss"] = fmt::format("{:a} {}", loss->mean, loss->tokens);
    return results;
  }

  // Makes a shard. If `stops`, stops after each layer and resumes.
  fs::path MakeShard(int count, size_t own, bool stops = false) const {
    const ShardPlace place{static_cast<int>(own) + 1, count};
    const fs::path path = scratch_ / place.Name();
    while (true) {
      const CalibrationInput input = InputOf(count, own);
      JobDirectory job(fs::path(path.string() + ".job"), place.Name(), false);
      CalibrationHooks hooks;
      hooks.stop_requested = [&] { return stops; };
      try {
        RunCalibration(input, job, hooks);
      } catch (const Interrupted&) {
        continue;
      }
      EXPECT_FALSE(LossOfText(input).has_value());
      PublishShard(job, place, input.ranks.own(), RunJson(), {{"weights", "digest"}}, {}, path);
      return path;
    }
  }
  Json RunJson() const {
    return {{"machine", {{"token_chunk", of_.token_chunk}, {"query_chunk", 512}}}};
  }

  Results Merge(const std::vector<fs::path>& shards, const std::string& name) const {
    CalibrationInput input = InputOf();
    const auto set = std::make_shared<ShardSet>(ShardSet::Open(shards));
    set->CheckRun(RunJson(), input.source->layers().size(), input.lengths());
    input.source = std::make_shared<ShardSource>(input.source, set);
    return Run(input, name);
  }

  void ExpectSame(const ShortRun& of, const std::vector<int>& counts, bool stops = false) {
    Open(of);
    const Results one = Run(InputOf(), "one");
    ASSERT_GT(one.size(), 1U);
    for (const int count : counts) {
      std::vector<fs::path> shards;
      for (size_t own = 0; own < static_cast<size_t>(count); ++own)
        shards.insert(shards.begin(), MakeShard(count, own, stops));
      const Results merged = Merge(shards, fmt::format("of{}", count));
      ASSERT_EQ(merged.size(), one.size());
      for (const auto& [name, bytes] : one)
        EXPECT_TRUE(merged.at(name) == bytes) << of.family << ", " << count << ": " << name;
    }
  }

  fs::path scratch_ = TestScratch("shards");
  ShortRun of_;
  ModelSpec spec_;
  std::optional<Checkpoint> checkpoint_;
};

TEST_F(ShardCalibration, OfDenseLayersLeavesTheBytesOfOne) {
  ExpectSame({.family = "llama-yarn"}, {1, 4});
}
TEST_F(ShardCalibration, WithRefinementLeavesTheBytesOfOne) {
  ExpectSame({.family = "llama-linear", .refine = 2}, {2});
}
TEST_F(ShardCalibration, WithQueriesThatDoNotCountLeavesTheBytesOfOne) {
  ExpectSame({.family = "llama-linear", .refine = 2, .masked = true}, {3});
}
TEST_F(ShardCalibration, WithQueriesThatDoNotCountAndASharedCacheLeavesTheBytesOfOne) {
  ExpectSame({.family = "gemma4_text-ple", .masked = true}, {2});
}
TEST_F(ShardCalibration, OfLatentLayersLeavesTheBytesOfOne) {
  ExpectSame({.family = "deepseek_v3", .token_chunk = 16}, {3});
}
TEST_F(ShardCalibration, OfLayersThatShareACacheLeavesTheBytesOfOne) {
  ExpectSame({.family = "gemma4_text-ple"}, {3});
}
// Experts process the tokens of all documents in a stretch (here 256 tokens) together.
TEST_F(ShardCalibration, OfExpertsLeavesTheBytesOfOne) {
  ExpectSame({.family = "qwen3_moe", .token_chunk = 16}, {4});
}
TEST_F(ShardCalibration, ThatIsStoppedBehindEveryLayerLeavesTheBytesOfOne) {
  ExpectSame({.family = "llama-yarn"}, {2}, /*stops=*/true);
}

TEST_F(ShardCalibration, OfExpertsIsOfWholeStretches) {
  Open({.family = "qwen3_moe", .token_chunk = 64});  // two stretches
  EXPECT_EQ(InputOf(2, 0).ranks.shares.size(), 2U);
  EXPECT_THROW(InputOf(3, 0), UsageError);
  Open({.family = "llama-yarn", .token_chunk = 64});
  EXPECT_EQ(InputOf(3, 0).ranks.shares.size(), 3U);
}

TEST_F(ShardCalibration, IsAsLargeAsPlanned) {
  Open({.family = "exaone4"});
  const CalibrationPlan plan = PlanCalibration(InputOf(2, 1));
  uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(MakeShard(2, 1))) bytes += entry.file_size();
  EXPECT_NEAR(static_cast<double>(bytes) / static_cast<double>(plan.disk_artifact), 1, 0.2);
}

class ShardRefusals : public ShardCalibration {
 protected:
  ShardRefusals() { Open({.family = "llama-yarn", .chooses = false}); }

  std::string RefusalOf(const std::vector<fs::path>& shards) const {
    return ErrorOf<InputError>([&] { ShardSet::Open(shards); });
  }
};

TEST_F(ShardRefusals, NameTheShardThatIsMissingTwiceThereOrForeign) {
  const fs::path a = MakeShard(3, 0), b = MakeShard(3, 1), c = MakeShard(3, 2);
  EXPECT_EQ(RefusalOf({c, a, b}), "");
  EXPECT_EQ(RefusalOf({a, b}), "shard 3 of 3 is missing");
  EXPECT_EQ(RefusalOf({c}), "shards 1, 2 of 3 are missing");
  const fs::path copy = scratch_ / "copy";
  fs::copy(b, copy);
  EXPECT_EQ(RefusalOf({a, copy, b, c}),
            "shard 2 of 3 was given twice: " + copy.string() + " and " + b.string());
  EXPECT_EQ(RefusalOf({b, copy, c}),
            "shard 2 of 3 was given twice: " + b.string() + " and " + copy.string());
  const fs::path whole = MakeShard(1, 0);
  EXPECT_TRUE(Says(RefusalOf({a, b, c, whole}), "they belong to different runs"));
  EXPECT_TRUE(
      Says(RefusalOf({a, b, scratch_ / "nothing"}), "nothing: not a shard of a calibration"));
  JobDirectory unfinished(fs::path(c.string() + ".job"), {}, false);
  EXPECT_TRUE(
      Says(RefusalOf({a, b, unfinished.path()}), ".job: not finished; run that shard again"));

  Json other = RunJson();
  other["options"] = {{"bits", 3}};
  const auto check = [&](const Json& run, size_t layers) {
    const std::vector<int64_t> lengths = InputOf().lengths();
    return ErrorOf<InputError>([&] { ShardSet::Open({a, b, c}).CheckRun(run, layers, lengths); });
  };
  const size_t layers = spec_.layers.size();
  EXPECT_EQ(check(RunJson(), layers), "");
  EXPECT_TRUE(Says(check(other, layers), a.string() + " belongs to a run with other options"));
  EXPECT_TRUE(Says(check(other, layers), "options.bits: was absent, now 3"));
  EXPECT_TRUE(
      Says(check(RunJson(), layers + 1), "its documents or layers differ from those of shard 1"));
  EXPECT_EQ(ErrorOf<InputError>([&] {
              ShardSet::Open({a, b, c}).CheckWeights({{"weights", "digest"}});
            }),
            "");
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] {
                     ShardSet::Open({a, b, c}).CheckWeights({{"weights", "another"}});
                   }),
                   a.string() + " read a different weights"));
}

TEST_F(ShardRefusals, NameTheFileThatIsDamaged) {
  const std::vector<fs::path> shards = {MakeShard(2, 0), MakeShard(2, 1)};
  const auto refusal = [&] { return ErrorOf<InputError>([&] { Merge(shards, "merged"); }); };
  const auto with = [&](const fs::path& file, const std::string& bytes) {
    const std::string whole = ReadText(file);
    std::ofstream(file, std::ios::binary) << bytes;
    const std::string said = refusal();
    std::ofstream(file, std::ios::binary) << whole;
    return said;
  };
  const auto changed = [](std::string bytes) {
    bytes[bytes.size() / 2] ^= 1;
    return bytes;
  };
  const fs::path layer = shards[1] / LayerFileName(1),
                 hidden = shards[1] / HiddenFileName(spec_.layers.size());
  EXPECT_TRUE(Says(with(layer, changed(ReadText(layer))), layer.string() + ": damaged"));
  EXPECT_TRUE(Says(with(layer, "x"), layer.string() + ": has 1 bytes"));
  EXPECT_TRUE(Says(with(hidden, changed(ReadText(hidden))), hidden.string() + ": damaged"));
  const fs::path document = shards[1] / "shard.json";
  for (const char* member : {"run", "weights"}) {
    Json json = ReadJsonFile(document.string());
    json[member] = 1;
    EXPECT_TRUE(Says(with(document, json.dump()),
                     fmt::format("shard.json: {}: expected an object", member)));
    json.erase(member);
    EXPECT_TRUE(Says(with(document, json.dump()), member));
  }
  const std::string bytes = ReadText(layer);
  fs::remove(layer);
  EXPECT_TRUE(Says(refusal(), layer.string() + ": missing"));
  std::ofstream(layer, std::ios::binary) << bytes;
  EXPECT_EQ(refusal(), "");  // the restored file is accepted
}

}  // namespace
}  // namespace oscar
