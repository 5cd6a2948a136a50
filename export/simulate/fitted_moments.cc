// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See fitted_moments.h.
#include "export/simulate/fitted_moments.h"

#include <filesystem>

#include "calib/moments_file.h"
#include "export/artifact/artifact_format.h"

namespace oscar {

bool HasFit(const MethodContext& context) {
  const Artifact& artifact = context.artifact();
  const Json calibration = artifact.manifest().value("calibration", Json::object());
  return calibration.contains("composition") && calibration.contains("value_target") &&
         std::filesystem::exists(artifact.directory() / kMomentsFile);
}

LayerMoments ArtifactMoments(const MethodContext& context, size_t layer_index) {
  return MomentsReader(context.artifact().directory() / kMomentsFile)
      .Read(context.layers()[layer_index].layer_id);
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
