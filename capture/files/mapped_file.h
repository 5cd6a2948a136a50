// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A file mapped read-only. Trap: pages stay in this process's resident set once they are read. A
// reader of a file larger than memory must call Release() on consumed parts.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace oscar {

class MappedFile {
 public:
  // Throws InputError if `path` is missing, unreadable or not a regular file; an empty file maps to
  // an empty span.
  static MappedFile Open(const std::filesystem::path& path);
  // Copies bytes into an allocation of exactly their size, so that readers can take data that never
  // was in a file, and a sanitizer sees reads past its end. `name` is the path in errors.
  static MappedFile Of(std::span<const std::byte> bytes, const std::filesystem::path& name);

  MappedFile() = default;
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  // Drops the resident pages that are entirely inside [offset, offset + size), in bytes. They are
  // read again when touched.
  void Release(size_t offset, size_t size) const;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;                    // bytes
  std::unique_ptr<std::byte[]> copy_;  // data that is not in a mapped file
};

}  // namespace oscar
