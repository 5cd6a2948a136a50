// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/store/zoo_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "capture/files/atomic_file.h"
#include "capture/files/posix_file.h"

namespace fs = std::filesystem;

namespace oscar {

FileLock::FileLock(const fs::path& file, LockKind kind, const std::function<void()>& waiting) {
  // Opens the file each time, because a lock belongs to one open file description.
  descriptor_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) ThrowResource("open the lock", file, errno);
  const int operation = (kind == LockKind::kShared ? LOCK_SH : LOCK_EX) | LOCK_NB;
  try {
    while (flock(descriptor_, operation) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) {  // ENOLCK, EOPNOTSUPP: the file system has no locks
        held_ = false;
        return;
      }
      if (waiting) waiting();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

FileLock::~FileLock() { close(descriptor_); }

fs::path ZooLockFile(const fs::path& zoo) { return zoo / "staging" / ".lock"; }
fs::path IndexLockFile(const fs::path& zoo) { return zoo / "staging" / ".index.lock"; }

void MakeFolders(const fs::path& base, const fs::path& path) {
  fs::path folder = base;
  for (const fs::path& part : path.lexically_relative(base)) {
    const fs::path parent = folder;
    folder /= part;
    if (mkdir(folder.c_str(), 0777) == 0) {
      SyncPath(parent);
    } else if (errno != EEXIST) {
      ThrowResource("create directory", folder, errno);
    }
  }
}

void RemoveUnfinished(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().find(".tmp-") != std::string::npos)
      unlink(entry.path().c_str());
  }
}

}  // namespace oscar
