// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts an artifact into SGLang's rotation files (export/formats), and moments of upstream OSCAR
// into an artifact.
#pragma once

#include <filesystem>

#include "export/artifact/artifact_reader.h"
#include "export/formats/sglang.h"

namespace oscar {

// Returns shared and per-head rotations of every layer with the recommended serving settings.
// SGLang takes one clip ratio for all layers, so this uses the manifest's best ratio for shared
// rotations.
SglangExport ToSglang(const Artifact& artifact);

// Writes an artifact from the moments of OSCAR's start-up calibrator, the files
// oscar_moments_rank<r>.pt of every rank. Rotations are fitted as in our calibration. Throws
// InputError if ranks are missing or belong to different runs.
Json ImportMoments(const std::vector<std::filesystem::path>& files, const Json& program,
                   const std::filesystem::path& output);

// Returns the JSON that oscar-export --inspect shows for an artifact.
Json InspectArtifact(const std::filesystem::path& directory);

}  // namespace oscar
