// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A zoo entry as an OCI image layout on disk (OCI image-spec v1.1: image-layout.md, manifest.md),
// which registries take as it is (oras cp --from-oci-layout DIR:TAG REGISTRY/REPOSITORY:TAG):
//
//     oci-layout, index.json    one descriptor per version, org.opencontainers.image.ref.name =
//     <org>/<model>:<version> blobs/sha256/<digest>     image manifests, their configs (the zoo's
//     entry, byte for byte), and the artifact's files
//
// An image manifest has artifactType kOciArtifactType, a layer per file with its name as
// org.opencontainers.image.title, and as `subject` a manifest of the base model: whose config is
// the digest of its config.json, so that what is made for one checkpoint can be found by it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "zoo/source/zoo_source.h"
#include "zoo/store/zoo_format.h"

namespace oscar {

inline constexpr std::string_view kOciArtifactType = "application/vnd.oscar.rotations.v1";
inline constexpr std::string_view kOciEntryType = "application/vnd.oscar.zoo-entry.v1+json";

// Throws InputError if the directory is no image layout.
ZooSource OciSource(const std::filesystem::path& layout);

// Adds an entry to a layout, which is made where there is none; `file_of` finds the entry's files,
// whose digests are checked once more. Nothing if it is there already; returns the digest of the
// image manifest. Throws InputError if the layout has another entry under that name, ResourceError.
std::string AddToOciLayout(const ZooEntry& entry, const std::string& entry_text,
                           const std::function<std::filesystem::path(const std::string&)>& file_of,
                           const std::filesystem::path& layout);

}  // namespace oscar
