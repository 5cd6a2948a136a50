// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Fetches files of a zoo from its source. An unfinished blob is named <digest>.part. It survives a
// failed transfer, and the next call continues at its end. A blob gets its final name only after
// its size and SHA-256 were checked, and is not read before that.
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
// in `parts`; both folders must exist. Throws InputError, which names the file and the blob, if the
// source does not have the blob or its bytes are wrong. Throws ResourceError if the transfer failed
// too often (the received bytes are kept) or the disk failed.
void FetchBlobs(const ZooSource& source, const ZooEntry& entry, const std::filesystem::path& blobs,
                const std::filesystem::path& parts, const FetchOptions& options,
                FetchCounts* counts);

// Reads the entry that `reference` names from the source. Throws InputError if it does not exist,
// or if its name, version or identity differs from the reference.
FetchedEntry FetchEntry(const ZooSource& source, const ZooReference& reference,
                        const TransferOptions& options);

// Fetches the signatures of one version; returns none if the source has none. Throws InputError for
// a signature that does not match its digest. Does not check who signed.
std::vector<std::string> FetchSignatures(const ZooSource& source, const ZooName& name,
                                         const ZooVersion& version, const TransferOptions& options);

}  // namespace oscar
