// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/store/zoo_index.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <tuple>

#include "capture/files/posix_file.h"
#include "capture/files/quote.h"
#include "export/artifact/artifact_format.h"
#include "linalg/base/error.h"
#include "linalg/base/parallel_for.h"
#include "zoo/store/blob_store.h"
#include "zoo/store/yank.h"
#include "zoo/store/zoo_lock.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Returns a member of an untrusted object, or a default if it is missing or of another type.
std::string TextIn(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string()
             ? found->get<std::string>()
             : "";
}

std::optional<double> NumberIn(const Json& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

Json RowToJson(const IndexRow& row) {
  Json json = {{"name", row.name.text()},  {"version", row.version.text()},
               {"identity", row.identity}, {"bytes", row.bytes},
               {"model", row.model},       {"method", row.method},
               {"runtimes", row.runtimes}, {"published_at", row.published_at}};
  for (const auto& [key, text] :
       {std::pair("revision", &row.revision), std::pair("config_sha256", &row.config_sha256),
        std::pair("weights_sha256", &row.weights_sha256), std::pair("gate", &row.gate),
        std::pair("yanked", &row.yanked)})
    if (!text->empty()) json[key] = *text;
  for (const auto& [key, number] : {std::pair("kl", row.kl), std::pair("ppl_ratio", row.ppl_ratio),
                                    std::pair("bits", row.bits)})
    if (number) json[key] = *number;
  return json;
}

IndexRow ParseRow(const Json& json, std::string_view what) {
  IndexRow row;
  row.name = ParseZooName(JsonString(json, "name", what), what);
  row.version = ZooVersionOf(JsonString(json, "version", what), what);
  row.identity = JsonString(json, "identity", what);
  if (!IsSha256Hex(row.identity))
    throw InputError(fmt::format("{}: {}: identity {} is not a SHA-256", what, row.text(),
                                 Quoted(row.identity)));
  const int64_t bytes = JsonInt(json, "bytes", what);
  if (bytes < 0) throw InputError(fmt::format("{}: {}: size below 0", what, row.text()));
  row.bytes = static_cast<uint64_t>(bytes);
  row.model = JsonString(json, "model", what);
  row.revision = TextIn(json, "revision");
  row.config_sha256 = TextIn(json, "config_sha256");
  row.weights_sha256 = TextIn(json, "weights_sha256");
  row.method = JsonString(json, "method", what);
  row.gate = TextIn(json, "gate");
  row.yanked = TextIn(json, "yanked");
  row.kl = NumberIn(json, "kl");
  row.ppl_ratio = NumberIn(json, "ppl_ratio");
  row.bits = NumberIn(json, "bits");
  row.published_at = JsonInt(json, "published_at", 0, what);
  const Json& runtimes = JsonMember(json, "runtimes", what);
  if (!runtimes.is_array()) throw InputError(fmt::format("{}: 'runtimes' must be a list", what));
  for (const Json& runtime : runtimes)
    if (runtime.is_string()) row.runtimes.push_back(runtime.get<std::string>());
  return row;
}

bool Before(const IndexRow& a, const IndexRow& b) {
  return std::tie(a.name, a.version) < std::tie(b.name, b.version);
}

// The rows of index.json, and the time at which the entries were listed. There are no rows if the
// file is missing or damaged; they are then read from the entries. UpdateIndex sets the
// modification time back to that time, so it is before the status change time. If it is not, the
// file was copied, and its time means nothing.
struct StoredIndex {
  std::vector<IndexRow> rows = {};
  int64_t as_of_ns = INT64_MIN;
};
StoredIndex ReadStoredIndex(const fs::path& zoo) {
  const fs::path file = zoo / kIndexFile;
  if (!fs::exists(fs::symlink_status(file))) return {};
  try {
    StoredIndex stored;
    struct stat status {};
    if (lstat(file.c_str(), &status) == 0 &&
        Nanoseconds(status.st_mtim) < Nanoseconds(status.st_ctim))
      stored.as_of_ns = Nanoseconds(status.st_mtim);
    stored.rows = ParseIndex(ReadSmallFile(file, kIndexJsonLimits.max_bytes), file.string()).rows;
    return stored;
  } catch (const InputError&) {
    return {};
  }
}

IndexRow ReadRow(const Zoo& zoo, const ZooName& name, const ZooVersion& version) {
  const ZooEntry entry = zoo.Read(name, version);
  Json manifest;
  const fs::path blob = BlobPath(zoo.path(), entry.identity);
  if (ContentProblem(blob, entry.files.at(kManifestFile)).empty())
    manifest = ReadJsonFile(blob.string());
  return RowOf(entry, manifest);
}

}  // namespace

Json IndexToJson(const ZooIndex& index) {
  Json rows = Json::array();
  for (const IndexRow& row : index.rows) rows.push_back(RowToJson(row));
  return {{"$schema", {{"name", kIndexSchema}, {"version", kZooVersion}}}, {"entries", rows}};
}

ZooIndex ParseIndex(std::string_view text, std::string_view what) {
  ZooIndex index;
  std::optional<InputError> first_problem;  // reported after a wrong schema, which may explain it
  const JsonRows entries{"entries", [&](Json&& row) {
                           if (first_problem) return;
                           try {
                             index.rows.push_back(ParseRow(row, what));
                           } catch (const InputError& error) {
                             first_problem = error;
                           }
                         }};
  const Json json = ParseStrictJson(text, what, kIndexJsonLimits, &entries);
  const Json& schema = JsonMember(json, "$schema", what);
  if (JsonString(schema, "name", what) != kIndexSchema ||
      JsonInt(schema, "version", what) != kZooVersion) {
    throw InputError(fmt::format(
        "{}: schema {} {}, expected {} {}; a newer version of oscar may be able to read it", what,
        Quoted(JsonString(schema, "name", what)), JsonInt(schema, "version", what), kIndexSchema,
        kZooVersion));
  }
  if (first_problem) throw InputError(*first_problem);
  if (const Json& rest = JsonMember(json, "entries", what); !rest.is_array() || !rest.empty())
    throw InputError(fmt::format("{}: 'entries' must be a list of objects", what));
  SortRows(&index);
  const auto twice = std::adjacent_find(index.rows.begin(), index.rows.end(),
                                        [](const IndexRow& a, const IndexRow& b) {
                                          return a.name == b.name && a.version == b.version;
                                        });
  if (twice != index.rows.end())
    throw InputError(fmt::format("{}: {} is listed twice", what, twice->text()));
  return index;
}

void SortRows(ZooIndex* index) {
  if (!std::ranges::is_sorted(index->rows, Before)) std::ranges::sort(index->rows, Before);
}

std::string WeightsDigest(const Json& weights_sample) {
  if (!weights_sample.is_object() || weights_sample.empty()) return "";
  return Sha256Hex(CanonicalJson(weights_sample));
}

IndexRow RowOf(const ZooEntry& entry, const Json& manifest) {
  const Json metrics = entry.validation.value("metrics", Json::object());
  IndexRow row{.name = entry.name,
               .version = entry.version,
               .identity = entry.identity,
               .bytes = entry.bytes(),
               .model = TextIn(entry.model, "id"),
               .revision = TextIn(entry.model, "revision"),
               .config_sha256 = TextIn(entry.model.value("config", Json()), "sha256"),
               .weights_sha256 = WeightsDigest(entry.model.value("weights_sample", Json())),
               .method = TextIn(entry.validation, "headline_arm"),
               .gate = TextIn(entry.validation.value("gate", Json()), "text"),
               .kl = NumberIn(metrics, "kl"),
               .ppl_ratio = NumberIn(metrics, "ppl_ratio"),
               .bits = NumberIn(entry.validation, "bits_per_element")};
  const auto published = entry.publisher.find("published_at_unix");
  if (published != entry.publisher.end() && published->is_number_integer())
    row.published_at = published->get<int64_t>();
  const Json::json_pointer runtimes("/serving/runtimes");
  if (!manifest.contains(runtimes)) return row;
  for (const Json& runtime : manifest.at(runtimes)) {
    const std::string name = TextIn(runtime, "runtime");
    if (!name.empty() && std::ranges::find(row.runtimes, name) == row.runtimes.end())
      row.runtimes.push_back(name);
  }
  return row;
}

ZooIndex CurrentIndex(const Zoo& zoo, IndexTrust trust) {
  StoredIndex stored;
  std::vector<ZooFolder> folders;  // in the same order as the rows
  ParallelFor(2, [&](int64_t part) {
    if (part == 0) {
      stored = ReadStoredIndex(zoo.path());
    } else {
      folders = zoo.Folders();
    }
  });
  ZooIndex index;
  index.rows.reserve(stored.rows.size());
  auto at = stored.rows.begin();
  for (const ZooFolder& folder : folders) {
    const auto begin = std::find_if(at, stored.rows.end(),
                                    [&](const IndexRow& row) { return row.name >= folder.name; });
    at = std::find_if(begin, stored.rows.end(),
                      [&](const IndexRow& row) { return row.name != folder.name; });
    if (trust == IndexTrust::kOfUnchanged && folder.changed_ns < stored.as_of_ns) {
      std::move(begin, at, std::back_inserter(index.rows));
      continue;
    }
    for (const ZooVersion& version : zoo.Versions(folder.name)) {
      const auto found =
          std::find_if(begin, at, [&](const IndexRow& row) { return row.version == version; });
      try {
        index.rows.push_back(found != at ? *found : ReadRow(zoo, folder.name, version));
      } catch (const InputError& error) {
        index.problems.push_back(error.what());
      }
    }
  }
  const std::map<std::string, std::string> yanks = YankReasons(zoo);
  for (IndexRow& row : index.rows) {
    const auto yank = yanks.find(row.text());
    row.yanked = yank == yanks.end() ? "" : yank->second;
  }
  return index;
}

void UpdateIndex(const Zoo& zoo) {
  const fs::path staging = zoo.path() / "staging", file = zoo.path() / kIndexFile;
  MakeFolders(zoo.path(), staging);
  const FileLock lock(IndexLockFile(zoo.path()), LockKind::kExclusive, nullptr);
  if (lock.held()) RemoveUnfinished(staging);
  const TemporaryFile temporary = CreateTemporarySibling(staging / kIndexFile);
  bool open = true;
  try {
    struct stat made {};
    fstat(temporary.descriptor, &made);
    const std::string text = CanonicalJson(IndexToJson(CurrentIndex(zoo, IndexTrust::kOfNothing)));
    int error = WriteFullyAt(temporary.descriptor, std::as_bytes(std::span(text)), 0);
    // The file gets a time before the entries were listed, so that entries added meanwhile count as
    // newer.
    const std::array<timespec, 2> before = {made.st_mtim, made.st_mtim};
    if (error == 0 && futimens(temporary.descriptor, before.data()) != 0) error = errno;
    if (error != 0) ThrowResource("write", temporary.path, error);
    open = false;
    PublishTemporary(temporary, file);
  } catch (...) {
    if (open) close(temporary.descriptor);
    unlink(temporary.path.c_str());
    throw;
  }
}

const IndexRow* FindRow(const ZooIndex& index, const ZooReference& reference) {
  const IndexRow* best = nullptr;
  for (auto row = std::ranges::lower_bound(index.rows, reference.name, {}, &IndexRow::name);
       row != index.rows.end() && row->name == reference.name; ++row) {
    if (reference.version    ? row->version == *reference.version
        : reference.identity ? row->identity == *reference.identity
                             : row->yanked.empty())
      best = &*row;  // rows are in ascending order, so the last match is the highest
  }
  return best;
}

}  // namespace oscar
