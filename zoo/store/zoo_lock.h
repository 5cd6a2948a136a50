// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Locks (flock) for writers of a zoo, in its staging folder. Some file systems do not support
// locks. Publishing is safe without them (publisher.h). Garbage collection (gc) is not, so it
// checks held().
//
//     staging/.lock                shared: a publisher; exclusive: gc, which removes blobs
//     staging/.index.lock          a writer of index.json
//     staging/<org>/<model>/lock   a publisher of that name
#pragma once

#include <filesystem>
#include <functional>

namespace oscar {

enum class LockKind { kShared, kExclusive };

class FileLock {
 public:
  // Creates the lock's file and waits for the lock. Calls `waiting` when the wait begins and then
  // about ten times a second; `waiting` may throw to give up. Throws ResourceError.
  FileLock(const std::filesystem::path& file, LockKind kind, const std::function<void()>& waiting);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool held() const { return held_; }  // false if the file system has no locks

 private:
  int descriptor_ = -1;
  bool held_ = true;
};

std::filesystem::path ZooLockFile(const std::filesystem::path& zoo);
std::filesystem::path IndexLockFile(const std::filesystem::path& zoo);

// Creates `path` and its parent folders up to `base`, flushing each new name to disk.
void MakeFolders(const std::filesystem::path& base, const std::filesystem::path& path);

// Unlinks the unfinished files (".tmp-") in a folder. The caller holds its lock.
void RemoveUnfinished(const std::filesystem::path& folder);

}  // namespace oscar
