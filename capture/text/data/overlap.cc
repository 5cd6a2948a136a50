// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/text/data/overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <unordered_map>
#include <utility>

#include "capture/files/quote.h"
#include "linalg/base/error.h"
#include "linalg/base/splitmix64.h"

namespace oscar {
namespace {

constexpr std::string_view kFormat = "oscar-overlap-1";
constexpr uint64_t kBase = 0x9E3779B97F4A7C15U;
constexpr size_t kHexDigits = 16;

uint64_t MixId(int32_t id) { return MixBits(static_cast<uint64_t>(id) + 1); }

// Calls use(hash) for each window with enough different ids. The hash is a rolling polynomial; the
// counts of ids are updated in the same way.
template <class Use>
void ForEachWindow(std::span<const int32_t> ids, Use use) {
  constexpr auto kWindow = static_cast<size_t>(kOverlapWindow);
  uint64_t leaving = 1;  // kBase^kWindow
  for (size_t i = 0; i < kWindow; ++i) leaving *= kBase;
  std::unordered_map<int32_t, int64_t> count;
  uint64_t hash = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    hash = hash * kBase + MixId(ids[i]);
    ++count[ids[i]];
    if (i >= kWindow) {
      const int32_t gone = ids[i - kWindow];
      hash -= MixId(gone) * leaving;
      if (--count[gone] == 0) count.erase(gone);
    }
    if (i + 1 >= kWindow && count.size() >= static_cast<size_t>(kOverlapDistinct))
      use(MixBits(hash));
  }
}

struct Part {
  std::string origin;
  std::span<const int32_t> ids;
};

// Returns the documents in data that may be packed.
std::vector<Part> SplitDocuments(const DataSet& data) {
  std::vector<Part> parts;
  for (const Document& document : data.documents) {
    const std::span<const int32_t> ids = document.ids;
    if (!data.separator) {
      parts.push_back({document.origin, ids});
      continue;
    }
    for (size_t begin = 0; begin < ids.size();) {
      const auto rest = ids.subspan(begin);
      const auto found = std::find(rest.begin(), rest.end(), data.separator->id);
      const auto length = static_cast<size_t>(found - rest.begin());
      parts.push_back(
          {fmt::format("{}, from token {}", document.origin, begin), rest.first(length)});
      begin += length + 1;
    }
  }
  return parts;
}

void SortUnique(std::vector<uint64_t>& hashes) {
  std::sort(hashes.begin(), hashes.end());
  hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
}

// Keeps the smallest kMaxFingerprints hashes and lowers the limit accordingly.
void Cap(Fingerprints& prints) {
  std::erase_if(prints.hashes, [&](uint64_t hash) { return hash >= prints.limit; });
  if (prints.hashes.size() <= kMaxFingerprints) return;
  prints.limit = prints.hashes[kMaxFingerprints];
  prints.hashes.resize(kMaxFingerprints);
}

uint64_t ParseHex(std::string_view digits, std::string_view what) {
  uint64_t value = 0;
  const bool lower_case = digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (digits.size() != kHexDigits || !lower_case) {
    throw InputError(fmt::format("{}: expected {} hexadecimal digits, found {}", what, kHexDigits,
                                 Quoted(digits)));
  }
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

std::string Percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }

}  // namespace

Fingerprints MakeFingerprints(const DataSet& data) {
  Fingerprints prints;
  for (const Part& part : SplitDocuments(data)) {
    ForEachWindow(part.ids, [&](uint64_t hash) {
      if (hash < prints.limit) prints.hashes.push_back(hash);
    });
  }
  SortUnique(prints.hashes);
  Cap(prints);
  return prints;
}

Json FingerprintsToJson(const Fingerprints& fingerprints) {
  std::string hashes;
  hashes.reserve(kHexDigits * fingerprints.hashes.size());
  for (const uint64_t hash : fingerprints.hashes) hashes += fmt::format("{:016x}", hash);
  return {{"format", kFormat},
          {"limit", fmt::format("{:016x}", fingerprints.limit)},
          {"hashes", std::move(hashes)}};
}

Fingerprints FingerprintsFromJson(const Json& json, std::string_view what) {
  if (!json.is_object()) {
    throw InputError(fmt::format("{}: expected an object, found {}", what, json.type_name()));
  }
  if (const std::string format = JsonString(json, "format", what); format != kFormat) {
    throw InputError(
        fmt::format("{}: format {} is not known (expected \"{}\")", what, Quoted(format), kFormat));
  }
  for (const auto& [key, value] : json.items()) {
    if (key != "format" && key != "limit" && key != "hashes")
      throw InputError(fmt::format("{}: unknown member {}", what, Quoted(key)));
  }
  Fingerprints prints;
  prints.limit = ParseHex(JsonString(json, "limit", what), what);
  const std::string digits = JsonString(json, "hashes", what);
  if (prints.limit > kOverlapLimit || prints.limit == 0) {
    throw InputError(
        fmt::format("{}: limit {:016x} is not in [1, {:016x}]", what, prints.limit, kOverlapLimit));
  }
  if (digits.size() % kHexDigits != 0 || digits.size() / kHexDigits > kMaxFingerprints) {
    throw InputError(fmt::format(
        "{}: \"hashes\" has {} characters, expected a multiple of {} for at most {} hashes", what,
        digits.size(), kHexDigits, kMaxFingerprints));
  }
  for (size_t i = 0; i < digits.size(); i += kHexDigits) {
    const uint64_t hash = ParseHex(std::string_view(digits).substr(i, kHexDigits), what);
    if (hash >= prints.limit || (!prints.hashes.empty() && hash <= prints.hashes.back())) {
      throw InputError(fmt::format("{}: hash {} is not above the one before it and below the limit",
                                   what, i / kHexDigits));
    }
    prints.hashes.push_back(hash);
  }
  return prints;
}

Json OverlapResult::ToJson() const {
  Json json = {{"known", known},       {"windows", windows},     {"shared", shared},
               {"fraction", fraction}, {"same_data", same_data}, {"refused", refused}};
  if (!worst_origin.empty())
    json["worst"] = {{"document", worst_origin}, {"fraction", worst_fraction}};
  return json;
}

OverlapResult FindOverlap(const Fingerprints& calibration, std::string_view calibration_digest,
                          const DataSet& evaluation) {
  OverlapResult result;
  for (const Part& part : SplitDocuments(evaluation)) {
    std::vector<uint64_t> hashes;
    ForEachWindow(part.ids, [&](uint64_t hash) {
      if (hash < calibration.limit) hashes.push_back(hash);
    });
    SortUnique(hashes);  // counts a repeated passage once
    const auto shared = std::count_if(hashes.begin(), hashes.end(), [&](uint64_t hash) {
      return std::binary_search(calibration.hashes.begin(), calibration.hashes.end(), hash);
    });
    const auto windows = static_cast<int64_t>(hashes.size());
    result.windows += windows;
    result.shared += shared;
    if (static_cast<int64_t>(part.ids.size()) < kMinDocumentTokens || windows < kMinDocumentWindows)
      continue;
    const double fraction = static_cast<double>(shared) / static_cast<double>(windows);
    if (fraction > result.worst_fraction || result.worst_origin.empty()) {
      result.worst_fraction = fraction;
      result.worst_origin = part.origin;
    }
  }
  if (result.windows > 0)
    result.fraction = static_cast<double>(result.shared) / static_cast<double>(result.windows);
  result.same_data = calibration_digest == evaluation.digest;
  result.refused = result.same_data || result.fraction > kMaxOverlap ||
                   result.worst_fraction > kMaxDocumentOverlap;
  return result;
}

OverlapResult FindOverlap(const Json& manifest_data, std::string_view what,
                          const DataSet& evaluation) {
  if (!manifest_data.is_object()) {
    throw InputError(
        fmt::format("{}: expected an object, found {}", what, manifest_data.type_name()));
  }
  const auto sources = manifest_data.find("sources");
  const Json parts = sources == manifest_data.end() ? Json::array({manifest_data}) : *sources;
  if (!parts.is_array() || parts.empty()) {
    throw InputError(fmt::format("{}: \"sources\" must be a list of data sets", what));
  }
  Fingerprints all;
  bool known = true;
  bool same_data = false;
  for (const Json& part : parts) {
    same_data = same_data || JsonString(part, "digest", "", what) == evaluation.digest;
    const auto found = part.find("fingerprints");
    if (found == part.end()) {
      known = false;
      continue;
    }
    const Fingerprints prints = FingerprintsFromJson(*found, fmt::format("{}: fingerprints", what));
    all.limit = std::min(all.limit, prints.limit);
    all.hashes.insert(all.hashes.end(), prints.hashes.begin(), prints.hashes.end());
  }
  SortUnique(all.hashes);
  std::erase_if(all.hashes, [&](uint64_t hash) { return hash >= all.limit; });
  OverlapResult result = FindOverlap(all, same_data ? evaluation.digest : "", evaluation);
  result.known = known;
  return result;
}

void CheckOverlap(const OverlapResult& result, const DataSet& evaluation) {
  if (!result.refused) return;
  std::string found =
      fmt::format("{} of its {} sampled passages are in the calibration data (limit {})",
                  Percent(result.fraction), result.windows, Percent(kMaxOverlap));
  if (result.same_data) {
    found = "it is the calibration data, token for token";
  } else if (result.worst_fraction > kMaxDocumentOverlap) {
    found += fmt::format("; in document {} alone, {} are (limit {})", Quoted(result.worst_origin),
                         Percent(result.worst_fraction), Percent(kMaxDocumentOverlap));
  }
  throw InputError(fmt::format(
      "evaluation data {}: {}; a validation on calibration text proves nothing, so give text that "
      "was not used for calibration, or leave out --data to use the built-in evaluation text",
      Quoted(evaluation.name), found));
}

}  // namespace oscar
