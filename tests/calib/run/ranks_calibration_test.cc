// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that a calibration by several processes, connected over the loopback address, leaves the
// same job files as one process, byte for byte, for every kind of layer. Trap: processes are
// forked, so nothing here may compute before that.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <optional>

#include "calib/run/calibrate.h"
#include "capture/ranks/rank_group.h"
#include "linalg/base/error.h"
#include "tests/calib/run/short_texts.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Runs rank `rank` of `size` and returns the exit code of its process.
int RunRank(const ShortRun& of, const fs::path& job, int rank, int size, int port, bool stop) {
  const ModelSpec spec =
      ReadModelSpec(TestData("families/" + of.family + "/config.json").parent_path());
  const Checkpoint checkpoint =
      Checkpoint::Open(TestData("families/" + of.family + "/config.json").parent_path());
  std::optional<RankGroup> group;
  if (size > 1) {
    group.emplace(RankPlace{rank, size, rank, size, "127.0.0.1", port, false, "test"},
                  std::chrono::seconds(60));
    group->StartWatch(std::chrono::seconds(60), [](const RankWatch::End& end) {
      fprintf(stderr, "%s\n", end.message.c_str());
    });
    group->OpenChannel(at::kCPU);
  }
  const CalibrationInput input = ShortInput(of, spec, checkpoint, size, static_cast<size_t>(rank),
                                            group ? &*group : &OneRank());
  CalibrationHooks hooks;
  hooks.on_experts = [&](const LayerSpec& layer, const std::vector<int64_t>& tokens) {
    if (rank != 0) return;
    std::ofstream(job.string() + ".experts", std::ios::app)
        << layer.layer_id << ' ' << Json(tokens).dump() << '\n';
  };
  hooks.stop_requested = [&] { return stop && rank == size - 1; };
  hooks.on_weights_read = [&](uint64_t bytes) {
    std::ofstream(fmt::format("{}.read{}", job.string(), rank)) << bytes;
  };
  try {
    const auto directory =
        rank == 0 ? std::make_unique<JobDirectory>(job, Json(), false) : std::make_unique<NoJob>();
    RunCalibration(input, *directory, hooks);
    const std::optional<TextLoss> loss = LossOfText(input);
    if (loss)
      std::ofstream(job.string() + ".loss") << fmt::format("{:a} {}", loss->mean, loss->tokens);
  } catch (const Interrupted&) {
    return 130;
  } catch (const std::exception& error) {
    fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 1;
  }
  return 0;
}

// Returns a free port outside the ephemeral range, so that no client is given it.
int FreePort() {
  static int port = 21000 + getpid() % 10000;
  while (true) {
    ++port;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    const bool free = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(fd);
    if (free) return port;
  }
}

// Runs all ranks and returns their exit codes.
std::vector<int> RunAll(const ShortRun& of, const fs::path& job, int size, bool stop = false) {
  const int port = FreePort();
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      int code = 1;
      try {
        code = RunRank(of, job, rank, size, port, stop);
      } catch (const std::exception& error) {
        fprintf(stderr, "rank %d: %s\n", rank, error.what());
      }
      fflush(stderr);
      _exit(code);
    }
    ranks.push_back(child);
  }
  std::vector<int> codes;
  for (const pid_t child : ranks) {
    int status = 0;
    waitpid(child, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  return codes;
}

// Returns the contents of the files that a job leaves, except for times.
std::map<std::string, std::string> Files(const fs::path& job) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(job)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("layer_")) files[name] = ReadText(entry.path());
  }
  for (const char* beside : {".loss", ".experts"}) files[beside] = ReadText(job.string() + beside);
  return files;
}

// Returns the bytes of weights that all ranks together read from disk.
uint64_t BytesRead(const fs::path& job, int size) {
  uint64_t bytes = 0;
  for (int rank = 0; rank < size; ++rank)
    bytes += std::stoull(ReadText(fmt::format("{}.read{}", job.string(), rank)));
  return bytes;
}

void ExpectSame(const ShortRun& of, const std::vector<int>& sizes) {
  const fs::path scratch = TestScratch("ranks_" + of.family + std::to_string(of.refine));
  ASSERT_EQ(RunAll(of, scratch / "one", 1), std::vector<int>{0});
  const auto expected = Files(scratch / "one");
  ASSERT_GT(expected.size(), 2U);
  for (const int size : sizes) {
    const fs::path job = scratch / fmt::format("of{}", size);
    ASSERT_EQ(RunAll(of, job, size), std::vector<int>(static_cast<size_t>(size), 0)) << of.family;
    const auto files = Files(job);
    EXPECT_EQ(BytesRead(job, size), BytesRead(scratch / "one", 1)) << "once on a machine";
    ASSERT_EQ(files.size(), expected.size());
    for (const auto& [name, bytes] : expected)
      EXPECT_TRUE(files.at(name) == bytes) << of.family << ", " << size << " ranks: " << name;
  }
}

TEST(RanksCalibration, OfDenseLayersLeavesTheBytesOfOne) {
  ExpectSame({.family = "llama-yarn"}, {2, 3, 4, 5});
}
TEST(RanksCalibration, WithRefinementLeavesTheBytesOfOne) {
  ExpectSame({.family = "llama-linear", .refine = 2}, {2});
}
TEST(RanksCalibration, WithQueriesThatDoNotCountLeavesTheBytesOfOne) {
  ExpectSame({.family = "llama-linear", .refine = 2, .masked = true}, {3});
}
TEST(RanksCalibration, OfExpertsLeavesTheBytesOfOne) {
  ExpectSame({.family = "qwen3_moe"}, {2, 3, 4});
  ExpectSame({.family = "gpt_oss", .expert_bytes = 1 << 20}, {3});
  ExpectSame({.family = "qwen3_moe", .token_chunk = 16}, {3});  // several stretches
}
TEST(RanksCalibration, OfLatentLayersLeavesTheBytesOfOne) {
  ExpectSame({.family = "deepseek_v3"}, {2, 4});
}
TEST(RanksCalibration, OfLayersThatShareACacheLeavesTheBytesOfOne) {
  ExpectSame({.family = "gemma4_text-ple"}, {2, 3});
}
TEST(RanksCalibration, OfLinearAttentionLeavesTheBytesOfOne) {
  ExpectSame({.family = "qwen3_next"}, {3});
}

TEST(RanksCalibration, ThatWasStoppedGoesOnWithAnotherNumberOfRanks) {
  const fs::path scratch = TestScratch("ranks_resume");
  const ShortRun of{.family = "qwen3_moe"};
  ASSERT_EQ(RunAll(of, scratch / "one", 1), std::vector<int>{0});
  ASSERT_EQ(RunAll(of, scratch / "some", 2, /*stop=*/true), (std::vector<int>{130, 130}));
  const size_t done = Files(scratch / "some").size();
  ASSERT_GT(done, 2U);
  ASSERT_LT(done, Files(scratch / "one").size());
  ASSERT_EQ(RunAll(of, scratch / "some", 3), (std::vector<int>{0, 0, 0}));
  auto expected = Files(scratch / "one"), files = Files(scratch / "some");
  expected.erase(".experts");  // lists the layer that ran twice
  files.erase(".experts");
  EXPECT_TRUE(files == expected);
}

}  // namespace
}  // namespace oscar
