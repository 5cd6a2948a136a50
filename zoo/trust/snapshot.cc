// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/trust/snapshot.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/atomic_file.h"
#include "capture/files/quote.h"
#include "linalg/base/error.h"
#include "zoo/store/yank.h"

namespace oscar {
namespace {

constexpr std::string_view kSnapshotPredicate = "urn:oscar-zoo:snapshot:v1";
constexpr JsonLimits kSnapshotLimits{
    .max_depth = 8, .max_bytes = kMaxSnapshotBytes, .max_values = 2'000'000};

}  // namespace

bool Snapshot::Lists(const ZooName& name, const ZooVersion& version,
                     const std::string& identity) const {
  const auto versions = entries.find(name.text());
  if (versions == entries.end()) return false;
  const auto entry = versions->second.find(version);
  return entry != versions->second.end() && entry->second == identity;
}

bool Snapshot::TookBack(const ZooName& name, const ZooVersion& version,
                        const std::string& identity) const {
  const auto yank = yanked.find(name.text() + "@" + version.text());
  return yank != yanked.end() && yank->second.identity == identity;
}

Snapshot SnapshotOf(const Zoo& zoo, int64_t created_unix, int64_t expires_unix) {
  Snapshot snapshot{created_unix, expires_unix, {}};
  for (const ZooName& name : zoo.Names()) {
    for (const ZooVersion& version : zoo.Versions(name)) {
      // Yanked versions are listed separately, with reasons. So a mirror can neither hide a version
      // by claiming that it was yanked, nor offer a yanked version as valid.
      const std::string identity = zoo.Read(name, version).identity;
      if (const std::string reason = YankReason(zoo, name, version); reason.empty()) {
        snapshot.entries[name.text()][version] = identity;
      } else {
        snapshot.yanked[name.text() + "@" + version.text()] = {identity, reason};
      }
    }
  }
  return snapshot;
}

std::string SnapshotText(const Snapshot& snapshot) {
  Json subjects = Json::array();
  for (const auto& [name, versions] : snapshot.entries) {
    for (const auto& [version, identity] : versions)
      subjects.push_back(
          {{"name", name + "@" + version.text()}, {"digest", {{"sha256", identity}}}});
  }
  Json predicate = {{"created_at_unix", snapshot.created_unix},
                    {"expires_at_unix", snapshot.expires_unix},
                    {"yanked", Json::object()}};
  for (const auto& [version, yank] : snapshot.yanked)
    predicate["yanked"][version] = {{"identity", yank.identity}, {"reason", yank.reason}};
  return CanonicalJson({{"_type", "https://in-toto.io/Statement/v1"},
                        {"subject", subjects},
                        {"predicateType", kSnapshotPredicate},
                        {"predicate", predicate}});
}

namespace {

struct ListedVersion {
  std::string name;
  ZooVersion version;
};
ListedVersion ParseListed(const std::string& text, const std::string& identity,
                          std::string_view what) {
  const size_t at = std::min(text.find('@'), text.size());
  const auto version =
      ParseZooVersion(std::string_view(text).substr(std::min(at + 1, text.size())));
  if (!ZooNameProblem(text.substr(0, at)).empty() || !version || !IsSha256Hex(identity))
    throw InputError(fmt::format("{}: {} is not a version of a zoo", what, Quoted(text)));
  return {text.substr(0, at), *version};
}

}  // namespace

Snapshot ParseSnapshot(std::string_view payload, std::string_view what) {
  const Json json = ParseStrictJson(payload, what, kSnapshotLimits);
  if (const std::string type = JsonString(json, "predicateType", what);
      type != kSnapshotPredicate) {
    throw InputError(fmt::format("{}: predicate {}, expected {}: not a snapshot of a zoo", what,
                                 Quoted(type), kSnapshotPredicate));
  }
  Snapshot snapshot;
  const Json& predicate = JsonMember(json, "predicate", what);
  snapshot.created_unix = JsonInt(predicate, "created_at_unix", what);
  snapshot.expires_unix = JsonInt(predicate, "expires_at_unix", what);
  const Json& subjects = JsonMember(json, "subject", what);
  if (!subjects.is_array()) throw InputError(fmt::format("{}: 'subject' must be an array", what));
  for (const Json& subject : subjects) {
    const std::string name = JsonString(subject, "name", what);
    const std::string identity = JsonString(JsonMember(subject, "digest", what), "sha256", what);
    const ListedVersion listed = ParseListed(name, identity, what);
    if (!snapshot.entries[listed.name].emplace(listed.version, identity).second)
      throw InputError(fmt::format("{}: {} is listed twice", what, Quoted(name)));
  }
  if (!predicate.contains("yanked")) return snapshot;  // written by older programs
  const Json& yanked = JsonMember(predicate, "yanked", what);
  if (!yanked.is_object()) throw InputError(fmt::format("{}: 'yanked' must be an object", what));
  for (const auto& [name, yank] : yanked.items()) {
    const Snapshot::Yanked read = {JsonString(yank, "identity", what),
                                   JsonString(yank, "reason", what)};
    const ListedVersion listed = ParseListed(name, read.identity, what);
    const auto standing = snapshot.entries.find(listed.name);
    if (standing != snapshot.entries.end() && standing->second.contains(listed.version))
      throw InputError(
          fmt::format("{}: {} is listed both as valid and as yanked", what, Quoted(name)));
    snapshot.yanked[name] = read;
  }
  return snapshot;
}

void WriteSnapshot(const Zoo& zoo, const Snapshot& snapshot, const Signer& signer) {
  CheckSigner(signer, kSnapshotFile);
  WriteFileAtomically(zoo.path() / kSnapshotFile, SignedBundleText(SnapshotText(snapshot), signer));
}

}  // namespace oscar
