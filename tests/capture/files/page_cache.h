// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures how much of a file the page cache holds.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace oscar {

inline size_t CachedPages(const std::filesystem::path& path) {
  const auto size = static_cast<size_t>(std::filesystem::file_size(path));
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* const mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  EXPECT_NE(mapped, MAP_FAILED);
  std::vector<unsigned char> pages((size + 4095) / 4096);
  EXPECT_EQ(mincore(mapped, size, pages.data()), 0);
  munmap(mapped, size);
  close(file);
  return static_cast<size_t>(std::ranges::count_if(pages, [](auto page) { return page & 1; }));
}

// Removes a file from the page cache. Repeats the request for half a second, because the kernel
// keeps pages that another processor is using. Files without a disk (tmpfs) stay.
inline void DropFromCache(const std::filesystem::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  for (int attempt = 0; attempt < 50; ++attempt) {
    fsync(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    if (CachedPages(path) == 0) break;
    usleep(10000);
  }
  close(file);
}

}  // namespace oscar
