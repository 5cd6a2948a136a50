// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Between artifacts and the rotation files of runtimes (export/formats): out to SGLang, in from
// upstream's moments.
#pragma once

#include <filesystem>

#include "export/artifact/artifact_reader.h"
#include "export/formats/sglang.h"

namespace oscar {

// Shared and per-head rotations of every layer with the artifact's recommended serving parameters.
// A runtime takes one clip ratio for all layers, so the manifest's best for shared rotations is
// used.
SglangExport ToSglang(const Artifact& artifact);

// Writes an artifact from the moments of OSCAR's start-up calibrator, oscar_moments_rank<r>.pt of
// every rank, with rotations fitted to them as ours are. Throws InputError where ranks are missing
// or differ.
Json ImportMoments(const std::vector<std::filesystem::path>& files, const Json& program,
                   const std::filesystem::path& output);

// What oscar-export --inspect shows of an artifact.
Json InspectArtifact(const std::filesystem::path& directory);

}  // namespace oscar
