// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Contents under their digest. Trap: a blob is trusted only after its size and then its digest were
// checked; nothing here parses anything.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capture/files/digest.h"

namespace oscar {

// What is wrong with a file that should have this size and content (missing, a device, longer,
// shorter, other bytes), or "". Reads nothing if the size differs, and never past it.
std::string ContentProblem(const std::filesystem::path& file, const FileDigest& expected);

// Copies `source` to the new file `target`, checking as ContentProblem does while it copies, and
// fsyncs. Throws InputError naming `source`, ResourceError; then `target` is removed.
void CopyChecked(const std::filesystem::path& source, const FileDigest& expected,
                 const std::filesystem::path& target);

// Makes `source` a blob of the zoo, through an unfinished file in `staging`. A blob that is there
// and sound is left alone (false); one that is damaged is replaced. The caller flushes the folder
// of blobs before anything names them. Throws InputError if `source` is not what is expected.
bool AddBlob(const std::filesystem::path& zoo, const std::filesystem::path& staging,
             const std::filesystem::path& source, const FileDigest& expected);

// Files in the folder of blobs, sorted: digests, and names that are none.
struct BlobListing {
  std::vector<FileDigest> blobs;
  std::vector<std::string> strangers;
};
BlobListing ListBlobs(const std::filesystem::path& zoo);

// The content of a file that ContentProblem finds sound, read once. Throws InputError.
std::string ReadChecked(const std::filesystem::path& file, const FileDigest& expected,
                        size_t max_bytes);

// A file of at most `max_bytes`. Throws InputError.
std::string ReadSmallFile(const std::filesystem::path& path, size_t max_bytes);

}  // namespace oscar
