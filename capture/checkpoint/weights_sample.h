// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A cheap identity of weights: a digest of the first MiB and of some 256 pages spread over each
// file. It detects any fine-tuning, but it detects an edit of one tensor only if that touches these
// bytes. The manifest also has digests of all bytes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

Json SampleFile(const std::filesystem::path& path);  // {"size", "sample_sha256"}

// Samples the named weight files of a model.
Json SampleWeightFiles(const std::filesystem::path& directory,
                       const std::vector<std::string>& files);

// Identifies each of these files by its inode number and the time of its last change (ctime). A
// replacement differs even if size, modification time and samples are equal.
Json FileIdentities(const std::filesystem::path& directory, const std::vector<std::string>& files);

// Equal in two processes if they have opened exactly the same files on one running machine.
std::string OpenedFiles(const std::filesystem::path& directory,
                        const std::vector<std::string>& files);

}  // namespace oscar
