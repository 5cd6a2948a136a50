// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests mapping, and that Release() returns the pages to the system.
#include "capture/files/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "capture/files/atomic_file.h"
#include "linalg/base/error.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

// Returns, for each page, whether it is in this process's page table (bit 63 of
// /proc/self/pagemap).
std::vector<bool> PresentPages(std::span<const std::byte> bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<uint64_t> entries((bytes.size() + page - 1) / page);
  const int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const size_t want = entries.size() * sizeof(uint64_t);
  EXPECT_EQ(pread(map, entries.data(), want,
                  static_cast<off_t>(reinterpret_cast<uintptr_t>(bytes.data()) / page * 8)),
            static_cast<ssize_t>(want));
  close(map);
  std::vector<bool> present;
  for (const uint64_t entry : entries) present.push_back(entry >> 63 != 0);
  return present;
}

size_t Touch(std::span<const std::byte> bytes) {
  size_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 512) sum += std::to_integer<size_t>(bytes[i]);
  return sum;
}

TEST(MappedFile, HoldsTheBytes) {
  const auto dir = TestScratch("mapped");
  WriteFileAtomically(dir / "a", "hello");
  MappedFile file = MappedFile::Open(dir / "a");
  EXPECT_TRUE(std::ranges::equal(file.bytes(), std::as_bytes(std::span("hello", 5))));
  EXPECT_EQ(file.path(), dir / "a");
  MappedFile moved = std::move(file);
  EXPECT_EQ(moved.bytes().size(), 5u);
  moved = MappedFile();
  EXPECT_TRUE(moved.bytes().empty());
}

TEST(MappedFile, EmptyFileIsAnEmptySpan) {
  const auto dir = TestScratch("mapped");
  WriteFileAtomically(dir / "a", "");
  const MappedFile file = MappedFile::Open(dir / "a");
  EXPECT_TRUE(file.bytes().empty());
  file.Release(0, 0);
}

TEST(MappedFile, ReleaseDropsExactlyThePagesInside) {
  const auto dir = TestScratch("mapped");
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  WriteFileAtomically(dir / "a", std::string(7 * page + 100, 'x'));
  const MappedFile file = MappedFile::Open(dir / "a");
  struct Case {
    size_t offset, size;
    std::vector<bool> left;  // whether each page stays
  };
  for (const Case& test :
       {Case{1, page - 1, {1, 1, 1, 1, 1, 1, 1, 1}}, Case{0, page, {0, 1, 1, 1, 1, 1, 1, 1}},
        Case{1, 4 * page, {1, 0, 0, 0, 1, 1, 1, 1}},
        Case{page + 1, 6 * page + 99, {1, 1, 0, 0, 0, 0, 0, 0}},
        Case{0, 7 * page + 100, {0, 0, 0, 0, 0, 0, 0, 0}}}) {
    const size_t sum = Touch(file.bytes());
    ASSERT_EQ(PresentPages(file.bytes()), std::vector<bool>(8, true));
    file.Release(test.offset, test.size);
    EXPECT_EQ(PresentPages(file.bytes()), test.left) << test.offset << " + " << test.size;
    EXPECT_EQ(Touch(file.bytes()), sum);
  }
}

TEST(MappedFile, RefusesWhatIsNotARegularFile) {
  const auto dir = TestScratch("mapped");
  EXPECT_THROW(MappedFile::Open(dir / "none"), InputError);
  EXPECT_THROW(MappedFile::Open(dir), InputError);
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(MappedFile::Open(dir / "pipe"), InputError);
}

}  // namespace
}  // namespace oscar
