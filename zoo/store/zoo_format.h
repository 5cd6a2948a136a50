// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The file format of a zoo. A zoo consists of plain files at predictable paths, so a copy on any
// web server is a zoo too:
//
// clang-format off
//     zoo.json                             {"$schema": {"name": "oscar-zoo", "version": 1}}
//     blobs/sha256/<64 hex digits>         contents, named by their SHA-256; never changed
//     entries/<ORG>/<MODEL>/<X.Y.Z>.json   one per version; never changed; written last
//     entries/<ORG>/<MODEL>/latest.json    pointer to the highest version, swapped by rename
//     index.json                           every version with searchable fields (zoo_index.h); swapped by rename
//     yanked/<ORG>/<MODEL>/<X.Y.Z>.json    one per yanked version (yank.h)
//     signatures/<ORG>/<MODEL>/<X.Y.Z>/    may be added at any time; the entry does not change
//         index.json                       {"$schema": {"name": "oscar-zoo-signatures", "version": 1},
//                                           "signatures": {"<64 hex digits>": <bytes>}}; swapped by rename
//         <64 hex digits>.sigstore.json    an OpenSSF Model Signing v1.0 bundle, named by its SHA-256;
//                                          its subject is NAME@X.Y.Z, its resources the entry's files
//     snapshot.sigstore.json               signed list of all entries with a date and an expiry; swapped by rename
//     staging/<org>/<model>/               lower case; lock and unfinished files of publishers; never read or
//                                          copied as part of the zoo
// clang-format on
//
// An entry lists every file of an artifact with its digest and size. The entry's identity is the
// SHA-256 of the artifact's manifest.json.
//
// Trap: digests and names may come from untrusted files. Turn a digest into a path only with
// BlobPath, and check names with ZooName and NamePartProblem.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "capture/files/digest.h"
#include "capture/files/strict_json.h"
#include "zoo/store/zoo_name.h"

namespace oscar {

inline constexpr std::string_view kZooSchema = "oscar-zoo";
inline constexpr std::string_view kEntrySchema = "oscar-zoo-entry";
inline constexpr std::string_view kLatestSchema = "oscar-zoo-latest";
inline constexpr std::string_view kSignaturesSchema = "oscar-zoo-signatures";
inline constexpr int kZooVersion = 1;  // the version of all four schemas

inline constexpr const char* kZooFile = "zoo.json";
inline constexpr const char* kLatestFile = "latest.json";
inline constexpr const char* kIndexFile = "index.json";
inline constexpr const char* kSignatureIndexFile = "index.json";
inline constexpr const char* kSnapshotFile = "snapshot.sigstore.json";
inline constexpr size_t kMaxSignatures = 64;                   // per version
inline constexpr size_t kMaxSignatureBytes = size_t{1} << 20;  // size of one bundle
inline constexpr size_t kMaxSnapshotBytes = size_t{64} << 20;
inline constexpr size_t kMaxEntryFiles = 64;
inline constexpr JsonLimits kZooJsonLimits{
    .max_depth = 16, .max_bytes = size_t{1} << 20, .max_values = 10'000};  // for entries, pointers

std::filesystem::path BlobFolder(const std::filesystem::path& zoo);
// `sha256` must pass IsSha256Hex.
std::filesystem::path BlobPath(const std::filesystem::path& zoo, const std::string& sha256);
std::filesystem::path EntryFolder(const std::filesystem::path& zoo, const ZooName& name);
std::filesystem::path EntryPath(const std::filesystem::path& zoo, const ZooName& name,
                                const ZooVersion& version);
std::filesystem::path SignatureFolder(const std::filesystem::path& zoo, const ZooName& name,
                                      const ZooVersion& version);
// `sha256` must pass IsSha256Hex.
std::filesystem::path SignaturePath(const std::filesystem::path& zoo, const ZooName& name,
                                    const ZooVersion& version, const std::string& sha256);
std::filesystem::path YankPath(const std::filesystem::path& zoo, const ZooName& name,
                               const ZooVersion& version);
std::filesystem::path StagingFolder(const std::filesystem::path& zoo, const ZooName& name);

// One version of one name.
struct ZooEntry {
  ZooName name;
  ZooVersion version;
  std::string identity;                     // SHA-256 of manifest.json
  std::map<std::string, FileDigest> files;  // by plain file name, including manifest.json
  Json model;                               // the manifest's model: id, revision, digests
  Json validation;                          // ValidationCheck::summary of the report
  Json publisher;                           // program and time, for information only

  uint64_t bytes() const;  // total size of the files
};

Json EntryToJson(const ZooEntry& entry);

// Throws InputError naming `what` for another schema or version, an invalid name, version, digest,
// size or file name, and an unknown member. Also throws if two file names differ only in case, or
// if manifest.json is missing or its digest is not the identity.
ZooEntry ParseEntry(std::string_view text, std::string_view what);

struct LatestPointer {
  ZooVersion version;
  std::string identity;
};
Json LatestToJson(const ZooName& name, const LatestPointer& latest);
LatestPointer ParseLatest(std::string_view text, const ZooName& name, std::string_view what);

// The sizes in bytes of one version's signatures, by the SHA-256 of each bundle.
using SignatureIndex = std::map<std::string, uint64_t>;
Json SignatureIndexToJson(const SignatureIndex& index);
SignatureIndex ParseSignatureIndex(std::string_view text, std::string_view what);  // InputError

// Returns the digests in a manifest's "files", checked like those of an entry. Throws InputError.
std::map<std::string, FileDigest> ParseFileDigests(const Json& files, std::string_view what);

}  // namespace oscar
