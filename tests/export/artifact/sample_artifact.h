// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes artifacts of random layers, for tests that need no model.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "calib/job/layer_result.h"
#include "export/artifact/artifact_writer.h"

namespace oscar {

// Returns layer 3 (`index` 0) or layer 11, fitted to SampleMoments, with clip curves and one arm.
LayerResult SampleLayer(size_t index, unsigned seed);
ArtifactInfo SampleInfo();
Json WriteSampleArtifact(const std::filesystem::path& path, unsigned seed = 1,
                         const ArtifactInfo& info = SampleInfo());

std::map<std::string, std::string> FileBytes(const std::filesystem::path& directory);

}  // namespace oscar
