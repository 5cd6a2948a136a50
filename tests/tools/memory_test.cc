// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the peak memory that --dry-run predicts with real runs, for models of 4 and 24 layers. A
// run that does not fit into its control group is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "capture/files/atomic_file.h"
#include "capture/files/strict_json.h"
#include "linalg/base/error.h"
#include "tests/capture/model/synthetic_model.h"
#include "tests/support/run_program.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

struct Run {
  std::string log;
  double peak = 0;  // maximum resident bytes
};

Run Calibrate(const fs::path& model, const std::string& choose, const std::string& extra,
              const fs::path& scratch) {
  const fs::path log = scratch / "log";
  const std::string data = scratch / "data.jsonl", output = model.string() + "-oscar";
  const pid_t child = fork();
  if (child == 0) {
    if (!std::freopen(log.c_str(), "w", stderr) || !std::freopen("/dev/null", "w", stdout))
      _exit(126);
    execl(OSCAR_CALIBRATE, "oscar-calibrate", model.c_str(), "--data", data.c_str(), "-o",
          output.c_str(), "--device", "cpu", "--whole-documents", choose.c_str(), "--log-format",
          "json", extra.empty() ? nullptr : extra.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  struct rusage usage {};
  wait4(child, &status, 0, &usage);
  std::ifstream file(log);
  Run run{{std::istreambuf_iterator<char>(file), {}},
          1024.0 * static_cast<double>(usage.ru_maxrss)};
  EXPECT_EQ(status, 0) << run.log;
  return run;
}

Json Plan(const std::string& log) {
  size_t begin = 0;
  while (begin < log.size()) {
    const size_t end = log.find('\n', begin);
    const Json line = ParseStrictJson(log.substr(begin, end - begin), "log line");
    if (line.at("event") == "plan") return line.at("fields");
    begin = end + 1;
  }
  ADD_FAILURE() << "no plan in the log: " << log;
  return {{"peak_host_bytes", 0}, {"seconds", 0}, {"auto_seconds", 0}};
}

void WriteData(const fs::path& path, int documents, int tokens) {
  std::string rows;
  for (int document = 0; document < documents; ++document) {
    Json ids = Json::array();
    for (int i = 0; i < tokens; ++i) ids.push_back((i * 7919 + document * 104729) % 500);
    rows += Json{{"input_ids", ids}}.dump() + "\n";
  }
  WriteFileAtomically(path, rows);
}

class CalibrationMemory : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the sanitizer's own memory is in the way";
#endif
  }

  fs::path Model(const Json& config) const {
    fs::path model = scratch_ / std::to_string(config.at("num_hidden_layers").get<int64_t>());
    fs::create_directories(model);
    WriteSyntheticModel(model, config);
    return model;
  }

  Json PlanOf(const fs::path& model, const std::string& choose) const {
    return Plan(Calibrate(model, choose, "--dry-run", scratch_).log);
  }

  // Runs what was planned and returns its peak memory, which must agree with the plan.
  double PeakAsIn(const Json& plan, const fs::path& model, const std::string& choose) const {
    const double planned = plan.at("peak_host_bytes");
    const double peak = Calibrate(model, choose, "", scratch_).peak;
    std::printf("[  memory  ] %s %s: planned %.1f MB, measured %.1f MB\n", model.filename().c_str(),
                choose.c_str(), planned / 1e6, peak / 1e6);
    // For LibTorch's first-use allocations, the plan assumes the largest that were observed.
    constexpr double kLibTorchDiffers = 20 << 20;
    EXPECT_LE(peak, 1.15 * planned + kLibTorchDiffers);
    // Identical runs differ by a tenth, as threads may or may not hold their buffers at once.
    EXPECT_LE(planned, 1.25 * peak + kLibTorchDiffers);
    fs::remove_all(model.string() + "-oscar");
    return peak;
  }

  fs::path scratch_ = TestScratch("calibration-memory");
};

TEST_F(CalibrationMemory, IsAsPlannedAndDoesNotGrowWithLayers) {
  WriteData(scratch_ / "data.jsonl", 12, 300);
  std::vector<double> peak, weights;
  for (const int64_t layers : {4, 24}) {
    const fs::path model = Model(SyntheticConfig(layers, 512, 2048, 8, 4, 64, 500));
    peak.push_back(PeakAsIn(PlanOf(model, "--no-auto"), model, "--no-auto"));
    weights.push_back(static_cast<double>(fs::file_size(model / "model.safetensors")));
  }
  // Identical runs differ by up to 40 MB of thread buffers; the 20 additional layers hold 157 MB.
  EXPECT_LT(peak[1] - peak[0], (weights[1] - weights[0]) / 3);
}

// In long texts, attention scores are the largest part of an automatic search. The arms that are
// measured afterwards count, too: for sglang, which takes one clip ratio per side, these are 16
// caches.
TEST_F(CalibrationMemory, CountsTheAutomaticSearch) {
  WriteData(scratch_ / "data.jsonl", 4, 2000);
  const fs::path model = Model(SyntheticConfig(1, 512, 1024, 16, 4, 64, 500));
  const Json without = PlanOf(model, "--no-auto");
  EXPECT_EQ(without.at("auto_seconds"), 0);
  PeakAsIn(without, model, "--no-auto");
  for (const auto& [choose, more] : {std::pair("--for=any", 1.0), std::pair("--for=sglang", 1.1)}) {
    const Json plan = PlanOf(model, choose);
    PeakAsIn(plan, model, choose);
    EXPECT_GT(plan.at("peak_host_bytes").get<double>(),
              more * without.at("peak_host_bytes").get<double>());
    EXPECT_GT(plan.at("auto_seconds"), 0);
    EXPECT_GT(plan.at("seconds"), plan.at("auto_seconds"));
  }
}

// A memory control group (cgroup v1 or v2) limited to `bytes`. The destructor removes its folder.
class ControlGroup {
 public:
  explicit ControlGroup(uint64_t bytes) {
    for (const auto& [root, limit] : {std::pair("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                                      std::pair("/sys/fs/cgroup", "memory.max")}) {
      std::error_code refused;
      const fs::path folder = fs::path(root) / fmt::format("oscar-test-{}", getpid());
      if (!fs::exists(fs::path(root) / "cgroup.procs", refused) ||
          !fs::create_directory(folder, refused))
        continue;
      std::ofstream file(folder / limit);
      if (file << bytes << std::flush) {
        folder_ = folder;
        return;
      }
      rmdir(folder.c_str());
    }
  }
  ~ControlGroup() {
    if (!folder_.empty()) rmdir(folder_.c_str());
  }
  const fs::path& folder() const { return folder_; }  // empty if none could be made

 private:
  fs::path folder_;
};

TEST_F(CalibrationMemory, WhatAControlGroupLeavesNoRoomForIsRefused) {
  WriteData(scratch_ / "data.jsonl", 2, 1000);
  const fs::path model = Model(SyntheticConfig(2, 512, 1024, 16, 4, 64, 500));
  const uint64_t planned = PlanOf(model, "--for=any").at("peak_host_bytes");
  const ControlGroup group(planned * 6 / 10);  // the kernel would kill a run at this limit
  if (group.folder().empty()) GTEST_SKIP() << "no control group can be made here";
  const std::string output = model.string() + "-oscar";
  const ProgramExit run = RunProgram(
      "/bin/sh", {"-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\"", group.folder().string(),
                  OSCAR_CALIBRATE, model.string(), "--data", (scratch_ / "data.jsonl").string(),
                  "-o", output, "--device", "cpu", "--for=any"});
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::kResources)) << run.all();
  EXPECT_NE(run.err.find("GB may be used"), std::string::npos) << run.err;
  EXPECT_FALSE(fs::exists(output));
}

}  // namespace
}  // namespace oscar
