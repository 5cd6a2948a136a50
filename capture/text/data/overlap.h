// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Detects whether text of the evaluation data also occurs in the calibration data. The manifest of
// a calibration stores hashes (fingerprints) of its token windows, among which the windows of the
// evaluation data are looked up. Which windows are stored depends only on their content, so a
// shared passage is found at any offset. A passage is not found if it was paraphrased or encoded by
// another tokenizer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "capture/files/strict_json.h"
#include "capture/text/data/data_source.h"

namespace oscar {

// Format "oscar-overlap-1". Artifacts store it, so it never changes.
//   window      32 consecutive token ids of one document, at least 12 of them different (runs of
//               spaces, rules and empty table cells would match everywhere)
//   hash        Mix(sum over i of Mix(id_i + 1) * 0x9E3779B97F4A7C15^(31 - i) mod 2^64), where Mix
//               is the finalizer of splitmix64
//   kept        the hashes below `limit`, sorted and distinct. The limit is 2^59, which keeps one
//               window in 32; it is lowered if that leaves more than 16384 hashes (from about
//               500,000 tokens on)
inline constexpr int64_t kOverlapWindow = 32;
inline constexpr int64_t kOverlapDistinct = 12;
inline constexpr uint64_t kOverlapLimit = uint64_t{1} << 59;
inline constexpr size_t kMaxFingerprints = 16384;

struct Fingerprints {
  uint64_t limit = kOverlapLimit;  // exclusive upper bound of `hashes`
  std::vector<uint64_t> hashes;    // ascending, distinct
  bool operator==(const Fingerprints&) const = default;
};

// Splits packed data at its separators first.
Fingerprints MakeFingerprints(const DataSet& data);

// {"format","limit","hashes"}: the last two are hexadecimal with 16 digits each, hashes without
// separators.
Json FingerprintsToJson(const Fingerprints& fingerprints);
// Throws InputError naming `what` for another format, a limit above 2^59, or hashes that are not
// hexadecimal, not ascending, not below the limit, or too many.
Fingerprints FingerprintsFromJson(const Json& json, std::string_view what);

// Limits for the overlap. Unrelated texts of one kind share licence headers, menus and greetings:
// two sets of 100,000 tokens from one source shared 2 % of all windows, and half of the windows of
// one document. A leaked document shares nearly all of its windows.
inline constexpr double kMaxOverlap = 0.10;          // share of all sampled windows
inline constexpr double kMaxDocumentOverlap = 0.75;  // share of the windows of one document ...
inline constexpr int64_t kMinDocumentTokens = 256;   // ... of at least this many tokens
inline constexpr int64_t kMinDocumentWindows = 4;    // ... and sampled windows

struct OverlapResult {
  int64_t windows = 0;  // sampled windows of the evaluation data, each counted once per document
  int64_t shared = 0;   // number of those windows that the calibration data contains
  double fraction = 0;  // shared / windows; 0 if there are no windows
  // The document with the largest fraction of shared windows, among documents of at least
  // kMinDocumentTokens and kMinDocumentWindows; an empty origin means that there is none.
  std::string worst_origin;
  double worst_fraction = 0;
  bool known = true;       // false: the artifact lacks (some) fingerprints and only has digests
  bool same_data = false;  // the digests of token ids are equal
  bool refused = false;    // same_data, or above a limit
  // {"known","windows","shared","fraction","worst":{"document","fraction"},"same_data","refused"}
  Json ToJson() const;
};

// `calibration_digest` is data.digest of the manifest.
OverlapResult FindOverlap(const Fingerprints& calibration, std::string_view calibration_digest,
                          const DataSet& evaluation);

// Takes the fingerprints from the member "data" of a manifest: one data set with "fingerprints", or
// "sources", a list of such data sets (a merged artifact). Throws InputError naming `what` for
// malformed fingerprints. If some are missing, result.known is false.
OverlapResult FindOverlap(const Json& manifest_data, std::string_view what,
                          const DataSet& evaluation);

// If result.refused, throws InputError with the findings, the limits, and advice.
void CheckOverlap(const OverlapResult& result, const DataSet& evaluation);

}  // namespace oscar
