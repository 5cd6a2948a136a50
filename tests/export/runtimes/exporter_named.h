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

// The row of AllExporters() that --to names so.
inline const Exporter& ExporterNamed(std::string_view name) {
  const auto row = std::ranges::find(AllExporters(), name, &Exporter::name);
  if (row == AllExporters().end()) throw std::logic_error("no exporter " + std::string(name));
  return *row;
}

// Two layers from `first_layer` on, with 2 KV heads of `head_dim` and 32, one rotation and one clip
// ratio.
inline Artifact WideArtifact(const std::filesystem::path& path, Consumer consumer,
                             int first_layer = 0, int64_t head_dim = 64) {
  std::vector<SampleRecipe> recipes(2, SampleRecipes()[0]);
  for (SampleRecipe& recipe : recipes) recipe.k_clip = recipe.v_clip = {0.9};
  WriteChosenArtifact(path, recipes, {.consumer = consumer, .fold = false}, [&](int i) {
    return SampleMoments(first_layer + i, 60, 4 + static_cast<unsigned>(i), head_dim, 32);
  });
  return Artifact::Open(path);
}

// One rotation for each of two heads.
inline std::vector<float> Twice(const std::vector<double>& rotation) {
  std::vector<float> twice(rotation.begin(), rotation.end());
  twice.insert(twice.end(), rotation.begin(), rotation.end());
  return twice;
}

}  // namespace oscar
