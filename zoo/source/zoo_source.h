// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The location of a zoo and a way to read it: a directory, a static web server or a model
// repository, on disk or on the Hub. All readers of foreign zoos use this interface. Trap: nothing
// from a source has been checked.
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

// A request to a source: bytes of a file from an offset to its end.
struct ReadRequest {
  std::string file;                   // path below the zoo, of zoo_format.h
  uint64_t offset = 0;                // bytes
  std::optional<uint64_t> size = {};  // of the whole file, in bytes, if known
};

struct ReadEnd {
  bool found = true;
  std::string broken = {};  // why the transfer ended early; the received bytes are valid
};

struct ZooSource {
  std::string address;              // as given to commands; for messages and pull lines
  std::filesystem::path directory;  // of a local zoo; empty for the other forms
  // Throws InputError for failures that trying again cannot fix, and whatever the sink throws. The
  // sink gets bytes from `offset` on, never more than `size` if that is known.
  std::function<ReadEnd(const ReadRequest& request, const ByteSink& sink)> read;
  std::function<ZooIndex()> index;  // every version that it has
};

// Limits of transfers, the same for every network source.
struct TransferOptions {
  int connect_seconds = 15;
  int stall_seconds = 30;  // gives up after this time with less than `slowest`
  int64_t slowest = 1024;  // bytes per second
  int max_redirects = 5;
  int max_failures = 4;        // broken transfers of one file before the command gives up
  double pause_seconds = 0.5;  // before the second try; doubles each time
  std::string ca_file = {};    // PEM; trusted certificates that replace the system's
  std::string token = {};      // sent as "Authorization: Bearer", only to the first host
  std::string token_from = "OSCAR_ZOO_TOKEN";  // its source, for error messages
  std::function<void()> alive = {};            // called about ten times a second; may throw to stop
};

// `address`: a directory, https://host/path (http:// on this machine only), hf:DIR, or
// hf:ORG/NAME[@REVISION] of the Hub if there is no such directory. Throws UsageError for any
// other, InputError if a directory is not a zoo. It does not use the network before the first
// read.
ZooSource OpenSource(const std::string& address, const TransferOptions& options = {});

bool IsRemoteAddress(std::string_view address);  // not a directory: has one of the prefixes

// Reads a file of at most `max_bytes`, and retries broken transfers. Returns nothing if it does not
// exist. Throws InputError, ResourceError.
std::optional<std::string> ReadSource(const ZooSource& source, const std::string& file,
                                      size_t max_bytes, const TransferOptions& options);

// Reads a file of a directory. It may be a link that does not lead outside the directory.
ReadEnd ReadDirectory(const std::filesystem::path& directory, const ReadRequest& request,
                      const ByteSink& sink);

}  // namespace oscar
