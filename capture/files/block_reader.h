// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads large ranges of files through a few blocks of memory, as fast as the disk or the page cache
// allows. With ReadMode::kAuto, a pool of threads copies blocks that are in the page cache. Other
// blocks bypass the cache (O_DIRECT), so that a checkpoint larger than memory neither fills the
// cache nor is slowed down by it. Direct reads use io_uring, or the pool if io_uring is refused.
// Everything goes through the cache if O_DIRECT is refused too (tmpfs), or if the cache cannot be
// queried (gVisor, network file systems). Trap: pieces arrive in any order.
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

// O_DIRECT requires offsets, sizes and addresses to be multiples of this many bytes, the largest
// sector size in use.
inline constexpr size_t kDirectAlignment = 4096;

struct FileRange {
  size_t file = 0;                // index in the reader's list
  uint64_t offset = 0, size = 0;  // bytes
};

// A part of a range, in one of the reader's memory blocks.
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
  // Waits until the piece in this block is no longer used.
  virtual void WaitForBlock(size_t block) = 0;
};

class BlockReader {
 public:
  // Files are opened when first read. `memory` consists of blocks of `block_bytes` and must outlive
  // the reader. Its address and `block_bytes` are multiples of kDirectAlignment.
  BlockReader(std::vector<std::filesystem::path> files, std::span<std::byte> memory,
              size_t block_bytes, ReadMode mode);
  ~BlockReader();
  BlockReader(const BlockReader&) = delete;
  BlockReader& operator=(const BlockReader&) = delete;

  // Passes every byte of every range to `sink`, on this thread. Throws InputError naming the file
  // and the byte if a file cannot be read or ends early; the pieces of this call are then invalid.
  void Read(std::span<const FileRange> ranges, PieceSink& sink);

  // Bytes read so far, by the path that they took.
  uint64_t direct_bytes() const { return direct_bytes_; }
  uint64_t cached_bytes() const { return cached_bytes_; }
  bool has_ring() const { return ring_ != nullptr; }

 private:
  struct File {
    std::filesystem::path path;
    int cached = -1, direct = -1;  // file descriptors
    bool opened = false, takes_direct = false, can_ask_cache = true;
  };
  struct Request;
  File& Opened(size_t index);
  bool InCache(File& file, uint64_t offset, uint64_t size) const;
  void Start(Request& request);
  bool Finish(Request& request, ssize_t result);  // false: restarted to read the rest

  std::vector<File> files_;
  std::span<std::byte> memory_;
  size_t block_bytes_;
  ReadMode mode_;
  std::vector<size_t> free_;  // free blocks, in the order in which they became free
  uint64_t direct_bytes_ = 0, cached_bytes_ = 0;
  ReadResults results_;
  std::unique_ptr<AsyncReader> pool_, ring_;  // must be destroyed before the queue
};

}  // namespace oscar
