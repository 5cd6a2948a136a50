// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Fetches files of a source. A blob grows under the name <digest>.part, which survives a broken
// transfer: the next call resumes at its end. It gets its own name when its size and SHA-256 are
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
  std::string text;    // text of its file
  std::string yanked;  // the reason; "" if not yanked
};

struct FetchCounts {
  uint64_t bytes = 0;                  // received from the source in this call
  uint64_t resumed = 0;                // bytes that earlier calls had brought
  uint64_t reused = 0;                 // bytes of blobs that were here already
  std::vector<std::string> refetched;  // files whose bytes were wrong at first
};

struct FetchOptions {
  TransferOptions transfer = {};
  std::vector<std::filesystem::path> zoos = {};  // local zoos whose blobs need not be fetched
  // Called before any file of the entry is requested; may throw to refuse it.
  std::function<void(const FetchedEntry&)> judge = {};
  // `done` of `total` bytes have arrived; `file` is being fetched. May throw to stop.
  std::function<void(const std::string& file, uint64_t done, uint64_t total)> progress = {};
};

// Fetches every blob of the entry into a file named by its digest in `blobs`, with unfinished ones
// in `parts`; both folders exist. Throws InputError naming the file and blob whose bytes are wrong
// or that the source does not have; ResourceError if the transfer broke too often (received bytes
// are kept) or the disk failed.
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
