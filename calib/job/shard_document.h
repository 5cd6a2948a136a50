// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes shard.json, which describes a shard's directory (calib/run/shard_directory.h).
// It holds the shard's number and the number of shards, the run and documents that it belongs to,
// and digests of its files and of the weights that were read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "calib/job/job_directory.h"
#include "capture/files/strict_json.h"

namespace oscar {

inline constexpr const char* kShardFile = "shard.json";
inline constexpr int kMostShards = 10000;

struct ShardPlace {
  int number = 1, count = 1;  // `number` counts from 1

  bool operator==(const ShardPlace&) const = default;
  bool Exists() const;       // true for 1 of 1 up to kMostShards
  std::string Name() const;  // "shard 2 of 3"
};

// The documents of a run that a rank or a shard processes, and their tokens.
struct RankShare {
  size_t first_sequence = 0, num_sequences = 0;
  int64_t first_token = 0, num_tokens = 0;
  double work = 0;  // DocumentWork of all documents; not stored

  bool Has(size_t sequence) const {
    return sequence >= first_sequence && sequence - first_sequence < num_sequences;
  }
};

struct ShardDocument {
  ShardPlace place;
  RankShare share;
  JobFiles files;
  Json run, weights;  // Fingerprint, and "weights" of DescribeModel
  Json timings;       // free-form

  // Throws InputError naming `what` and the member that is missing or wrong.
  static ShardDocument From(const Json& document, const std::string& what);
  static ShardDocument Read(const std::filesystem::path& shard);
  Json ToJson() const;

  // The numbers of tokens and queries that the model processed at a time, as recorded in `run`.
  int64_t token_chunk() const { return Chunk("token_chunk"); }
  int64_t query_chunk() const { return Chunk("query_chunk"); }

 private:
  int64_t Chunk(const char* key) const;
};

}  // namespace oscar
