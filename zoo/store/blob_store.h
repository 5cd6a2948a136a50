// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Files named by their digests. Trap: a blob is trusted only after its size and then its digest
// were checked; nothing here parses anything.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capture/files/digest.h"

namespace oscar {

// Returns the problem with a file that should have this size and content, or "" (missing, a device,
// longer, shorter, other bytes). Reads nothing if the size differs, and never past it.
std::string ContentProblem(const std::filesystem::path& file, const FileDigest& expected);

// Copies `source` to the new file `target`, checks it like ContentProblem, and fsyncs it. Throws
// InputError naming `source`, or ResourceError, and then removes `target`.
void CopyChecked(const std::filesystem::path& source, const FileDigest& expected,
                 const std::filesystem::path& target);

// Stores `source` as a blob of the zoo, through an unfinished file in `staging`. Returns false if a
// sound blob exists; a damaged one is replaced. Before anything names the blobs, the caller must
// flush their folder. Throws InputError if `source` does not match `expected`.
bool AddBlob(const std::filesystem::path& zoo, const std::filesystem::path& staging,
             const std::filesystem::path& source, const FileDigest& expected);

// The files in the folder of blobs, sorted: those named by a digest, and all others.
struct BlobListing {
  std::vector<FileDigest> blobs;
  std::vector<std::string> strangers;
};
BlobListing ListBlobs(const std::filesystem::path& zoo);

// Reads a file and checks it like ContentProblem, in one pass. Throws InputError.
std::string ReadChecked(const std::filesystem::path& file, const FileDigest& expected,
                        size_t max_bytes);

// Reads a file of at most `max_bytes`. Throws InputError.
std::string ReadSmallFile(const std::filesystem::path& path, size_t max_bytes);

}  // namespace oscar
