// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Follows PostgreSQL's durable_rename: fsync(temporary), rename, fsync(directory).
#include "capture/files/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "capture/files/posix_file.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// With a trailing slash, the temporary name would be inside the directory instead of next to it.
std::filesystem::path WithoutTrailingSlash(const std::filesystem::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

void SyncTree(const std::filesystem::path& directory) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    OSCAR_CHECK(!entry.is_symlink() && (entry.is_regular_file() || entry.is_directory()));
    SyncPath(entry.path());
  }
  SyncPath(directory);
}

// Renames without replacing anything: fails with EEXIST. Returns 0 or errno.
int RenameNoReplace(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return errno;
  // Some (network) file systems do not support RENAME_NOREPLACE. There, a plain rename(2) of a
  // directory is used, which never replaces a file or a directory that is not empty.
  struct stat status {};
  if (lstat(to.c_str(), &status) == 0) return EEXIST;
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  TemporaryFile temporary = CreateTemporarySibling(path_);
  temporary_ = std::move(temporary.path);
  fd_ = temporary.descriptor;
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::Write(std::span<const std::byte> bytes) {
  OSCAR_CHECK(fd_ >= 0);
  const int error = WriteFullyAt(fd_, bytes, size_);
  if (error != 0) {
    close(std::exchange(fd_, -1));  // a file with a gap can no longer be committed
    ThrowResource(fmt::format("write {} bytes at offset {} of", bytes.size(), size_), path_, error);
  }
  size_ += bytes.size();
}

void AtomicFile::Commit() {
  OSCAR_CHECK(fd_ >= 0);
  PublishTemporary({temporary_, std::exchange(fd_, -1)}, path_);
  temporary_.clear();
}

void WriteFileAtomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.Write(content);
  file.Commit();
}

AtomicDirectory::AtomicDirectory(std::filesystem::path path, Target target)
    : path_(WithoutTrailingSlash(path)), target_(target) {
  struct stat status {};
  const bool exists = lstat(path_.c_str(), &status) == 0;
  if (target == Target::kReplace && !(exists && S_ISDIR(status.st_mode)))
    throw InputError(fmt::format("{}: expected an existing directory to replace", path_.string()));
  if (target == Target::kNew && exists) {
    throw InputError(
        fmt::format("{} exists already and is never overwritten; remove it or choose "
                    "another name",
                    path_.string()));
  }
  for (int counter = 0;; ++counter) {
    staging_ = fmt::format("{}.tmp-{}-{}", path_.string(), getpid(), counter);
    if (mkdir(staging_.c_str(), 0777) == 0) return;
    if (errno != EEXIST || counter > 100'000) ThrowResource("create directory", staging_, errno);
  }
}

AtomicDirectory::~AtomicDirectory() {
  std::error_code ignored;  // errors cannot be handled here
  if (!committed_) std::filesystem::remove_all(staging_, ignored);
}

void AtomicDirectory::Commit(Flush flush) {
  OSCAR_CHECK(!committed_);
  try {
    if (flush == Flush::kAll) SyncTree(staging_);
  } catch (const std::filesystem::filesystem_error& error) {
    ThrowResource("flush to disk", staging_, error.code().value());
  }
  if (target_ == Target::kReplace) {
    if (renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) != 0)
      ThrowResource("exchange the finished directory for", path_, errno);
    SyncPath(ParentOf(path_));
    return;  // the destructor removes the old directory
  }
  PublishDirectory(staging_, path_);
  committed_ = true;
}

void PublishDirectory(const std::filesystem::path& from, const std::filesystem::path& path) {
  const int error = RenameNoReplace(from, path);
  if (error == EEXIST || error == ENOTEMPTY || error == ENOTDIR) {
    throw InputError(
        fmt::format("{} was created by another process in the meantime and is never overwritten; "
                    "remove it or choose another name",
                    path.string()));
  }
  if (error != 0) ThrowResource("rename the finished directory to", path, error);
  SyncPath(ParentOf(path));
}

void SyncPath(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) ThrowResource("open for flushing", path, errno);
  const int error = fsync(descriptor) == 0 ? 0 : errno;
  struct stat status {};
  const bool is_directory = fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode);
  close(descriptor);
  // Some file systems cannot fsync a directory and return EINVAL; they order renames themselves.
  if (error != 0 && !(is_directory && error == EINVAL)) ThrowResource("flush to disk", path, error);
}

}  // namespace oscar
