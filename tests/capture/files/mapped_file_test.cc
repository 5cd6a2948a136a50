// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Mapping, and that Release() really gives the pages back.
#include "capture/files/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "capture/files/atomic_file.h"
#include "linalg/error.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

// Resident bytes of this process that belong to files.
size_t ResidentFileBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    size_t kilobytes = 0;
    if (word == "RssFile:" && status >> kilobytes) return kilobytes << 10;
  }
  return 0;
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

TEST(MappedFile, ReleaseDropsResidentPagesAndKeepsTheBytes) {
  const auto dir = TestScratch("mapped");
  constexpr size_t kSize = (size_t{32} << 20) + 100;
  WriteFileAtomically(dir / "a", std::string(kSize, 'x'));
  const MappedFile file = MappedFile::Open(dir / "a");
  const size_t sum = Touch(file.bytes());
  const size_t before = ResidentFileBytes();
  file.Release(0, kSize);
  const size_t after = ResidentFileBytes();
  EXPECT_GE(before, after + (size_t{30} << 20));
  EXPECT_EQ(Touch(file.bytes()), sum);
}

TEST(MappedFile, ReleaseKeepsPagesThatAreOnlyPartlyInside) {
  const auto dir = TestScratch("mapped");
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  WriteFileAtomically(dir / "a", std::string(4 * page, 'x'));
  const MappedFile file = MappedFile::Open(dir / "a");
  const auto resident = [&] {
    std::vector<unsigned char> pages(4);
    auto* const data = const_cast<std::byte*>(file.bytes().data());
    EXPECT_EQ(mincore(data, 4 * page, pages.data()), 0);
    return ResidentFileBytes();
  };
  Touch(file.bytes());
  const size_t before = resident();
  file.Release(1, page - 1);  // wholly inside one page: nothing to drop
  EXPECT_EQ(resident(), before);
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
