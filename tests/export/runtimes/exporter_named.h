// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "export/artifact/artifact_reader.h"
#include "export/runtimes/exporter.h"
#include "tests/calib/moments/sample_moments.h"
#include "tests/export/artifact/chosen_artifact.h"

namespace oscar {

// Returns the row of AllExporters() that --to calls `name`.
inline const Exporter& ExporterNamed(std::string_view name) {
  const auto row = std::ranges::find(AllExporters(), name, &Exporter::name);
  if (row == AllExporters().end()) throw std::logic_error("no exporter " + std::string(name));
  return *row;
}

// Writes an artifact of two layers from `first_layer` on, with one rotation and one clip ratio. Its
// 2 KV heads have keys of dimension `head_dim` and values of dimension 32.
inline Artifact WideArtifact(const std::filesystem::path& path, Consumer consumer,
                             int first_layer = 0, int64_t head_dim = 64) {
  std::vector<SampleRecipe> recipes(2, SampleRecipes()[0]);
  for (SampleRecipe& recipe : recipes) recipe.k_clip = recipe.v_clip = {0.9};
  WriteChosenArtifact(path, recipes, {.consumer = consumer, .fold = false}, [&](int i) {
    return SampleMoments(first_layer + i, 60, 4 + static_cast<unsigned>(i), head_dim, 32);
  });
  return Artifact::Open(path);
}

// Returns the rotation twice, once for each of two heads.
inline std::vector<float> Twice(const std::vector<double>& rotation) {
  std::vector<float> twice(rotation.begin(), rotation.end());
  twice.insert(twice.end(), rotation.begin(), rotation.end());
  return twice;
}

}  // namespace oscar
