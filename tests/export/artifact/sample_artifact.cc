// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/artifact/sample_artifact.h"

#include <fstream>
#include <iterator>

#include "calib/job/refit_layer.h"
#include "tests/calib/moments/sample_moments.h"

namespace oscar {

LayerResult SampleLayer(size_t index, unsigned seed) {
  LayerResult layer = RefitLayer(
      SampleMoments(index == 0 ? 3 : 11, 50, seed + static_cast<unsigned>(index)), {}, {});
  layer.clip_candidates = {0.9, 0.96, 1.0};
  for (SideResult* side : {&layer.k, &layer.v, &layer.k_shared, &layer.v_shared}) {
    side->clip_error = {0.2, index == 0 ? 0.1 : 0.3, 0.25};
    side->clip_threshold = {1.0, 2.0};
  }
  ArmResult arm;
  arm.name = "naive";
  arm.rows = 10;
  arm.kl_mean = index == 0 ? 0.5 : 0.25;
  arm.rows_beyond = 4;
  arm.kl_mean_beyond = arm.kl_mean + 0.125;
  arm.kl_max = index == 0 ? 1 : 2;
  layer.arms = {arm};
  return layer;
}

ArtifactInfo SampleInfo() {
  ArtifactInfo info;
  info.model = {{"id", "example/Tiny"}, {"revision", "abc"}};
  info.data = {{"name", "sample"}};
  info.calibration = {{"value_target", "attention_output"}, {"composition", "r_h_pbr"}};
  info.program = {{"name", "oscar"}};
  info.serving = {{"quant_group_size", 0}, {"sink_tokens", 64}, {"recent_tokens", 256}};
  info.timings = {{"seconds", 1}};
  return info;
}

Json WriteSampleArtifact(const std::filesystem::path& path, unsigned seed,
                         const ArtifactInfo& info) {
  return WriteArtifact(path, info, {2, [seed](size_t index) { return SampleLayer(index, seed); }});
}

std::map<std::string, std::string> FileBytes(const std::filesystem::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

}  // namespace oscar
