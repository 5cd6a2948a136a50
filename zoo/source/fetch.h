// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Files of a source brought here. A blob grows under the name <digest>.part, which survives a
// broken transfer: the next call goes on where it ends. It takes its own name when its size and
// SHA-256 are right, and nothing has looked into it before.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "zoo/source/zoo_source.h"
#include "zoo/store/zoo_format.h"

namespace oscar {

struct FetchedEntry {
  ZooEntry entry;
  std::string text;    // of its file
  std::string yanked;  // why; "" if it stands
};

struct FetchCounts {
  uint64_t bytes = 0;                  // that came over the source in this call
  uint64_t resumed = 0;                // bytes that earlier calls had brought
  uint64_t reused = 0;                 // bytes of blobs that were here already
  std::vector<std::string> refetched;  // files whose bytes were wrong at first
};

struct FetchOptions {
  TransferOptions transfer = {};
  std::vector<std::filesystem::path> zoos = {};  // on this disk, whose blobs need not be fetched
  // Called before any file of the entry is asked for; may throw to refuse it.
  std::function<void(const FetchedEntry&)> judge = {};
  // `done` of `total` bytes are here; `file` is being fetched. May throw to stop.
  std::function<void(const std::string& file, uint64_t done, uint64_t total)> progress = {};
};

// Makes every blob of the entry a file named by its digest in `blobs`, with unfinished ones in
// `parts`; both folders exist. Throws InputError naming the file and blob whose bytes are wrong or
// that the source does not have; ResourceError where the transfer broke off too often (what came
// stays) or the disk failed.
void FetchBlobs(const ZooSource& source, const ZooEntry& entry, const std::filesystem::path& blobs,
                const std::filesystem::path& parts, const FetchOptions& options,
                FetchCounts* counts);

// The entry that a reference means, read from a source and held against what was asked for. Throws
// InputError.
FetchedEntry FetchEntry(const ZooSource& source, const ZooReference& reference,
                        const TransferOptions& options);

// The signatures of one version, each as its name says; none where the source has none. Whose they
// are has not been looked at. Throws InputError.
std::vector<std::string> FetchSignatures(const ZooSource& source, const ZooName& name,
                                         const ZooVersion& version, const TransferOptions& options);

}  // namespace oscar
