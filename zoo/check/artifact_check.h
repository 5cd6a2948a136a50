// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The checks of an artifact that publishing, verifying and pulling share: digests, every rotation,
// the geometry and the report. They need only the artifact's files. The validation's figures are
// not measured again (see remeasure.h).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "capture/model/spec/model_spec.h"
#include "export/artifact/artifact_reader.h"
#include "zoo/check/validation_check.h"
#include "zoo/store/zoo_format.h"

namespace oscar {

// The geometry of a model directory: its config.json as a specification, and the file's digest.
struct ModelGeometry {
  ModelSpec spec;
  std::string config_sha256;
};
ModelGeometry ReadModelGeometry(const std::filesystem::path& model_directory);

struct CheckedArtifact {
  std::string identity;
  std::map<std::string, FileDigest> files;  // manifest.json, the files it names, and timings.json
                                            // if it exists
  Json manifest;
  ValidationCheck validation;  // the caller decides how to treat its problems
};

// Throws InputError for a damaged file, a file that the manifest does not name, a tensor that is
// not finite, missing or unknown, and a rotation that is not orthogonal. Also throws it if K or V
// lacks its partner, or if the layers or the geometry differ from those of the report or of the
// model. The message names the file (and the layer, side and head), what was expected and what was
// found.
CheckedArtifact CheckArtifact(const ArtifactFiles& files,
                              const std::optional<ModelGeometry>& model = std::nullopt,
                              const ValidationDemands& demands = {},
                              Digests digests = Digests::kCompare);
CheckedArtifact CheckArtifact(const std::filesystem::path& directory,
                              const std::optional<ModelGeometry>& model = std::nullopt,
                              const ValidationDemands& demands = {});

// Parts of CheckArtifact. Each throws InputError as above.
void CheckTensorsFinite(const std::filesystem::path& rotations, const Json& geometry,
                        const std::vector<std::string>& choices);
std::vector<StoredLayer> CheckLayers(
    const Artifact& artifact);  // the layers are returned without their matrices
void CheckGeometry(const Artifact& artifact, const ModelGeometry& model);

std::string ConfigDigest(const Json& manifest);  // model.config.sha256, or ""

}  // namespace oscar
