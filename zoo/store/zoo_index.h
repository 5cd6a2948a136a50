// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// index.json lists every version of a zoo with searchable fields, because a static web server
// cannot list directories. It repeats data of entries and manifests and may be outdated, so a pull
// is checked against the entry. For a local zoo, CurrentIndex adds the missing rows.
//
//     {"$schema": {"name": "oscar-zoo-index", "version": 1}, "entries": [ROW, ...]}
//     rows are sorted by name and version
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zoo/store/zoo.h"

namespace oscar {

inline constexpr std::string_view kIndexSchema = "oscar-zoo-index";
inline constexpr JsonLimits kIndexJsonLimits{
    .max_depth = 16, .max_bytes = size_t{64} << 20, .max_values = 5'000'000};

// The row of one version.
struct IndexRow {
  ZooName name = {};
  ZooVersion version = {};
  std::string identity = {};              // SHA-256 of the artifact's manifest
  uint64_t bytes = 0;                     // total size of the files
  std::string model = {}, revision = {};  // id and revision of the base model
  std::string config_sha256 = {};         // digest of its config.json; empty if not recorded
  std::string weights_sha256 = {};        // WeightsDigest; empty if the manifest has no sample
  std::string method = {};                // name of the headline arm
  std::string gate = {};                  // text of the gate that it passed; empty if ungated
  std::optional<double> kl = {}, ppl_ratio = {}, bits = {};  // headline arm; bits per element
  std::vector<std::string> runtimes = {};                    // runtimes that have their own choice
  int64_t published_at = 0;                                  // Unix seconds
  std::string yanked = {};                                   // the reason; empty if not yanked

  std::string text() const { return name.text() + "@" + version.text(); }
  bool operator==(const IndexRow&) const = default;
};

struct ZooIndex {
  std::vector<IndexRow> rows;         // sorted by name, then version
  std::vector<std::string> problems;  // entries that could not be read
};

Json IndexToJson(const ZooIndex& index);
ZooIndex ParseIndex(std::string_view text, std::string_view what);  // throws InputError

// Makes the row of an entry. If `manifest` is null, the fields that come from it are left out.
IndexRow RowOf(const ZooEntry& entry, const Json& manifest);

void SortRows(ZooIndex* index);  // sorts as FindRow requires

// Returns the digest of a model's "weights_sample"; "" if there is none.
std::string WeightsDigest(const Json& weights_sample);

// kOfUnchanged: if the folder of a name has not changed since index.json was made, takes all rows
// of the name from there without listing the folder. (The modification time of index.json is the
// time before the entries were listed.)
enum class IndexTrust { kOfUnchanged, kOfNothing };

// Returns the current state of a local zoo. Reads entries whose index rows cannot be used.
ZooIndex CurrentIndex(const Zoo& zoo, IndexTrust trust = IndexTrust::kOfUnchanged);
// Brings index.json up to date. Throws ResourceError.
void UpdateIndex(const Zoo& zoo);

// Returns the row that a reference names by version or identity; otherwise the row of the highest
// version that is not yanked. Null if there is none.
const IndexRow* FindRow(const ZooIndex& index, const ZooReference& reference);

}  // namespace oscar
