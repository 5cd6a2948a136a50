// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/fitted_moments.h"

#include <filesystem>
#include <utility>

#include "calib/fit/fit.h"
#include "calib/moments/moments_file.h"
#include "export/artifact/artifact_format.h"

namespace oscar {

bool HasFit(const MethodContext& context) {
  const Artifact& artifact = context.artifact();
  const Json calibration = artifact.manifest().value("calibration", Json::object());
  return calibration.contains("composition") && calibration.contains("value_target") &&
         std::filesystem::exists(artifact.directory() / kMomentsFile);
}

LayerMoments ArtifactMoments(const MethodContext& context, size_t layer_index) {
  const LayerSpec& layer = context.layers()[layer_index];
  LayerMoments moments =
      MomentsReader(context.artifact().directory() / kMomentsFile).Read(layer.layer_id);
  if (!layer.attention.latent) return moments;
  return JointMoments(std::move(moments), ArtifactValueTarget(context.artifact()));
}

Composition ArtifactComposition(const Artifact& artifact) {
  const Json& calibration = JsonMember(artifact.manifest(), "calibration", kManifestFile);
  return CompositionFromName(JsonString(calibration, "composition", kManifestFile));
}

ValueTarget ArtifactValueTarget(const Artifact& artifact) {
  const Json& calibration = JsonMember(artifact.manifest(), "calibration", kManifestFile);
  return ValueTargetFromName(JsonString(calibration, "value_target", kManifestFile));
}

}  // namespace oscar
