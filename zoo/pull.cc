// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/pull.h"

#include <fmt/format.h>

#include "capture/files/atomic_file.h"
#include "capture/files/sandbox.h"
#include "linalg/error.h"
#include "zoo/blob_store.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// That everything in `said` is so in `found`. A later program may find more.
bool SaysTheSame(const Json& said, const Json& found) {
  if (!said.is_object() || !found.is_object()) return said == found;
  for (const auto& [key, value] : said.items()) {
    if (found.contains(key) && !SaysTheSame(value, found.at(key))) return false;
  }
  return true;
}

}  // namespace

ValidationDemands DemandsOf(const ZooEntry& entry, std::string_view what) {
  const Json& validation = entry.validation;
  if (!validation.contains("gate")) return {.ungated = true};
  return {.gate = JsonString(JsonMember(validation, "gate", what), "text", what)};
}

void CheckEntryIsOf(const ZooEntry& entry, const CheckedArtifact& artifact, std::string_view what) {
  if (entry.identity != artifact.identity) {
    throw InputError(fmt::format("{}: identity {}, but its manifest has {}", what, entry.identity,
                                 artifact.identity));
  }
  if (entry.files != artifact.files)
    throw InputError(fmt::format("{}: names other files than its manifest does", what));
  if (entry.model != artifact.manifest.at("model"))
    throw InputError(fmt::format("{}: 'model' is not that of its manifest", what));
  if (!SaysTheSame(entry.validation, artifact.validation.summary))
    throw InputError(fmt::format("{}: 'validation' is not that of its report", what));
  if (!artifact.validation.problems.empty()) {
    throw InputError(
        fmt::format("{}: may not be in a zoo: {}", what, artifact.validation.problems[0].text));
  }
}

CheckedArtifact Materialize(const fs::path& zoo, const ZooEntry& entry, const fs::path& staging) {
  for (const auto& [name, digest] : entry.files)
    CopyChecked(BlobPath(zoo, digest.sha256), digest, staging / name);
  const std::string what = EntryPath(zoo, entry.name, entry.version).string();
  LookInSandbox([&] { CheckArtifact(staging, std::nullopt, DemandsOf(entry, what)); }, what);
  CheckedArtifact artifact = CheckArtifact(staging, std::nullopt, DemandsOf(entry, what));
  CheckEntryIsOf(entry, artifact, what);
  return artifact;
}

ZooEntry Pull(const Zoo& zoo, const ZooReference& reference, const fs::path& output) {
  const ZooEntry entry = zoo.Read(reference.name, zoo.Resolve(reference));
  AtomicDirectory directory(output);
  Materialize(zoo.path(), entry, directory.staging());
  directory.Commit();
  return entry;
}

}  // namespace oscar
