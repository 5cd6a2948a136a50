// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The bundled model, calibrated once per test program, and the ways to spoil its artifact.
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
  TinyModel();                                        // as bundled
  explicit TinyModel(std::filesystem::path changed);  // a changed copy of it
};

// Token ids of the built-in text, cut to sequences: of calibration (0) or evaluation (1).
std::vector<std::vector<int32_t>> TinyTexts(int which, int64_t sequences, int64_t length);

// An artifact of the bundled model from 4 x 1024 tokens of the built-in corpus.
const std::filesystem::path& TinyArtifact();

// The same of a changed copy.
std::filesystem::path TinyArtifactOf(const TinyModel& model, const std::string& name);

// A copy of it whose rotations are `change`d (name -> row-major values) and whose digests are
// right again, as of an artifact that was made wrong and not damaged later.
using RotationTensors = std::map<std::string, std::vector<float>>;
std::filesystem::path SpoiledArtifact(const std::string& name,
                                      const std::function<void(RotationTensors&)>& change);

}  // namespace oscar
