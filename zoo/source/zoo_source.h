// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a zoo lies and how its bytes come here: a directory, a static web server or a model
// repository, on disk or on the Hub. Everything that reads a zoo of others is written against this
// and is the same for all of them. Trap: nothing that comes from a source has been checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "capture/files/digest.h"
#include "zoo/store/zoo_index.h"

namespace oscar {

using ByteSink = std::function<void(std::span<const std::byte>)>;

// What is asked of a source: bytes of a file from an offset to its end.
struct ReadRequest {
  std::string file;                   // path below the zoo, of zoo_format.h
  uint64_t offset = 0;                // bytes
  std::optional<uint64_t> size = {};  // of the whole file, in bytes, where it is known
};

struct ReadEnd {
  bool found = true;
  std::string broken = {};  // why the transfer ended early; what came is right, the rest may follow
};

struct ZooSource {
  std::string address;              // as it is given to commands; for messages and pull lines
  std::filesystem::path directory;  // of a zoo on this disk; empty for the other forms
  // Throws InputError for what trying again does not mend, and whatever the sink throws. The sink
  // is fed bytes from `offset` on, never more than `size` where that is known.
  std::function<ReadEnd(const ReadRequest& request, const ByteSink& sink)> read;
  std::function<ZooIndex()> index;  // every version that it has
};

// How transfers are limited; the same for every source that has a network below it.
struct TransferOptions {
  int connect_seconds = 15;
  int stall_seconds = 30;  // with less than `slowest` in that time the transfer is given up
  int64_t slowest = 1024;  // bytes per second
  int max_redirects = 5;
  int max_failures = 4;        // broken transfers of one file before the command gives up
  double pause_seconds = 0.5;  // before the second try; doubled for every other
  std::string ca_file = {};    // PEM; certificates that are trusted instead of the system's
  std::string token = {};      // sent as "Authorization: Bearer", to the first host alone
  std::string token_from = "OSCAR_ZOO_TOKEN";  // where it is read from, for errors
  std::function<void()> alive = {};            // called about ten times a second; may throw to stop
};

// `address`: a directory, https://host/path (http:// on this machine alone), hf:DIR, or
// hf:ORG/NAME[@REVISION] of the Hub where there is no such directory.
// Throws UsageError for any other, InputError if a directory is no zoo. No byte is asked of a
// network before the first read.
ZooSource OpenSource(const std::string& address, const TransferOptions& options = {});

bool IsRemoteAddress(std::string_view address);  // not a directory: has one of the prefixes

// A file of at most `max_bytes`, tried again where the transfer broke off; nothing if it is not
// there. Throws InputError, ResourceError.
std::optional<std::string> ReadSource(const ZooSource& source, const std::string& file,
                                      size_t max_bytes, const TransferOptions& options);

// The bytes of a directory's files, which may be links as long as they do not lead out of it.
ReadEnd ReadDirectory(const std::filesystem::path& directory, const ReadRequest& request,
                      const ByteSink& sink);

}  // namespace oscar
