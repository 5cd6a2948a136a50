// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Fetches files of a source. A blob grows under the name <digest>.part, which survives a failed
// transfer: the next call resumes at its end. It gets its final name when its size and SHA-256 are
// right, and nothing reads it before.
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
  std::string text;    // content of the entry's file
  std::string yanked;  // the reason; "" if not yanked
};

struct FetchCounts {
  uint64_t bytes = 0;                  // received from the source in this call
  uint64_t resumed = 0;                // bytes that earlier calls had received
  uint64_t reused = 0;                 // bytes of blobs that already existed locally
  std::vector<std::string> refetched;  // files fetched again because their bytes were wrong
};

struct FetchOptions {
  TransferOptions transfer = {};
  std::vector<std::filesystem::path> zoos = {};  // local zoos whose blobs need not be fetched
  // Called before any file of the entry is requested. It may throw to refuse the entry.
  std::function<void(const FetchedEntry&)> judge = {};
  // Called while `file` is fetched, after `done` of `total` bytes. It may throw to stop.
  std::function<void(const std::string& file, uint64_t done, uint64_t total)> progress = {};
};

// Fetches every blob of the entry into a file named by its digest in `blobs`. Unfinished blobs are
// in `parts`; both folders must exist. Throws InputError naming the file and blob if the source
// does not have it or its bytes are wrong. Throws ResourceError if the transfer failed too often
// (received bytes are kept) or the disk failed.
void FetchBlobs(const ZooSource& source, const ZooEntry& entry, const std::filesystem::path& blobs,
                const std::filesystem::path& parts, const FetchOptions& options,
                FetchCounts* counts);

// Reads the entry that a reference means from a source and checks it against the request. Throws
// InputError.
FetchedEntry FetchEntry(const ZooSource& source, const ZooReference& reference,
                        const TransferOptions& options);

// Fetches the signatures of one version and checks that each matches its name; empty if the source
// has none. Their signers are not checked. Throws InputError.
std::vector<std::string> FetchSignatures(const ZooSource& source, const ZooName& name,
                                         const ZooVersion& version, const TransferOptions& options);

}  // namespace oscar
