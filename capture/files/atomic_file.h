// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Files and directories that appear completely or not at all: a temporary sibling is written,
// fsynced and renamed, and its parent is fsynced. Every failure (disk full, quota, I/O error) is a
// ResourceError that names the path and the system's reason, and leaves the old file unchanged. A
// failed fsync is final; it is not retried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace oscar {

class AtomicFile {
 public:
  // Opens an exclusive temporary file "<name>.tmp-<pid>-<counter>" beside `path`.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();  // without Commit(): removes the temporary file
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Write(std::span<const std::byte> bytes);
  void Write(std::string_view text) { Write(std::as_bytes(std::span(text))); }
  uint64_t size() const { return size_; }  // bytes written so far
  void Commit();

 private:
  std::filesystem::path path_, temporary_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

void WriteFileAtomically(const std::filesystem::path& path, std::string_view content);

// A directory filled at `staging()` and published at `path` by one rename.
class AtomicDirectory {
 public:
  enum class Target {
    kNew,     // `path` must not exist, and is never overwritten
    kReplace  // `path` is a directory, which is removed after it is exchanged with the new one
  };
  // Throws InputError if `path` does not match `target`; creates an empty
  // "<path>.tmp-<pid>-<counter>".
  explicit AtomicDirectory(std::filesystem::path path, Target target = Target::kNew);
  ~AtomicDirectory();  // without Commit(): removes the staging directory and its content
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  const std::filesystem::path& staging() const { return staging_; }
  enum class Flush { kAll, kNothing };  // kNothing: for data that can be recreated
  // fsyncs every file and directory inside, renames, fsyncs the parent.
  void Commit(Flush flush = Flush::kAll);

 private:
  std::filesystem::path path_, staging_;
  Target target_;
  bool committed_ = false;
};

// Renames `from`, a directory whose files have been flushed, to `path` on the same file system.
// Throws InputError if `path` exists.
void PublishDirectory(const std::filesystem::path& from, const std::filesystem::path& path);

// Calls fsync on a file or directory by path.
void SyncPath(const std::filesystem::path& path);

}  // namespace oscar
