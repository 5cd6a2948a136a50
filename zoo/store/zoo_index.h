// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// index.json: every version of a zoo in one file, with searchable fields, because a static server
// lists no directories. It is made from the entries and manifests and only copies them. It may lag
// behind them, and a pull is checked against the entry. On a zoo's own disk CurrentIndex adds the
// missing rows.
//
//     {"$schema": {"name": "oscar-zoo-index", "version": 1}, "entries": [ROW, ...]}   sorted by
//     name and version
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
  uint64_t bytes = 0;                     // of all files
  std::string model = {}, revision = {};  // the base model's id
  std::string config_sha256 = {};         // of its config.json; empty if the manifest has none
  std::string weights_sha256 = {};        // WeightsDigest; empty if there is no sample
  std::string method = {};                // the headline arm's name
  std::string gate = {};                  // text of the gate that it passed; empty: ungated
  std::optional<double> kl = {}, ppl_ratio = {}, bits = {};  // the headline arm's; bits per element
  std::vector<std::string> runtimes = {};                    // runtimes with their own choice
  int64_t published_at = 0;                                  // Unix seconds
  std::string yanked = {};                                   // reason; empty: not yanked

  std::string text() const { return name.text() + "@" + version.text(); }
  bool operator==(const IndexRow&) const = default;
};

struct ZooIndex {
  std::vector<IndexRow> rows;         // sorted by name, then version
  std::vector<std::string> problems;  // entries that could not be read
};

Json IndexToJson(const ZooIndex& index);
ZooIndex ParseIndex(std::string_view text, std::string_view what);  // throws InputError

// Makes the row of an entry. `manifest` may be null; its fields are then left out.
IndexRow RowOf(const ZooEntry& entry, const Json& manifest);

void SortRows(ZooIndex* index);  // sorts as FindRow requires

// The digest of a model's "weights_sample"; "" for none.
std::string WeightsDigest(const Json& weights_sample);

// Whether the index's rows are used for names whose folders have not changed since it was made (it
// is dated to when the entries were listed), so that these need not be opened.
enum class IndexTrust { kOfUnchanged, kOfNothing };

// The current state of a zoo on this disk: valid rows of its index, and the rest read again.
ZooIndex CurrentIndex(const Zoo& zoo, IndexTrust trust = IndexTrust::kOfUnchanged);
// Brings index.json up to date. Throws ResourceError.
void UpdateIndex(const Zoo& zoo);

// The row that a reference means, or without a version the highest that is not yanked. Null if
// there is none.
const IndexRow* FindRow(const ZooIndex& index, const ZooReference& reference);

}  // namespace oscar
