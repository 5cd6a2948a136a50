// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Large ranges of files through a few blocks of memory, as fast as the disk or the page cache gives
// them. Which way a block takes (ReadMode::kAuto): one that the page cache holds is copied from it
// by a pool of threads; any other is read past it (O_DIRECT), so that a checkpoint larger than
// memory neither fills the cache nor is slowed down by it. Direct reads go through io_uring, or
// through the pool where that is refused; where O_DIRECT is refused too (tmpfs), or the cache
// cannot be asked (gVisor, network file systems), everything goes through the cache. Trap: pieces
// arrive in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "capture/files/async_reader.h"

namespace oscar {

enum class ReadMode { kAuto, kDirect, kCached };

// Bytes that O_DIRECT wants offsets, sizes and memory to be multiples of: the largest sector in
// use.
inline constexpr size_t kDirectAlignment = 4096;

struct FileRange {
  size_t file = 0;                // in the reader's list
  uint64_t offset = 0, size = 0;  // bytes
};

// Part of a range, in a block of the reader's memory.
struct FilePiece {
  size_t range = 0;
  uint64_t begin = 0;  // bytes from the start of the range
  std::span<const std::byte> bytes;
  size_t block = 0;
};

class PieceSink {
 public:
  virtual ~PieceSink() = default;
  virtual void Take(const FilePiece& piece) = 0;
  // Waits until nothing uses the piece taken from this block any more.
  virtual void WaitForBlock(size_t block) = 0;
};

class BlockReader {
 public:
  // Files are opened when first read. `memory`: blocks of `block_bytes`, a multiple of
  // kDirectAlignment as is its address; it must outlive the reader.
  BlockReader(std::vector<std::filesystem::path> files, std::span<std::byte> memory,
              size_t block_bytes, ReadMode mode);
  ~BlockReader();
  BlockReader(const BlockReader&) = delete;
  BlockReader& operator=(const BlockReader&) = delete;

  // Hands every byte of every range to `sink`, on this thread. InputError naming the file and the
  // byte where one cannot be read or ends early; the pieces of this call are then void.
  void Read(std::span<const FileRange> ranges, PieceSink& sink);

  // Bytes so far, by the way they took.
  uint64_t direct_bytes() const { return direct_bytes_; }
  uint64_t cached_bytes() const { return cached_bytes_; }
  bool has_ring() const { return ring_ != nullptr; }

 private:
  struct File {
    std::filesystem::path path;
    int cached = -1, direct = -1;  // descriptors
    bool opened = false, takes_direct = false, can_ask_cache = true;
  };
  struct Request;
  File& Opened(size_t index);
  bool InCache(File& file, uint64_t offset, uint64_t size) const;
  void Start(Request& request);
  bool Finish(Request& request, ssize_t result);  // false: started again for the rest

  std::vector<File> files_;
  std::span<std::byte> memory_;
  size_t block_bytes_;
  ReadMode mode_;
  std::vector<size_t> free_;  // blocks, the one free for longest first
  uint64_t direct_bytes_ = 0, cached_bytes_ = 0;
  ReadResults results_;
  std::unique_ptr<AsyncReader> pool_, ring_;  // they end before the queue does
};

}  // namespace oscar
