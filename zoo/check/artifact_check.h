// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// All checks that a zoo makes on an artifact, from its files alone: digests, every rotation, the
// geometry, the report. Publishing, verifying and pulling use them. Measurements that the manifest
// or report claims are not trusted.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "capture/model/spec/model_spec.h"
#include "export/artifact/artifact_reader.h"
#include "zoo/check/validation_check.h"
#include "zoo/store/zoo_format.h"

namespace oscar {

// The geometry of a model directory: its config as a specification, and the digest of config.json.
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
  ValidationCheck validation;  // the caller decides what to do about its problems
};

// Throws InputError with the file (and layer, side, head), what was expected and what was found.
// Causes: a damaged or foreign file, a file the manifest does not name, a tensor that is not
// finite, missing or unknown, a rotation that is not orthogonal, K without V, a layer list or
// geometry that differs from the report's or the model's.
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
