// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/keep/publish.h"

#include <fmt/format.h>

#include "capture/files/quote.h"
#include "export/artifact/artifact_format.h"
#include "linalg/base/error.h"
#include "zoo/source/model_repository.h"
#include "zoo/store/blob_store.h"
#include "zoo/store/publisher.h"
#include "zoo/store/zoo_index.h"
#include "zoo/trust/look_alike.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

ZooName NameFor(const PublishOptions& options, const Json& manifest) {
  if (options.name) return *options.name;
  const std::string id =
      JsonString(JsonMember(manifest, "model", kManifestFile), "id", "", kManifestFile);
  if (const std::string problem = ZooNameProblem(id); !problem.empty())
    throw UsageError(fmt::format("give --name, because the artifact's model id {}", problem));
  return ParseZooName(id, kManifestFile);
}

// Throws InputError if the entries belong to different base models. Versions with the same major
// number must share one, so that users of 1.x can upgrade to any higher 1.y.
void CheckSameModel(const ZooEntry& entry, const ZooEntry& before) {
  const std::string ours = ConfigDigest({{"model", entry.model}}),
                    theirs = ConfigDigest({{"model", before.model}});
  if (ours.empty() || theirs.empty() || ours == theirs) return;
  throw InputError(fmt::format(
      "{}@{} belongs to a model whose config.json has SHA-256 {}, but this artifact's has {}; "
      "publish it under a new major version ({}.0.0) or another name",
      before.name.text(), before.version.text(), theirs, ours, before.version.major + 1));
}

[[noreturn]] void FailTaken(const ZooEntry& entry, const ZooEntry& taken) {
  throw InputError(
      fmt::format("{}@{} exists already, {}; versions never change, so give a higher version",
                  entry.name.text(), entry.version.text(),
                  taken.identity == entry.identity
                      ? "with the same artifact"
                      : fmt::format("with another artifact ({}) than this one ({})", taken.identity,
                                    entry.identity)));
}

// Sets the entry's version and compares the entry with the existing ones. If no version is
// requested and the zoo already has this artifact, replaces the entry by the existing one and
// returns true.
bool PlaceVersion(const Zoo& zoo, const PublishOptions& options, ZooEntry* entry) {
  const std::vector<ZooVersion> versions = zoo.Versions(entry->name);
  const auto read = [&, name = entry->name](const ZooVersion& version) {
    return zoo.Read(name, version);
  };
  if (options.version) {
    entry->version = *options.version;
  } else if (versions.empty()) {
    entry->version = {0, 1, 0};
  } else {
    for (const ZooVersion& version : versions) {
      const ZooEntry known = read(version);
      if (known.identity != entry->identity) continue;
      *entry = known;
      return true;
    }
    entry->version = versions.back().NextMinor();
  }
  for (const ZooVersion& version : versions) {
    if (version == entry->version) FailTaken(*entry, read(version));
    if (version.major == entry->version.major) CheckSameModel(*entry, read(version));
  }
  return false;
}

// Makes the entry of an artifact; its version is set later.
Published CheckForPublishing(const fs::path& artifact, const std::optional<ModelGeometry>& model,
                             const PublishOptions& options) {
  const CheckedArtifact checked = CheckArtifact(artifact, model, options.demands);
  Published out;
  out.gates = checked.validation.gates;
  out.entry = {.name = NameFor(options, checked.manifest),
               .version = {},
               .identity = checked.identity,
               .files = checked.files,
               .model = checked.manifest.at("model"),
               .validation = checked.validation.summary,
               .publisher = options.publisher};
  for (const ValidationProblem& problem : checked.validation.problems)
    out.problems.push_back(problem.text);
  // Parses the entry again as readers will, before anything is written.
  ParseEntry(CanonicalJson(EntryToJson(out.entry)), "the new entry");
  return out;
}

// Returns warnings about choices that are allowed but probably mistakes.
std::vector<std::string> WarningsOf(const Zoo& zoo, const ZooEntry& entry) {
  std::vector<std::string> warnings;
  std::vector<ZooName> names;
  for (const ZooFolder& folder : zoo.Folders()) names.push_back(folder.name);
  if (std::string like = LookAlikeWarning(entry.name, names); !like.empty())
    warnings.push_back(std::move(like));
  for (const IndexRow& row : CurrentIndex(zoo).rows) {
    if (row.identity != entry.identity) continue;
    warnings.push_back(fmt::format("{}@{} has the same content as {}, which is already in the zoo",
                                   entry.name.text(), entry.version.text(), row.text()));
    break;
  }
  return warnings;
}

}  // namespace

Published Publish(const Zoo& zoo, const fs::path& artifact,
                  const std::optional<ModelGeometry>& model, const PublishOptions& options) {
  Published out = CheckForPublishing(artifact, model, options);
  if (!out.problems.empty() || options.dry_run) {
    if (out.problems.empty()) out.already = PlaceVersion(zoo, options, &out.entry);
    if (out.problems.empty() && !out.already) out.warnings = WarningsOf(zoo, out.entry);
    return out;
  }
  Publisher publisher(zoo, out.entry.name, options.waiting);
  out.already = PlaceVersion(zoo, options, &out.entry);
  if (!out.already) {
    out.warnings = WarningsOf(zoo, out.entry);
    for (const auto& [name, digest] : out.entry.files) {
      if (!AddBlob(zoo.path(), publisher.staging(), artifact / name, digest)) continue;
      ++out.new_blobs;
      out.new_bytes += digest.size;
    }
    if (!publisher.PublishEntry(out.entry))
      FailTaken(out.entry, zoo.Read(out.entry.name, out.entry.version));
  }
  out.latest = publisher.AdvanceLatest().version;
  try {
    UpdateIndex(zoo);
  } catch (
      const Error& error) {  // the index is a copy of the entries; the next publisher writes it
    out.index_problem = error.what();
  }
  return out;
}

Published PublishRepository(const fs::path& directory, const fs::path& artifact,
                            const std::optional<ModelGeometry>& model,
                            const PublishOptions& options) {
  Published out = CheckForPublishing(artifact, model, options);
  if (!out.problems.empty()) return out;
  out.entry.version = options.version.value_or(ZooVersion{0, 1, 0});
  out.latest = out.entry.version;
  if (options.dry_run) return out;
  WriteRepository(
      out.entry, CanonicalJson(EntryToJson(out.entry)),
      [&](const std::string& name) { return artifact / name; }, {}, directory);
  return out;
}

}  // namespace oscar
