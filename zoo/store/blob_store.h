// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Blobs: files named by their digests. Trap: a blob is trusted only after its size and digest were
// checked. Nothing here parses a blob.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capture/files/digest.h"

namespace oscar {

// Compares a file with its expected size and digest. Returns the problem (missing, not a regular
// file, another size, other bytes), or "". Reads nothing if the size differs, and stops if the file
// grows.
std::string ContentProblem(const std::filesystem::path& file, const FileDigest& expected);

// Copies `source` to the new file `target`, checks it like ContentProblem, and flushes it to disk.
// If that fails, removes the copy and throws InputError naming `source`, or ResourceError.
void CopyChecked(const std::filesystem::path& source, const FileDigest& expected,
                 const std::filesystem::path& target);

// Stores `source` as a blob of the zoo. Writes it to a temporary file in `staging` first. Returns
// false if the zoo already has the blob undamaged; a damaged blob is replaced. The caller must
// flush the folder of blobs to disk before an entry names the blob. Throws InputError if `source`
// does not match `expected`.
bool AddBlob(const std::filesystem::path& zoo, const std::filesystem::path& staging,
             const std::filesystem::path& source, const FileDigest& expected);

// The files in the folder of blobs, sorted: blobs, and files not named by a digest.
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
