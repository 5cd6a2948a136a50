// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/job/job_directory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "capture/files/atomic_file.h"
#include "linalg/base/error.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

const Json kRun = {{"model", {{"id", "m"}, {"revision", "1"}}}, {"tokens", 30000}};

auto Writes(const std::string& text) {
  return [text](const fs::path& path) { WriteFileAtomically(path, text); };
}

TEST(JobDirectory, ResumesWhereItStood) {
  const fs::path path = TestScratch("job") / "out.job";
  {
    JobDirectory job(path, kRun, false);
    EXPECT_EQ(job.finished_layers(), 0u);
    EXPECT_FALSE(job.HiddenPath());
    job.CommitLayer(Writes("layer 0"), Writes("hidden 1"), {{"seconds", 1}});
    job.CommitLayer(Writes("layer 1"), Writes("hidden 2"), {{"seconds", 2}});
  }
  JobDirectory job(path, kRun, false);
  EXPECT_EQ(job.finished_layers(), 2u);
  EXPECT_EQ(job.HiddenPath()->filename(), "hidden_00002.safetensors");
  EXPECT_FALSE(fs::exists(path / "hidden_00001.safetensors"));
  EXPECT_EQ(job.timings().size(), 2u);
  job.CommitLayer(Writes("layer 2"), {}, {});
  EXPECT_FALSE(job.HiddenPath());
}

TEST(JobDirectory, AFinishedJobOpensAgain) {
  const fs::path path = TestScratch("job") / "out.job";
  {
    JobDirectory job(path, kRun, false);
    job.CommitLayer(Writes("layer 0"), Writes("hidden 1"), {});
    job.CommitLayer(Writes("layer 1"), {}, {});
  }
  JobDirectory job(path, kRun, false);
  EXPECT_EQ(job.finished_layers(), 2u);
  EXPECT_FALSE(job.HiddenPath());
}

TEST(JobDirectory, LayersAddedSinceTheLastCommitAreNotFinished) {
  const fs::path path = TestScratch("job") / "out.job";
  {
    JobDirectory job(path, kRun, false);
    job.CommitLayer(Writes("layer 0"), Writes("hidden 1"), {});
    job.AddLayer(Writes("layer 1"), {});
    job.AddLayer(Writes("layer 2"), {});
    EXPECT_EQ(job.finished_layers(), 1u);
    EXPECT_EQ(job.HiddenPath()->filename(), "hidden_00001.safetensors");
  }
  JobDirectory job(path, kRun, false);
  EXPECT_EQ(job.finished_layers(), 1u);
  EXPECT_EQ(job.HiddenPath()->filename(), "hidden_00001.safetensors");
  job.AddLayer(Writes("layer 1 again"), {});
  job.AddLayer(Writes("layer 2 again"), {});
  job.Commit(Writes("hidden 3"));
  EXPECT_EQ(job.finished_layers(), 3u);
  EXPECT_EQ(job.HiddenPath()->filename(), "hidden_00003.safetensors");
  EXPECT_FALSE(fs::exists(path / "hidden_00001.safetensors"));
  EXPECT_EQ(ReadText(job.LayerPath(1)), "layer 1 again");
}

TEST(JobDirectory, AFileThatStateDoesNotNameIsNotBelieved) {
  const fs::path path = TestScratch("job") / "out.job";
  {
    JobDirectory job(path, kRun, false);
    job.CommitLayer(Writes("layer 0"), Writes("hidden 1"), {});
  }
  WriteFileAtomically(path / "layer_00001.safetensors",
                      "written, but the process died before state.json");
  std::ofstream(path / "hidden_00002.safetensors.tmp-1-1") << "half";
  JobDirectory job(path, kRun, false);
  EXPECT_EQ(job.finished_layers(), 1u);
  EXPECT_FALSE(fs::exists(path / "hidden_00002.safetensors.tmp-1-1"));
}

TEST(JobDirectory, AnotherRunIsRefusedWithTheDifferences) {
  const fs::path path = TestScratch("job") / "out.job";
  { JobDirectory job(path, kRun, false); }
  Json other = kRun;
  other["model"]["revision"] = "2";
  other["extra"] = true;
  other["model"]["weights"] = std::string(64, 'a');
  try {
    JobDirectory job(path, other, false);
    FAIL() << "accepted another run";
  } catch (const InputError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("model.revision: was \"1\", now \"2\""), std::string::npos) << text;
    EXPECT_NE(text.find("extra: was absent, now true"), std::string::npos) << text;
    EXPECT_NE(text.find("the files of the model have changed"), std::string::npos) << text;
    EXPECT_EQ(text.find("aaaa"), std::string::npos) << text;
    EXPECT_EQ(text.find("tokens"), std::string::npos) << text;
    EXPECT_EQ(error.remedy(), Remedy::kStartOver);
  }
  JobDirectory restarted(path, other, true);
  EXPECT_EQ(restarted.finished_layers(), 0u);
}

TEST(JobDirectory, DamagedFilesAreRefused) {
  const fs::path path = TestScratch("job") / "out.job";
  for (const char* victim : {"layer_00000.safetensors", "hidden_00001.safetensors", "state.json"}) {
    {
      JobDirectory job(path, kRun, true);
      job.CommitLayer(Writes("layer 0"), Writes("hidden 1"), {});
    }
    std::fstream(path / victim, std::ios::in | std::ios::out) << "X";
    EXPECT_THROW(JobDirectory(path, kRun, false), InputError) << victim;
    fs::resize_file(path / victim, 3);
    EXPECT_THROW(JobDirectory(path, kRun, false), InputError) << victim;
  }
}

TEST(JobDirectory, OfAnotherVersionIsRefusedBeforeItsFilesAreRead) {
  const fs::path path = TestScratch("job") / "out.job";
  {
    JobDirectory job(path, kRun, false, "h5");
    job.CommitLayer(Writes("layer 0"), {}, {});
  }
  Json state = ReadJsonFile((path / "state.json").string());
  state["version"] = 1;  // layers of version 1 were HDF5 files
  WriteFileAtomically(path / "state.json", state.dump());
  try {
    JobDirectory job(path, kRun, false);
    FAIL() << "accepted another version";
  } catch (const InputError& error) {
    EXPECT_EQ(error.what(),
              (path / "state.json").string() + ": written by another version of oscar");
    EXPECT_EQ(error.remedy(), Remedy::kStartOver);
  }
}

TEST(JobDirectory, WhatAKilledRemovalLeavesIsNoJob) {
  const fs::path path = TestScratch("job") / "out.job", removed = path.string() + ".tmp-removed";
  JobDirectory job(path, kRun, false);
  job.CommitLayer(Writes("layer 0"), Writes("hidden 1"), {});
  job.Remove();
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(fs::exists(removed));
  fs::create_directories(removed / "half");
  EXPECT_EQ(JobDirectory(path, kRun, false).finished_layers(), 0u);
  EXPECT_FALSE(fs::exists(removed)) << "the next job clears up";
}

TEST(JobDirectory, BecomesADirectoryOfItsFiles) {
  const fs::path scratch = TestScratch("job"), path = scratch / "out.job", moved = scratch / "out";
  JobDirectory job(path, kRun, false, "bin");
  job.CommitLayer(Writes("layer 0"), Writes("hidden 1"), {});
  EXPECT_EQ(job.LayerPath(0).filename(), "layer_00000.bin");
  EXPECT_EQ(job.files().layers.at(0).size, 7U);
  EXPECT_EQ(job.files().hidden.value().size, 8U);
  fs::create_directory(moved);
  EXPECT_THROW(job.MoveTo(moved), InputError);
  fs::remove(moved);
  job.MoveTo(moved);
  EXPECT_FALSE(fs::exists(path));
  const auto count = std::distance(fs::directory_iterator(moved), fs::directory_iterator());
  EXPECT_EQ(count, 2) << "what says where a run stands is gone";
}

TEST(JobDirectory, OfAProcessThatKeepsNothingWritesNothing) {
  NoJob job;
  const auto fails = [](const fs::path&) { FAIL() << "written"; };
  job.AddLayer(fails, {{"seconds", 1}});
  job.Commit(fails);
  EXPECT_EQ(job.finished_layers(), 0u);
  EXPECT_FALSE(job.HiddenPath());
  EXPECT_TRUE(job.timings().empty());
  EXPECT_STREQ(job.Stopped(3).what(), "stopped with all ranks");
}

TEST(JobDirectory, TwoProcessesCannotShareIt) {
  const fs::path path = TestScratch("job") / "out.job";
  JobDirectory job(path, kRun, false);
  EXPECT_THROW(JobDirectory(path, kRun, false), ResourceError);
}

}  // namespace
}  // namespace oscar
