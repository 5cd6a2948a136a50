// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// shard.json: which shard of how many of what run lies in a directory
// (calib/run/shard_directory.h), its documents, the digests of its files, and of the weights that
// it has read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "calib/job/job_directory.h"
#include "capture/files/strict_json.h"

namespace oscar {

inline constexpr const char* kShardFile = "shard.json";
inline constexpr int kMostShards = 10000;

struct ShardPlace {
  int number = 1, count = 1;  // from 1 on

  bool operator==(const ShardPlace&) const = default;
  std::string Name() const;  // "shard 2 of 3"
};
// Throws InputError naming `what` where there is no such shard.
void CheckShardPlace(const ShardPlace& place, std::string_view what);

struct ShardDocument {
  ShardPlace place;
  size_t first_sequence = 0, num_sequences = 0;  // of the run's documents, and of their tokens
  int64_t first_token = 0, num_tokens = 0;
  int64_t token_chunk = 1, query_chunk = 1;  // that the model ran with; part of `run`
  JobFiles files;
  Json run, weights;  // Fingerprint; weights of DescribeModel
  Json timings;       // of whatever form

  // InputError naming `what` and the member that is missing or not what it should be.
  static ShardDocument From(const Json& document, const std::string& what);
  static ShardDocument Read(const std::filesystem::path& shard);
  Json ToJson() const;
};

}  // namespace oscar
