// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A cheap identity of weights: header and 256 pages spread over each file. Sees an edit of any
// tensor that touches one of them, and any fine-tune; digests of all bytes stand in the manifest.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

Json SampleFile(const std::filesystem::path& path);  // {"size", "sample_sha256"}

// Of each of a model's weight files, by name.
Json SampleWeightFiles(const std::filesystem::path& directory,
                       const std::vector<std::string>& files);

// Of each of these files, by name: its inode and when its bytes or its inode last changed. A file
// that took another's place differs, even if size, times that users set, and samples are equal.
Json FileIdentities(const std::filesystem::path& directory, const std::vector<std::string>& files);

// The same in two processes that have opened the very same files, on one running machine.
std::string OpenedFiles(const std::filesystem::path& directory,
                        const std::vector<std::string>& files);

}  // namespace oscar
