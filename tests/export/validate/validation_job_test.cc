// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/validation_job.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/export/validate/tiny_validation.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

const ValidationOptions kOptions =
    QuickOptions({"hadamard+windows", "oscar_per_head+clip+windows", "kivi2"});

// Continues a validation and stops it after `layers` more layers. Returns null if it was stopped
// before the end.
Json Validated(const fs::path& job_path, int layers, std::vector<size_t>* ran = nullptr) {
  const TinyModel model;
  JobDirectory job(job_path, {{"of", "a test"}}, false, "h5");
  int done = 0;
  ValidationHooks hooks;
  hooks.job = &job;
  hooks.on_layer = [&](size_t layer, size_t, double) {
    ++done;
    if (ran != nullptr) ran->push_back(layer - 1);
  };
  hooks.stop_requested = [&] { return done == layers; };
  try {
    return ValidateModel(model.checkpoint, model.spec, at::kCPU, at::kFloat,
                         {.texts = TinyTexts(1, 2, 512), .own_words = TinyTexts(3, 1, 100)},
                         Artifact::Open(TinyArtifact()), kOptions, hooks);
  } catch (const Interrupted&) {
    return {};
  }
}

TEST(ValidationJob, WhatIsStoppedGoesOnToTheSameReport) {
  const fs::path scratch = TestScratch("validation-job");
  const Json whole = Validated(scratch / "whole", 100);
  ASSERT_FALSE(whole.is_null());
  EXPECT_TRUE(Validated(scratch / "job", 1).is_null());
  EXPECT_TRUE(Validated(scratch / "job", 1).is_null());  // one more layer
  std::vector<size_t> ran;
  EXPECT_EQ(Validated(scratch / "job", 100, &ran).dump(), whole.dump());
  EXPECT_EQ(ran, (std::vector<size_t>{2, 3}));
}

TEST(ValidationHooks, ALayerSaysHowFarItIs) {
  const TinyModel model;
  std::vector<std::vector<double>> layers(1);
  ValidationHooks hooks;
  std::vector<std::string> doing;
  hooks.on_part = [&](double part, const std::string& what) {
    layers.back().push_back(part);
    doing.push_back(what);
  };
  std::vector<double> scored;
  hooks.on_scored = [&](double part, const std::string&) { scored.push_back(part); };
  hooks.on_layer = [&](size_t, size_t, double) { layers.emplace_back(); };
  ValidateModel(model.checkpoint, model.spec, at::kCPU, at::kFloat, {.texts = TinyTexts(1, 2, 400)},
                Artifact::Open(TinyArtifact()), QuickOptions({"hadamard"}), hooks);
  layers.pop_back();
  ASSERT_EQ(layers.size(), model.spec.layers.size());
  for (const std::vector<double>& parts : layers) {
    EXPECT_GE(parts.size(), 4u);  // two texts, two arms
    EXPECT_TRUE(std::ranges::is_sorted(parts));
    EXPECT_GT(parts.front(), 0);
    EXPECT_EQ(parts.back(), 1);
  }
  EXPECT_EQ(doing.front(), "text 1 of 2: bf16");
  EXPECT_EQ(doing.back(), "text 2 of 2: hadamard");
  ASSERT_FALSE(scored.empty());
  EXPECT_EQ(scored.back(), 1);
}

TEST(ValidationJob, DamagedNumbersAreRefused) {
  const fs::path job = TestScratch("validation-job-damaged") / "job";
  EXPECT_TRUE(Validated(job, 1).is_null());
  fs::resize_file(job / "layer_00000.h5", 100);
  EXPECT_THROW(Validated(job, 100), InputError);
}

TEST(ValidationJob, NumbersOfOtherRowsAreRefused) {
  MeasuredRows rows;
  rows.rows.push_back({.position = 5, .length = 9, .headline = true});
  ArmErrors errors("an arm", rows);
  EXPECT_THROW(errors.AddPacked(std::vector<double>(3)), InputError);
  std::vector<double> packed(5 + 7 + 4 + 1);  // counts, sums of one head, of its cache, KL
  packed[1] = packed[2] = 1;
  errors.AddPacked(packed);
  EXPECT_EQ(errors.Packed(0), packed);
  packed.push_back(0);
  EXPECT_THROW(errors.AddPacked(packed), InputError);
}

}  // namespace
}  // namespace oscar
