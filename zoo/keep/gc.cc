// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/keep/gc.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "capture/files/posix_file.h"
#include "linalg/base/error.h"
#include "zoo/store/blob_store.h"
#include "zoo/store/zoo_lock.h"

namespace fs = std::filesystem;

namespace oscar {

Collected CollectGarbage(const Zoo& zoo, bool dry_run, const std::function<void()>& waiting) {
  const fs::path staging = zoo.path() / "staging";
  MakeFolders(zoo.path(), staging);
  const FileLock lock(ZooLockFile(zoo.path()), LockKind::kExclusive, waiting);
  if (!lock.held()) {
    throw ResourceError(
        fmt::format("{}: this file system does not support locks, so gc could delete the blobs of "
                    "a running publish; run gc on the machine that has the zoo's disk",
                    zoo.path().string()));
  }
  std::set<std::string> named;
  for (const ZooName& name : zoo.Names()) {
    for (const ZooVersion& version : zoo.Versions(name)) {
      for (const auto& [file, digest] : zoo.Read(name, version).files) named.insert(digest.sha256);
    }
  }
  Collected out;
  const auto remove = [&](const fs::path& path) {
    if (!dry_run && unlink(path.c_str()) != 0 && errno != ENOENT)
      ThrowResource("remove", path, errno);
  };
  for (const FileDigest& blob : ListBlobs(zoo.path()).blobs) {
    if (named.count(blob.sha256) != 0) continue;
    remove(BlobPath(zoo.path(), blob.sha256));
    out.bytes += blob.size;
    out.blobs.push_back(blob);
  }
  for (const auto& entry : fs::recursive_directory_iterator(staging)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with("lock") || entry.symlink_status().type() != fs::file_type::regular) continue;
    out.bytes += entry.file_size();
    ++out.unfinished;
    remove(entry.path());
  }
  return out;
}

}  // namespace oscar
