// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "linalg/error.h"
#include "zoo/blob_store.h"
#include "zoo/linked_entry.h"
#include "zoo/pull.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

class Verifier {
 public:
  Verifier(const Zoo& zoo, const std::optional<Remeasure>& remeasure)
      : zoo_(zoo), remeasure_(remeasure) {}

  void Entry(const ZooName& name, const ZooVersion& version) {
    ++out_.entries;
    const std::string where = Relative(EntryPath(zoo_.path(), name, version));
    Guarded(where, [&] {
      const ZooEntry entry = zoo_.Read(name, version);
      bool sound = true;
      for (const auto& [file, digest] : entry.files) sound = Blob(digest, where, file) && sound;
      if (!sound) return;
      const LinkedEntry linked(zoo_.path(), entry);
      const CheckedArtifact artifact =
          CheckArtifact(linked.directory(), ModelOf(), DemandsOf(entry, where));
      CheckEntryIsOf(entry, artifact, where);
      if (remeasure_) MeasureAgain(linked.directory(), where);
    });
  }

  void Latest(const ZooName& name) {
    const std::string where = Relative(EntryFolder(zoo_.path(), name) / kLatestFile);
    Guarded(where, [&] {
      const auto highest = zoo_.Highest(name);
      const auto latest = zoo_.Latest(name);
      if (!latest) {
        out_.notes.push_back({where, "is not there yet; the next publish writes it"});
        return;
      }
      if (zoo_.Read(name, latest->version).identity != latest->identity)
        throw InputError(
            fmt::format("names {} with another identity than its entry", latest->version.text()));
      if (highest && latest->version != *highest) {
        out_.notes.push_back({where, fmt::format("names {}, the highest version is {}; the next "
                                                 "publish moves it",
                                                 latest->version.text(), highest->text())});
      }
    });
  }

  void Names() {
    std::map<std::string, ZooName> folded;
    for (const ZooName& name : zoo_.Names()) {
      const auto [other, added] = folded.emplace(name.folded(), name);
      if (!added) {
        out_.problems.push_back(
            {Relative(EntryFolder(zoo_.path(), name)),
             "is the same name as " + other->second.text() + " on systems that fold case"});
      }
      for (const ZooVersion& version : zoo_.Versions(name)) Entry(name, version);
      Latest(name);
    }
    for (const std::string& stranger : zoo_.Strangers())
      out_.notes.push_back({stranger, "is no part of the zoo"});
  }

  void OtherBlobs() {
    const BlobListing listing = ListBlobs(zoo_.path());
    for (const FileDigest& blob : listing.blobs) {
      if (blobs_.count(blob.sha256) != 0) continue;
      out_.unreferenced.push_back(blob);
      Blob(blob, Relative(BlobPath(zoo_.path(), blob.sha256)), "");
    }
    for (const std::string& stranger : listing.strangers)
      out_.notes.push_back({"blobs/sha256/" + stranger, "is no blob"});
  }

  Verified Finish() { return std::move(out_); }

 private:
  std::optional<ModelGeometry> ModelOf() const {
    return remeasure_ ? std::optional(remeasure_->model) : std::nullopt;
  }

  void MeasureAgain(const fs::path& artifact, const std::string& where) {
    const Json report = Artifact::Open(artifact).report();
    const Json& recorded = report.at("validation");
    const Json again = remeasure_->measure(artifact, RecordedConfiguration(recorded, where));
    ++out_.measured;
    for (const std::string& line : CompareValidations(recorded, again.at("validation")))
      out_.problems.push_back({where, "the report is not what the model gives: " + line});
  }

  // Also where the size differs from what another entry says: a blob has one size.
  bool Blob(const FileDigest& digest, const std::string& where, const std::string& file) {
    const auto [known, added] = blobs_.try_emplace(digest.sha256);
    if (added || known->second.size != digest.size) {
      known->second.size = digest.size;
      known->second.problem = ContentProblem(BlobPath(zoo_.path(), digest.sha256), digest);
      if (added) {
        ++out_.blobs;
        out_.bytes += digest.size;
      }
    }
    if (known->second.problem.empty()) return true;
    out_.problems.push_back({where, fmt::format("{}{}blob {}: {}", file, file.empty() ? "" : ": ",
                                                digest.sha256, known->second.problem)});
    return false;
  }

  template <typename Check>
  void Guarded(const std::string& where, Check check) {
    try {
      check();
    } catch (const InputError& error) {
      out_.problems.push_back({where, error.what()});
    }
  }

  std::string Relative(const fs::path& path) const {
    return path.lexically_relative(zoo_.path()).string();
  }

  struct KnownBlob {
    uint64_t size = 0;
    std::string problem;
  };
  const Zoo& zoo_;
  const std::optional<Remeasure>& remeasure_;
  Verified out_;
  std::map<std::string, KnownBlob> blobs_;
};

}  // namespace

Verified Verify(const Zoo& zoo, const std::optional<ZooReference>& reference,
                const std::optional<Remeasure>& remeasure) {
  Verifier verifier(zoo, remeasure);
  if (!reference) {
    verifier.Names();
    verifier.OtherBlobs();
  } else if (reference->version) {
    const std::vector<ZooVersion> versions = zoo.Versions(reference->name);
    if (std::find(versions.begin(), versions.end(), *reference->version) == versions.end())
      zoo.Read(reference->name, *reference->version);  // throws: not there is no finding
    verifier.Entry(reference->name, *reference->version);
  } else {
    zoo.Resolve(*reference);
    for (const ZooVersion& version : zoo.Versions(reference->name))
      verifier.Entry(reference->name, version);
    verifier.Latest(reference->name);
  }
  return verifier.Finish();
}

}  // namespace oscar
