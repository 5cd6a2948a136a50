// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Loads the bundled model, calibrates it once per test program, and spoils its artifact.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/model/spec/model_spec.h"
#include "export/artifact/artifact_reader.h"

namespace oscar {

struct TinyModel {
  std::filesystem::path directory;
  ModelSpec spec;
  Checkpoint checkpoint;
  TinyModel();                                        // the bundled model
  explicit TinyModel(std::filesystem::path changed);  // a changed copy of it
};

// Returns token ids of a built-in text, cut to sequences: of the calibration text if `which` is 0,
// otherwise of the evaluation text.
std::vector<std::vector<int32_t>> TinyTexts(int which, int64_t sequences, int64_t length);

// Returns an artifact of the bundled model, calibrated on 4 x 1024 tokens of the built-in text.
const std::filesystem::path& TinyArtifact();

// Does the same for a changed copy of the model.
std::filesystem::path TinyArtifactOf(const TinyModel& model, const std::string& name);

// Returns a copy of TinyArtifact() with rotations changed by `change` (name -> row-major values).
// Its digests are correct, as if the artifact had been made wrong, not damaged later.
using RotationTensors = std::map<std::string, std::vector<float>>;
std::filesystem::path SpoiledArtifact(const std::string& name,
                                      const std::function<void(RotationTensors&)>& change);

}  // namespace oscar
