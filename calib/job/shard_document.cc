// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/job/shard_document.h"

#include <fmt/format.h>

#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr int kShardVersion = 1;

int64_t IntFrom(int64_t least, const Json& object, const char* key, const std::string& what) {
  const int64_t value = JsonInt(object, key, what);
  if (value < least) throw InputError(fmt::format("{}: {} is {}", what, key, value));
  return value;
}

const Json& ObjectIn(const Json& shard, const char* key, const std::string& what) {
  const Json& member = JsonMember(shard, key, what);
  if (!member.is_object()) throw InputError(fmt::format("{}: {}: expected an object", what, key));
  return member;
}

}  // namespace

std::string ShardPlace::Name() const { return fmt::format("shard {} of {}", number, count); }

bool ShardPlace::Exists() const { return number >= 1 && number <= count && count <= kMostShards; }

int64_t ShardDocument::Chunk(const char* key) const {
  return run.at("machine").at(key).get<int64_t>();
}

ShardDocument ShardDocument::From(const Json& document, const std::string& what) {
  if (JsonInt(document, "version", what) != kShardVersion)
    throw InputError(what + ": written by another version of oscar; make the shard again");
  ShardDocument shard;
  shard.place = {JsonInt32(document, "shard", what), JsonInt32(document, "shards", what)};
  if (!shard.place.Exists())
    throw InputError(fmt::format("{}: the shard number is invalid: {}", what, shard.place.Name()));
  const Json& documents = JsonMember(document, "documents", what);
  shard.share.first_sequence = static_cast<size_t>(IntFrom(0, documents, "first", what));
  shard.share.num_sequences = static_cast<size_t>(IntFrom(0, documents, "count", what));
  shard.share.first_token = IntFrom(0, documents, "first_token", what);
  shard.share.num_tokens = IntFrom(0, documents, "tokens", what);
  shard.run = ObjectIn(document, "run", what);
  for (const char* key : {"token_chunk", "query_chunk"})
    IntFrom(1, JsonMember(shard.run, "machine", what), key, what);
  shard.weights = ObjectIn(document, "weights", what);
  shard.timings = document.value("timings", Json());
  shard.files = JobFiles::From(document, what);
  return shard;
}

ShardDocument ShardDocument::Read(const std::filesystem::path& shard) {
  const std::string path = (shard / kShardFile).string();
  return From(ReadJsonFile(path), path);
}

Json ShardDocument::ToJson() const {
  Json document = {{"version", kShardVersion},
                   {"shard", place.number},
                   {"shards", place.count},
                   {"documents",
                    {{"first", share.first_sequence},
                     {"count", share.num_sequences},
                     {"first_token", share.first_token},
                     {"tokens", share.num_tokens}}},
                   {"run", run},
                   {"weights", weights},
                   {"timings", timings}};
  files.AddTo(document);
  return document;
}

}  // namespace oscar
