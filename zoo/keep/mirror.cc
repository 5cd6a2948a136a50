// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/keep/mirror.h"

#include <fmt/format.h>

#include "capture/files/atomic_file.h"
#include "linalg/base/error.h"
#include "zoo/source/pull.h"
#include "zoo/store/blob_store.h"
#include "zoo/store/linked_entry.h"
#include "zoo/store/publisher.h"
#include "zoo/store/yank.h"
#include "zoo/store/zoo_lock.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

class Mirrorer {
 public:
  Mirrorer(const ZooSource& source, const Zoo& zoo, const FetchOptions& options,
           const std::function<void()>& waiting)
      : source_(source),
        zoo_(zoo),
        options_(options),
        waiting_(waiting),
        parts_(zoo.path() / "staging" / ".parts") {
    MakeFolders(zoo.path(), parts_);
    lock_.emplace(parts_ / "lock", LockKind::kExclusive, waiting);  // part files have one writer
  }

  void Version(const IndexRow& row) {
    ++out_.versions;
    try {
      if (!Has(row)) Add(row);
      Signatures(row);
      if (!row.yanked.empty() && YankReason(zoo_, row.name, row.version).empty()) {
        Yank(zoo_, row.name, row.version, row.yanked, waiting_);
        out_.yanked.push_back(row.text());
      }
    } catch (const InputError& error) {
      out_.problems.push_back(row.text() + ": " + error.what());
    }
  }

  void Snapshot() {
    const auto text = ReadSource(source_, kSnapshotFile, kMaxSnapshotBytes, options_.transfer);
    if (text) Replace(zoo_.path() / kSnapshotFile, *text);
  }

  Mirrored Finish() {
    UpdateIndex(zoo_);
    return std::move(out_);
  }

 private:
  bool Has(const IndexRow& row) const {
    if (!fs::exists(fs::symlink_status(EntryPath(zoo_.path(), row.name, row.version))))
      return false;
    const std::string ours = zoo_.Read(row.name, row.version).identity;
    if (ours == row.identity) return true;
    throw InputError(
        fmt::format("has identity {} here but {} at the source; versions never change, so one of "
                    "the two zoos was altered",
                    ours, row.identity));
  }

  void Add(const IndexRow& row) {
    const FetchedEntry fetched = FetchEntry(source_, {row.name, row.version}, options_.transfer);
    if (options_.judge) options_.judge(fetched);
    const ZooEntry& entry = fetched.entry;
    if (entry.identity != row.identity) {
      throw InputError(fmt::format("the entry has identity {}, but the index has {}",
                                   entry.identity, row.identity));
    }
    if (CanonicalJson(EntryToJson(entry)) != fetched.text)
      throw InputError("the entry is not in canonical form");
    Publisher publisher(zoo_, entry.name, waiting_);
    FetchBlobs(source_, entry, BlobFolder(zoo_.path()), parts_, options_, &out_.counts);
    CheckEntryIsOf(
        entry, CheckArtifact(FilesOfEntry(zoo_, entry), std::nullopt, DemandsOf(entry, "entry")),
        "entry");
    publisher.PublishEntry(entry);
    publisher.AdvanceLatest();
    out_.added.push_back(row.text());
  }

  // Signatures may be added at any time, so they are requested for every version.
  void Signatures(const IndexRow& row) {
    const std::vector<std::string> bundles =
        FetchSignatures(source_, row.name, row.version, options_.transfer);
    if (bundles.empty()) return;
    const fs::path folder = SignatureFolder(zoo_.path(), row.name, row.version),
                   file = folder / kSignatureIndexFile;
    MakeFolders(zoo_.path(), folder);
    SignatureIndex index;  // signatures of the source, and those added to the mirror
    if (fs::exists(fs::symlink_status(file)))
      index = ParseSignatureIndex(ReadSmallFile(file, kZooJsonLimits.max_bytes), file.string());
    for (const std::string& bundle : bundles) {
      const std::string sha256 = Sha256Hex(bundle);
      if (!index.emplace(sha256, bundle.size()).second) continue;
      ++out_.signatures;
      Replace(SignaturePath(zoo_.path(), row.name, row.version, sha256), bundle);
    }
    Replace(file, CanonicalJson(SignatureIndexToJson(index)));
  }

  static void Replace(const fs::path& file, const std::string& text) {
    if (fs::is_regular_file(fs::symlink_status(file)) && fs::file_size(file) == text.size() &&
        ReadSmallFile(file, text.size()) == text)
      return;
    WriteFileAtomically(file, text);
  }

  const ZooSource& source_;
  const Zoo& zoo_;
  const FetchOptions& options_;
  const std::function<void()>& waiting_;
  fs::path parts_;
  std::optional<FileLock> lock_;
  Mirrored out_;
};

}  // namespace

Mirrored Mirror(const ZooSource& source, const fs::path& path, const std::optional<ZooName>& name,
                const FetchOptions& options, const std::function<void()>& waiting) {
  const ZooIndex index = source.index();
  if (!fs::exists(fs::symlink_status(path))) InitZoo(path);
  const Zoo zoo = Zoo::Open(path);
  Mirrorer mirrorer(source, zoo, options, waiting);
  for (const IndexRow& row : index.rows)
    if (!name || row.name == *name) mirrorer.Version(row);
  if (!name) mirrorer.Snapshot();
  return mirrorer.Finish();
}

}  // namespace oscar
