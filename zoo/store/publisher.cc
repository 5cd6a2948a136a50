// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Each step is flushed to disk before the next one: first the file, then its new name, then the
// folder.
#include "zoo/store/publisher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <span>

#include "capture/files/atomic_file.h"
#include "capture/files/posix_file.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Renames `from` to `to` unless `to` exists. Returns 0, EEXIST or another errno.
int TakeName(const fs::path& from, const fs::path& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return errno;
  // File systems without RENAME_NOREPLACE still support link, which does not replace files either.
  if (link(from.c_str(), to.c_str()) != 0) return errno;
  unlink(from.c_str());
  return 0;
}

// Returns a name of the zoo that differs from `name` only in case, or nothing.
std::optional<ZooName> Twin(const Zoo& zoo, const ZooName& name) {
  for (const ZooName& other : zoo.Names()) {
    if (other != name && other.folded() == name.folded()) return other;
  }
  return std::nullopt;
}

}  // namespace

Publisher::Publisher(const Zoo& zoo, const ZooName& name, const std::function<void()>& waiting)
    : zoo_(zoo), name_(name), staging_(StagingFolder(zoo.path(), name)) {
  MakeFolders(zoo.path(), staging_);
  blobs_stay_.emplace(ZooLockFile(zoo.path()), LockKind::kShared, waiting);
  name_lock_.emplace(staging_ / "lock", LockKind::kExclusive, waiting);
  // With the lock, nobody else has unfinished files here. Without locks they may belong to a
  // running publisher, so they stay.
  if (name_lock_->held()) RemoveUnfinished(staging_);
  if (const auto twin = Twin(zoo_, name_)) {
    throw InputError(
        fmt::format("{}: the zoo already has {}, which is the same name on systems that ignore "
                    "case; publish under that name",
                    name_.text(), twin->text()));
  }
}

fs::path Publisher::Stage(const char* name, const Json& json) const {
  const std::string text = CanonicalJson(json);
  const TemporaryFile temporary = CreateTemporarySibling(staging_ / name);
  int error = WriteFullyAt(temporary.descriptor, std::as_bytes(std::span(text)), 0);
  if (error == 0 && fsync(temporary.descriptor) != 0) error = errno;
  if (close(temporary.descriptor) != 0 && errno != EINTR && error == 0) error = errno;
  if (error != 0) {
    unlink(temporary.path.c_str());
    ThrowResource("write", temporary.path, error);
  }
  return temporary.path;
}

bool Publisher::PublishEntry(const ZooEntry& entry) {
  const fs::path folder = EntryFolder(zoo_.path(), name_);
  const fs::path target = EntryPath(zoo_.path(), name_, entry.version);
  MakeFolders(zoo_.path(), folder);
  SyncPath(BlobFolder(zoo_.path()));  // blobs become durable before the entry that names them
  const fs::path staged = Stage("entry", EntryToJson(entry));
  try {
    // The pointer is staged before the entry is renamed, so that a full disk fails before anything
    // is published.
    const std::vector<ZooVersion> versions = zoo_.Versions(name_);
    const bool highest = versions.empty() || versions.back() < entry.version;
    const fs::path pointer =
        highest ? Stage("latest", LatestToJson(name_, {entry.version, entry.identity})) : "";
    const int error = TakeName(staged, target);
    if (error != 0) {
      if (highest) unlink(pointer.c_str());
      unlink(staged.c_str());
      if (error == EEXIST) return false;
      ThrowResource("rename the finished entry to", target, error);
    }
    SyncPath(folder);
    if (highest) MovePointer(pointer);
  } catch (...) {
    unlink(staged.c_str());
    throw;
  }
  return true;
}

void Publisher::MovePointer(const fs::path& staged) const {
  const fs::path target = EntryFolder(zoo_.path(), name_) / kLatestFile;
  if (std::rename(staged.c_str(), target.c_str()) != 0) {
    const int error = errno;
    unlink(staged.c_str());
    ThrowResource("rename the finished pointer to", target, error);
  }
  SyncPath(target.parent_path());
}

LatestPointer Publisher::AdvanceLatest() {
  for (;;) {
    const ZooVersion highest = zoo_.Highest(name_).value();
    std::optional<LatestPointer> current;
    try {
      current = zoo_.Latest(name_);
    } catch (const InputError&) {  // a damaged pointer is replaced; the entries have its content
    }
    if (current && current->version == highest) return *current;
    const LatestPointer latest{highest, zoo_.Read(name_, highest).identity};
    MovePointer(Stage("latest", LatestToJson(name_, latest)));
  }
}

}  // namespace oscar
