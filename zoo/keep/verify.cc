// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/keep/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "linalg/base/error.h"
#include "linalg/base/parallel_for.h"
#include "zoo/source/pull.h"
#include "zoo/store/blob_store.h"
#include "zoo/store/linked_entry.h"
#include "zoo/store/yank.h"
#include "zoo/store/zoo_index.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

class Verifier {
 public:
  Verifier(const Zoo& zoo, const std::optional<Remeasure>& remeasure)
      : zoo_(zoo), remeasure_(remeasure) {}

  // Records an entry, which CheckEntries checks later together with all others.
  void Entry(const ZooName& name, const ZooVersion& version) {
    ++out_.entries;
    const std::string where = Relative(EntryPath(zoo_.path(), name, version));
    Guarded(where, [&] {
      noted_.push_back({where, zoo_.Read(name, version), {}, {}});
      for (const auto& [file, digest] : noted_.back().entry.files) NoteBlob(digest);
    });
  }

  // Checks each blob once, even if several entries name it. Then checks the artifacts whose blobs
  // are all sound. Both steps use all cores, but problems are listed in the order of the entries.
  void CheckEntries() {
    CheckBlobs();
    ParallelFor(std::ssize(noted_), [&](int64_t i) {
      Noted& noted = noted_[static_cast<size_t>(i)];
      for (const auto& [file, digest] : noted.entry.files) {
        const std::string& problem = blobs_.at({digest.sha256, digest.size});
        if (!problem.empty()) noted.problems.push_back(BlobProblem(file, digest, problem));
      }
      if (!noted.problems.empty()) return;
      try {
        const CheckedArtifact artifact =
            CheckArtifact(FilesOfEntry(zoo_, noted.entry), ModelOf(),
                          DemandsOf(noted.entry, noted.where), Digests::kCompared);
        CheckEntryIsOf(noted.entry, artifact, noted.where);
        noted.row = RowOf(noted.entry, artifact.manifest);
      } catch (const InputError& error) {
        noted.problems.push_back(error.what());
      }
    });
    for (const Noted& noted : noted_) {
      for (const std::string& problem : noted.problems)
        out_.problems.push_back({noted.where, problem});
      rows_.emplace(noted.entry.name.text() + "@" + noted.entry.version.text(), noted.row);
      if (remeasure_ && noted.problems.empty()) {
        Guarded(noted.where, [&] {
          MeasureAgain(LinkedEntry(zoo_.path(), noted.entry).directory(), noted.where);
        });
      }
    }
    noted_.clear();
  }

  void Latest(const ZooName& name) {
    const std::string where = Relative(EntryFolder(zoo_.path(), name) / kLatestFile);
    Guarded(where, [&] {
      const auto highest = zoo_.Highest(name);
      const auto latest = zoo_.Latest(name);
      if (!latest) {
        out_.notes.push_back({where, "does not exist yet; the next publish writes it"});
        return;
      }
      if (zoo_.Read(name, latest->version).identity != latest->identity)
        throw InputError(fmt::format("names {} with an identity that differs from its entry's",
                                     latest->version.text()));
      if (highest && latest->version != *highest) {
        out_.notes.push_back(
            {where,
             fmt::format("names {}, but the highest version is {}; the next publish updates it",
                         latest->version.text(), highest->text())});
      }
    });
  }

  // Compares index.json with the entries that were checked. An entry missing from the index is only
  // noted, because a publisher writes the entry first.
  void Index() {
    const fs::path file = zoo_.path() / kIndexFile;
    if (!fs::exists(fs::symlink_status(file))) return Lags("does not exist yet");
    Guarded(kIndexFile, [&] {
      const ZooIndex index =
          ParseIndex(ReadSmallFile(file, kIndexJsonLimits.max_bytes), file.string());
      for (const IndexRow& listed : index.rows) {
        const auto own = rows_.find(listed.text());
        if (own == rows_.end()) {
          if (!fs::exists(EntryPath(zoo_.path(), listed.name, listed.version)))
            out_.problems.push_back({kIndexFile, "lists " + listed.text() + ", which is not here"});
          continue;
        }
        if (own->second) {
          IndexRow expected = *own->second;
          expected.yanked = listed.yanked;
          if (listed != expected)
            out_.problems.push_back(
                {kIndexFile, "describes " + listed.text() + " differently from its entry"});
          if (listed.yanked != YankReason(zoo_, listed.name, listed.version))
            Lags("does not say correctly whether " + listed.text() + " is yanked and why");
        }
        rows_.erase(own);
      }
      for (const auto& [version, row] : rows_) Lags("does not list " + version);
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
    }
    CheckEntries();
    for (const ZooName& name : zoo_.Names()) Latest(name);
    Index();
    for (const std::string& stranger : zoo_.Strangers())
      out_.notes.push_back({stranger, "is not part of the zoo"});
  }

  void OtherBlobs() {
    const BlobListing listing = ListBlobs(zoo_.path());
    for (const FileDigest& blob : listing.blobs) {
      const auto named = blobs_.lower_bound({blob.sha256, 0});
      if (named != blobs_.end() && named->first.first == blob.sha256) continue;
      out_.unreferenced.push_back(blob);
      NoteBlob(blob);
    }
    CheckBlobs();
    for (const FileDigest& blob : out_.unreferenced) {
      const std::string& problem = blobs_.at({blob.sha256, blob.size});
      if (!problem.empty()) {
        out_.problems.push_back(
            {Relative(BlobPath(zoo_.path(), blob.sha256)), BlobProblem("", blob, problem)});
      }
    }
    for (const std::string& stranger : listing.strangers)
      out_.notes.push_back({"blobs/sha256/" + stranger, "is not a blob"});
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
      out_.problems.push_back({where, "the model gives other numbers than the report: " + line});
  }

  static std::string BlobProblem(const std::string& file, const FileDigest& digest,
                                 const std::string& problem) {
    return fmt::format("{}{}blob {}: {}", file, file.empty() ? "" : ": ", digest.sha256, problem);
  }

  // Records a blob to check, by digest and size. If two entries give it different sizes, one of
  // them is reported.
  void NoteBlob(const FileDigest& digest) {
    const auto same = blobs_.lower_bound({digest.sha256, 0});
    if (same == blobs_.end() || same->first.first != digest.sha256) {
      ++out_.blobs;
      out_.bytes += digest.size;
    }
    if (blobs_.try_emplace({digest.sha256, digest.size}).second) unchecked_.push_back(digest);
  }

  void CheckBlobs() {
    std::vector<std::string> problems(unchecked_.size());
    ParallelFor(std::ssize(unchecked_), [&](int64_t i) {
      const FileDigest& digest = unchecked_[static_cast<size_t>(i)];
      problems[static_cast<size_t>(i)] =
          ContentProblem(BlobPath(zoo_.path(), digest.sha256), digest);
    });
    for (size_t i = 0; i < unchecked_.size(); ++i)
      blobs_.at({unchecked_[i].sha256, unchecked_[i].size}) = problems[i];
    unchecked_.clear();
  }

  void Lags(const std::string& what) {
    out_.notes.push_back({kIndexFile, what + "; the next publish writes it"});
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

  struct Noted {
    std::string where;
    ZooEntry entry;
    std::vector<std::string> problems;
    std::optional<IndexRow> row;  // only for a sound entry
  };
  const Zoo& zoo_;
  const std::optional<Remeasure>& remeasure_;
  Verified out_;
  std::vector<Noted> noted_;
  std::map<std::string, std::optional<IndexRow>> rows_;            // by NAME@X.Y.Z
  std::map<std::pair<std::string, uint64_t>, std::string> blobs_;  // problems by digest and size
  std::vector<FileDigest> unchecked_;
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
      zoo.Read(reference->name, *reference->version);  // throws: a missing entry is not a finding
    verifier.Entry(reference->name, *reference->version);
    verifier.CheckEntries();
  } else {
    zoo.Resolve(*reference);
    for (const ZooVersion& version : zoo.Versions(reference->name))
      verifier.Entry(reference->name, version);
    verifier.CheckEntries();
    verifier.Latest(reference->name);
  }
  return verifier.Finish();
}

}  // namespace oscar
