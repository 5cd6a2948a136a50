// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/posix_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "capture/files/atomic_file.h"  // SyncPath
#include "linalg/base/error.h"

namespace oscar {
namespace {

std::string_view Advice(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "; free space there or choose another directory";
    case EFBIG:
      return "; the file system or the process limit (ulimit -f) does not allow files of this size";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; choose a directory you may write to";
    case ENOENT:
      return "; create the directory first";
    case EMFILE:
      return "; raise the limit of open files (ulimit -n)";
    case EIO:
      return "; the storage reported an error: check the device";
    default:
      return "";
  }
}

}  // namespace

void ThrowResource(std::string_view action, const std::filesystem::path& path, int error_number) {
  throw ResourceError(fmt::format("cannot {} {}: {}{}", action, path.string(),
                                  std::generic_category().message(error_number),
                                  Advice(error_number)));
}

int OpenRegular(const std::filesystem::path& path, uint64_t* size) {
  // O_NONBLOCK: opening a pipe must not wait for a writer. It has no effect on regular files.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) ThrowResource("open", path, errno);
    throw InputError(
        fmt::format("cannot open {}: {}", path.string(), std::generic_category().message(errno)));
  }
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    throw InputError(fmt::format("{} is not a regular file", path.string()));
  }
  *size = static_cast<uint64_t>(status.st_size);
  return descriptor;
}

TemporaryFile CreateTemporarySibling(const std::filesystem::path& target) {
  for (int counter = 0;; ++counter) {
    TemporaryFile temporary;
    temporary.path = fmt::format("{}.tmp-{}-{}", target.string(), getpid(), counter);
    temporary.descriptor =
        open(temporary.path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (temporary.descriptor >= 0) return temporary;
    if (errno == EINTR) continue;
    if (errno != EEXIST || counter > 100'000) ThrowResource("create", temporary.path, errno);
  }
}

int WriteFullyAt(int descriptor, std::span<const std::byte> bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (written == 0) return EIO;  // avoids an endless loop without progress
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return 0;
}

void ReadFullyAt(int descriptor, std::span<std::byte> into, uint64_t offset,
                 const std::filesystem::path& path) {
  while (!into.empty()) {
    const ssize_t count = pread(descriptor, into.data(), into.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      throw InputError(
          fmt::format("cannot read {} at byte {}: {}", path.string(), offset,
                      count == 0 ? "the file ends there" : std::generic_category().message(errno)));
    }
    into = into.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
}

void PublishTemporary(const TemporaryFile& temporary, const std::filesystem::path& target) {
  const int sync_error = fsync(temporary.descriptor) == 0 ? 0 : errno;
  // Linux closes the descriptor even if close() reports EINTR, so close() is not called again.
  const int close_error = close(temporary.descriptor) == 0 || errno == EINTR ? 0 : errno;
  if (sync_error != 0) ThrowResource("flush to disk", target, sync_error);
  if (close_error != 0) ThrowResource("close", target, close_error);
  if (std::rename(temporary.path.c_str(), target.c_str()) != 0) {
    ThrowResource("rename the finished file to", target, errno);
  }
  SyncPath(ParentOf(target));
}

std::filesystem::path ParentOf(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  return parent.empty() ? std::filesystem::path(".") : parent;
}

}  // namespace oscar
