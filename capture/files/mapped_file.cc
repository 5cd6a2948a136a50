// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "capture/files/posix_file.h"
#include "linalg/base/check.h"

namespace oscar {

MappedFile MappedFile::Open(const std::filesystem::path& path) {
  uint64_t size = 0;
  const int descriptor = OpenRegular(path, &size);
  MappedFile file;
  file.path_ = path;
  if (size > 0) {  // mmap refuses size 0
    void* const data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    const int error = errno;
    close(descriptor);
    if (data == MAP_FAILED) ThrowResource("map", path, error);
    file.data_ = static_cast<const std::byte*>(data);
    file.size_ = size;
  } else {
    close(descriptor);
  }
  return file;
}

MappedFile MappedFile::Of(std::span<const std::byte> bytes, const std::filesystem::path& name) {
  MappedFile file;
  file.path_ = name;
  file.copy_ = std::make_unique<std::byte[]>(bytes.size());
  if (!bytes.empty()) std::memcpy(file.copy_.get(), bytes.data(), bytes.size());
  file.data_ = file.copy_.get();
  file.size_ = bytes.size();
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr && !copy_) munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      copy_(std::move(other.copy_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(copy_, other.copy_);
  return *this;
}

void MappedFile::Release(size_t offset, size_t size) const {
  OSCAR_CHECK_LE(offset, size_);
  OSCAR_CHECK_LE(size, size_ - offset);
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t begin = (offset + page - 1) / page * page;
  size_t end = (offset + size) / page * page;
  if (offset + size == size_) end = (size_ + page - 1) / page * page;  // past the end of file
  if (data_ == nullptr || copy_ || begin >= end) return;
  // This is only advice: a touched page is read from the file again, so a refusal changes nothing.
  (void)madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace oscar
