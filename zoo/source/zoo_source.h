// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The location of a zoo, and functions that read it. A zoo may be a directory, a static web server,
// or a model repository on disk or on the Hub. Everything that reads another user's zoo uses this
// interface. Trap: what a source returns is not checked.
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

// A request for the bytes of a file from an offset to its end.
struct ReadRequest {
  std::string file;                   // path relative to the zoo (zoo_format.h)
  uint64_t offset = 0;                // bytes
  std::optional<uint64_t> size = {};  // size of the whole file in bytes, if known
};

struct ReadEnd {
  bool found = true;
  std::string broken = {};  // why the transfer ended early; the received bytes are valid
};

struct ZooSource {
  std::string address;              // as typed by users; for messages and pull commands
  std::filesystem::path directory;  // only for a local zoo, otherwise empty
  // Passes the bytes from `offset` on to the sink, never more than `size` if that is given. Throws
  // InputError for failures that a retry cannot fix, and what the sink throws.
  std::function<ReadEnd(const ReadRequest& request, const ByteSink& sink)> read;
  std::function<ZooIndex()> index;  // lists every version in the zoo
};

// Limits of transfers. They are the same for every network source.
struct TransferOptions {
  int connect_seconds = 15;
  int stall_seconds = 30;  // gives up after this time at less than `slowest`
  int64_t slowest = 1024;  // bytes per second
  int max_redirects = 5;
  int max_failures = 4;        // failed transfers of one file before the command gives up
  double pause_seconds = 0.5;  // before the second try; doubles each time
  std::string ca_file = {};    // PEM file with certificates to trust instead of the system's
  std::string token = {};      // sent as "Authorization: Bearer", only to the first host
  std::string token_from = "OSCAR_ZOO_TOKEN";  // where the token comes from, for error messages
  std::function<void()> alive = {};            // called about ten times a second; may throw to stop
};

// Opens a zoo. `address` is a directory, https://host/path (or http:// on this machine), hf:DIR, or
// hf:ORG/NAME[@REVISION] on the Hub if no such DIR exists. Throws UsageError for any other address,
// and InputError if a directory is not a zoo. Does not use the network before the first read.
ZooSource OpenSource(const std::string& address, const TransferOptions& options = {});

bool IsRemoteAddress(std::string_view address);  // whether it has the prefix of a network address

// Reads a file of at most `max_bytes`, retrying failed transfers. Returns nothing if the file does
// not exist. Throws InputError, ResourceError.
std::optional<std::string> ReadSource(const ZooSource& source, const std::string& file,
                                      size_t max_bytes, const TransferOptions& options);

// Reads a file of a local zoo. Links may not lead outside the directory.
ReadEnd ReadDirectory(const std::filesystem::path& directory, const ReadRequest& request,
                      const ByteSink& sink);

}  // namespace oscar
