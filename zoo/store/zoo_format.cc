// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/store/zoo_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <set>

#include "capture/files/digest_json.h"
#include "capture/files/quote.h"
#include "export/artifact/artifact_format.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr uint64_t kMaxFileSize = uint64_t{1} << 50;  // bytes

Json SchemaJson(std::string_view name) { return {{"name", name}, {"version", kZooVersion}}; }

// Refuses unknown members, because a format with more members would have another version number.
void CheckDocument(const Json& json, std::string_view schema,
                   std::initializer_list<std::string_view> members, std::string_view what) {
  if (!json.is_object()) throw InputError(fmt::format("{}: expected a JSON object", what));
  const Json& found = JsonMember(json, "$schema", what);
  const std::string name = JsonString(found, "name", what);
  const int64_t version = JsonInt(found, "version", what);
  if (name != schema || version != kZooVersion) {
    throw InputError(fmt::format(
        "{}: schema {} {}, expected {} {}; a newer version of oscar may be able to read it", what,
        Quoted(name), version, schema, kZooVersion));
  }
  for (const auto& [key, value] : json.items()) {
    if (key != "$schema" && std::find(members.begin(), members.end(), key) == members.end())
      throw InputError(fmt::format("{}: unknown member {}", what, Quoted(key)));
  }
}

Json ObjectMember(const Json& json, const char* key, std::string_view what) {
  const Json& member = JsonMember(json, key, what);
  if (!member.is_object()) throw InputError(fmt::format("{}: '{}' is not an object", what, key));
  return member;
}

std::string DigestMember(const Json& json, const char* key, std::string_view what) {
  std::string digest = JsonString(json, key, what);
  if (!IsSha256Hex(digest)) {
    throw InputError(
        fmt::format("{}: '{}' is {}, expected a SHA-256 of 64 lower-case hexadecimal digits", what,
                    key, Quoted(digest)));
  }
  return digest;
}

}  // namespace

fs::path BlobFolder(const fs::path& zoo) { return zoo / "blobs" / "sha256"; }

fs::path BlobPath(const fs::path& zoo, const std::string& sha256) {
  OSCAR_CHECK(IsSha256Hex(sha256));
  return BlobFolder(zoo) / sha256;
}

fs::path EntryFolder(const fs::path& zoo, const ZooName& name) {
  return zoo / "entries" / name.org / name.model;
}

fs::path EntryPath(const fs::path& zoo, const ZooName& name, const ZooVersion& version) {
  return EntryFolder(zoo, name) / (version.text() + ".json");
}

fs::path SignatureFolder(const fs::path& zoo, const ZooName& name, const ZooVersion& version) {
  return zoo / "signatures" / name.org / name.model / version.text();
}

fs::path SignaturePath(const fs::path& zoo, const ZooName& name, const ZooVersion& version,
                       const std::string& sha256) {
  OSCAR_CHECK(IsSha256Hex(sha256));
  return SignatureFolder(zoo, name, version) / (sha256 + ".sigstore.json");
}

fs::path YankPath(const fs::path& zoo, const ZooName& name, const ZooVersion& version) {
  return zoo / "yanked" / name.org / name.model / (version.text() + ".json");
}

fs::path StagingFolder(const fs::path& zoo, const ZooName& name) {
  return zoo / "staging" / name.folded();
}

uint64_t ZooEntry::bytes() const {
  uint64_t sum = 0;
  for (const auto& [file, digest] : files) sum += digest.size;
  return sum;
}

Json EntryToJson(const ZooEntry& entry) {
  Json files = Json::object();
  for (const auto& [file, digest] : entry.files) files[file] = DigestToJson(digest);
  return {{"$schema", SchemaJson(kEntrySchema)},
          {"name", entry.name.text()},
          {"version", entry.version.text()},
          {"identity", entry.identity},
          {"files", files},
          {"model", entry.model},
          {"validation", entry.validation},
          {"publisher", entry.publisher}};
}

std::map<std::string, FileDigest> ParseFileDigests(const Json& files, std::string_view what) {
  if (!files.is_object()) throw InputError(fmt::format("{}: 'files' is not an object", what));
  if (files.size() > kMaxEntryFiles) {
    throw InputError(
        fmt::format("{}: lists {} files, expected at most {}", what, files.size(), kMaxEntryFiles));
  }
  std::map<std::string, FileDigest> out;
  std::set<std::string> folded;
  for (const auto& [name, value] : files.items()) {
    const std::string where = fmt::format("{}: file {}", what, Quoted(name));
    if (const std::string problem = NamePartProblem(name); !problem.empty())
      throw InputError(fmt::format("{} {}", where, problem));
    if (!folded.insert(ZooName{"", name}.folded()).second)
      throw InputError(where + " appears twice, differing only in case");
    const FileDigest digest = {DigestMember(value, "sha256", where),
                               static_cast<uint64_t>(JsonInt(value, "size", where))};
    if (digest.size > kMaxFileSize)  // negative ones too
      throw InputError(where + ": the size must be from 0 to 1 PiB");
    if (value.size() != 2) throw InputError(where + ": expected only sha256 and size");
    out[name] = digest;
  }
  return out;
}

ZooEntry ParseEntry(std::string_view text, std::string_view what) {
  const Json json = ParseStrictJson(text, what, kZooJsonLimits);
  CheckDocument(json, kEntrySchema,
                {"name", "version", "identity", "files", "model", "validation", "publisher"}, what);
  ZooEntry entry;
  entry.name = ParseZooName(JsonString(json, "name", what), what);
  entry.version = ZooVersionOf(JsonString(json, "version", what), what);
  entry.identity = DigestMember(json, "identity", what);
  entry.files = ParseFileDigests(JsonMember(json, "files", what), what);
  entry.model = ObjectMember(json, "model", what);
  entry.validation = ObjectMember(json, "validation", what);
  entry.publisher = ObjectMember(json, "publisher", what);
  const auto manifest = entry.files.find(kManifestFile);
  if (manifest == entry.files.end())
    throw InputError(fmt::format("{}: does not list {}", what, kManifestFile));
  if (manifest->second.sha256 != entry.identity) {
    throw InputError(fmt::format("{}: identity {} differs from the digest of {}, which is {}", what,
                                 entry.identity, kManifestFile, manifest->second.sha256));
  }
  return entry;
}

Json LatestToJson(const ZooName& name, const LatestPointer& latest) {
  return {{"$schema", SchemaJson(kLatestSchema)},
          {"name", name.text()},
          {"version", latest.version.text()},
          {"identity", latest.identity}};
}

LatestPointer ParseLatest(std::string_view text, const ZooName& name, std::string_view what) {
  const Json json = ParseStrictJson(text, what, kZooJsonLimits);
  CheckDocument(json, kLatestSchema, {"name", "version", "identity"}, what);
  if (JsonString(json, "name", what) != name.text()) {
    throw InputError(fmt::format("{}: belongs to {}, expected {}", what,
                                 Quoted(JsonString(json, "name", what)), name.text()));
  }
  return {ZooVersionOf(JsonString(json, "version", what), what),
          DigestMember(json, "identity", what)};
}

Json SignatureIndexToJson(const SignatureIndex& index) {
  return {{"$schema", SchemaJson(kSignaturesSchema)}, {"signatures", index}};
}

SignatureIndex ParseSignatureIndex(std::string_view text, std::string_view what) {
  const Json json = ParseStrictJson(text, what, kZooJsonLimits);
  CheckDocument(json, kSignaturesSchema, {"signatures"}, what);
  const Json signatures = ObjectMember(json, "signatures", what);
  if (signatures.size() > kMaxSignatures) {
    throw InputError(fmt::format("{}: lists {} signatures, expected at most {}", what,
                                 signatures.size(), kMaxSignatures));
  }
  SignatureIndex index;
  for (const auto& [sha256, size] : signatures.items()) {
    if (!IsSha256Hex(sha256))
      throw InputError(fmt::format("{}: {} is not a SHA-256", what, Quoted(sha256)));
    index[sha256] = static_cast<uint64_t>(JsonInt(signatures, sha256.c_str(), what));
    if (index[sha256] > kMaxSignatureBytes)  // negative ones too
      throw InputError(fmt::format("{}: {}: the size must be from 0 to 1 MiB", what, sha256));
  }
  return index;
}

}  // namespace oscar
