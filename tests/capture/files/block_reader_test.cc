// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that ranges at every alignment are read completely in every read mode, and that the error
// for a file that shrinks or cannot be read names the byte.
#include "capture/files/block_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <new>
#include <string>

#include "capture/files/atomic_file.h"
#include "capture/files/posix_file.h"
#include "linalg/base/error.h"
#include "tests/capture/files/page_cache.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr size_t kBlock = 8192;

// Returns byte i of file f.
char ByteAt(size_t file, uint64_t i) {
  return static_cast<char>((i * 31 + (i >> 8) * 7 + file * 101) & 0xFF);
}

std::string Content(size_t file, size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = ByteAt(file, i);
  return text;
}

struct AlignedMemory {
  explicit AlignedMemory(size_t blocks)
      : data(static_cast<std::byte*>(::operator new(blocks* kBlock, std::align_val_t(4096)))),
        bytes(data, blocks * kBlock) {}
  ~AlignedMemory() { ::operator delete(data, std::align_val_t(4096)); }
  std::byte* data;
  std::span<std::byte> bytes;
};

// Joins the pieces of each range and counts the bytes, so that duplicates are noticed.
struct Collector : PieceSink {
  void Take(const FilePiece& piece) override {
    std::string& text = ranges[piece.range];
    if (text.size() < piece.begin + piece.bytes.size())
      text.resize(piece.begin + piece.bytes.size(), '\0');
    for (size_t i = 0; i < piece.bytes.size(); ++i)
      text[piece.begin + i] = static_cast<char>(piece.bytes[i]);
    taken += piece.bytes.size();
  }
  void WaitForBlock(size_t) override { ++waits; }
  std::map<size_t, std::string> ranges;
  uint64_t taken = 0;
  int waits = 0;
};

TEST(BlockReader, RangesArriveWholeByEveryWay) {
  const fs::path dir = TestScratch("block-reader");
  const std::vector<size_t> sizes = {100'000, 5 * kBlock, 10};
  std::vector<fs::path> files;
  for (size_t f = 0; f < sizes.size(); ++f) {
    files.push_back(dir / std::to_string(f));
    WriteFileAtomically(files[f], Content(f, sizes[f]));
  }
  const std::vector<FileRange> ranges = {
      {0, 1, 99'999},  {1, 0, 5 * kBlock}, {2, 3, 7}, {0, 4095, 2},   {0, 4096, 4096},
      {1, 8191, 8194}, {0, 99'999, 1},     {2, 0, 0}, {0, 0, kBlock}, {1, 40'959, 1}};
  for (const ReadMode mode : {ReadMode::kAuto, ReadMode::kDirect, ReadMode::kCached}) {
    for (const size_t blocks : {1, 3, 64}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(mode)) + ", blocks " + std::to_string(blocks));
      for (const fs::path& file : files) DropFromCache(file);
      const AlignedMemory memory(blocks);
      BlockReader reader(files, memory.bytes, kBlock, mode);
      for (int round = 0; round < 2; ++round) {
        Collector collector;
        reader.Read(ranges, collector);
        uint64_t total = 0;
        for (size_t r = 0; r < ranges.size(); ++r) {
          total += ranges[r].size;
          EXPECT_TRUE(collector.ranges[r] == Content(ranges[r].file, sizes[ranges[r].file])
                                                 .substr(ranges[r].offset, ranges[r].size))
              << "range " << r;
        }
        EXPECT_EQ(collector.taken, total);
      }
      if (mode == ReadMode::kCached) {
        EXPECT_EQ(reader.direct_bytes(), 0u);
      }
    }
  }
}

// Needs a file system that supports O_DIRECT and reports its page cache. Disks do, tmpfs does not.
TEST(BlockReader, AutoCopiesWhatTheCacheHoldsAndReadsPastItElsewhere) {
  const fs::path dir = TestScratch("block-reader");
  WriteFileAtomically(dir / "a", Content(0, 16 * kBlock));
  const int direct = open((dir / "a").c_str(), O_RDONLY | O_DIRECT);
  if (direct < 0) GTEST_SKIP() << "no O_DIRECT here";
  close(direct);
  const FileRange all{0, 0, 16 * kBlock};
  const AlignedMemory memory(4);
  {
    BlockReader reader({dir / "a"}, memory.bytes, kBlock, ReadMode::kAuto);
    Collector collector;
    reader.Read(std::span(&all, 1), collector);
    EXPECT_EQ(reader.cached_bytes(), all.size) << "just written";
  }
  // The kernel reads ahead when its page cache is queried, so a fast disk may have cached the whole
  // file by then.
  uint64_t direct_bytes = 0;
  for (int attempt = 0; attempt < 20 && direct_bytes == 0; ++attempt) {
    DropFromCache(dir / "a");
    if (CachedPages(dir / "a") > 0) GTEST_SKIP() << "the cache cannot be emptied";
    BlockReader reader({dir / "a"}, memory.bytes, kBlock, ReadMode::kAuto);
    Collector collector;
    reader.Read(std::span(&all, 1), collector);
    direct_bytes = reader.direct_bytes();
    EXPECT_EQ(direct_bytes + reader.cached_bytes(), all.size);
    EXPECT_TRUE(collector.ranges[0] == Content(0, 16 * kBlock));
  }
  EXPECT_GT(direct_bytes, 0U);
}

TEST(BlockReader, ABlockIsWaitedForBeforeItIsReadIntoAgain) {
  const fs::path dir = TestScratch("block-reader");
  WriteFileAtomically(dir / "a", Content(0, 10 * kBlock));
  const AlignedMemory memory(2);
  BlockReader reader({dir / "a"}, memory.bytes, kBlock, ReadMode::kAuto);
  Collector collector;
  const FileRange all{0, 0, 10 * kBlock};
  reader.Read(std::span(&all, 1), collector);
  EXPECT_EQ(collector.waits, 10);
}

TEST(BlockReader, AFileCutShortIsAnErrorThatSaysWhere) {
  const fs::path dir = TestScratch("block-reader");
  for (const ReadMode mode : {ReadMode::kAuto, ReadMode::kDirect, ReadMode::kCached}) {
    for (const size_t left : {size_t{20'000}, 2 * kBlock, size_t{0}}) {
      WriteFileAtomically(dir / "a", Content(0, 6 * kBlock));
      const AlignedMemory memory(3);
      BlockReader reader({dir / "a"}, memory.bytes, kBlock, mode);
      fs::resize_file(dir / "a", left);
      Collector collector;
      const FileRange all{0, 100, 6 * kBlock - 200};
      const std::string text =
          ErrorOf<InputError>([&] { reader.Read(std::span(&all, 1), collector); });
      EXPECT_TRUE(Says(text, (dir / "a").string()));
      EXPECT_TRUE(Says(text, "cut short"));
      fs::resize_file(dir / "a", 6 * kBlock);  // the reader stays usable
      reader.Read(std::span(&all, 1), collector);
    }
  }
}

TEST(BlockReader, AMissingFileIsAnError) {
  const fs::path dir = TestScratch("block-reader");
  const AlignedMemory memory(1);
  BlockReader reader({dir / "none"}, memory.bytes, kBlock, ReadMode::kAuto);
  Collector collector;
  const FileRange all{0, 0, 1};
  EXPECT_THROW(reader.Read(std::span(&all, 1), collector), InputError);
}

TEST(BlockReader, WhatTheSinkThrowsComesOutAfterAllReadsHaveEnded) {
  struct Thrower : Collector {
    void Take(const FilePiece& piece) override {
      if (++calls == 3) throw ResourceError("enough");
      Collector::Take(piece);
    }
    int calls = 0;
  };
  const fs::path dir = TestScratch("block-reader");
  WriteFileAtomically(dir / "a", Content(0, 30 * kBlock));
  const AlignedMemory memory(8);
  BlockReader reader({dir / "a"}, memory.bytes, kBlock, ReadMode::kAuto);
  const FileRange all{0, 0, 30 * kBlock};
  Thrower thrower;
  EXPECT_THROW(reader.Read(std::span(&all, 1), thrower), ResourceError);
  Collector collector;
  reader.Read(std::span(&all, 1), collector);
  EXPECT_TRUE(collector.ranges[0] == Content(0, 30 * kBlock));
}

// Both readers must report the same bytes, end of file and bad descriptor.
TEST(AsyncReader, PoolAndRingAgree) {
  const fs::path dir = TestScratch("async-reader");
  WriteFileAtomically(dir / "a", Content(0, 1000));
  const int file = open((dir / "a").c_str(), O_RDONLY);
  for (const bool ring : {false, true}) {
    ReadResults results;
    const std::unique_ptr<AsyncReader> reader =
        ring ? MakeRingReader(4, results) : MakePoolReader(2, results);
    if (reader == nullptr) continue;  // io_uring is unavailable here
    std::string text(600, '\0');
    const auto into = std::as_writable_bytes(std::span(text));
    reader->Submit({file, 500, into, 1});
    AsyncReadResult result = results.Pop();
    EXPECT_EQ(result.tag, 1u);
    EXPECT_EQ(result.bytes, 500);
    EXPECT_TRUE(text.substr(0, 500) == Content(0, 1000).substr(500));
    reader->Submit({file, 1000, into, 2});
    EXPECT_EQ(results.Pop().bytes, 0);
    reader->Submit({-1, 0, into, 3});
    EXPECT_EQ(results.Pop().bytes, -EBADF);
  }
  close(file);
}

TEST(PosixFile, ReadsAllOfItOrSaysWhereItCannot) {
  const fs::path dir = TestScratch("read-fully");
  WriteFileAtomically(dir / "a", Content(0, 1000));
  uint64_t size = 0;
  const int file = OpenRegular(dir / "a", &size);
  std::string text(100, '\0');
  ReadFullyAt(file, std::as_writable_bytes(std::span(text)), 900, dir / "a");
  EXPECT_TRUE(text == Content(0, 1000).substr(900));
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] {
                     ReadFullyAt(file, std::as_writable_bytes(std::span(text)), 950, dir / "a");
                   }),
                   "at byte 1000"));
  close(file);
}

}  // namespace
}  // namespace oscar
