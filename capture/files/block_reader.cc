// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/files/block_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

#include "capture/files/posix_file.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr size_t kPoolThreads = 8;          // enough to copy from the page cache at full speed
constexpr uint64_t kProbeStride = 1 << 20;  // bytes between the probed pages

constexpr uint64_t AlignDown(uint64_t x) { return x / kDirectAlignment * kDirectAlignment; }
constexpr uint64_t AlignUp(uint64_t x) { return AlignDown(x + kDirectAlignment - 1); }

}  // namespace

// One block of a range: [begin, end) of the file, read from `begin` rounded down.
struct BlockReader::Request {
  size_t range = 0, file = 0, block = 0;
  uint64_t range_offset = 0;
  uint64_t begin = 0, end = 0;  // bytes of the file
  uint64_t done = 0;            // bytes read, from `begin` rounded down
  bool direct = false;
};

BlockReader::BlockReader(std::vector<std::filesystem::path> files, std::span<std::byte> memory,
                         size_t block_bytes, ReadMode mode)
    : memory_(memory), block_bytes_(block_bytes), mode_(mode) {
  OSCAR_CHECK(block_bytes > 0 && block_bytes % kDirectAlignment == 0);
  OSCAR_CHECK_EQ(reinterpret_cast<uintptr_t>(memory.data()) % kDirectAlignment, 0u);
  OSCAR_CHECK(!memory.empty() && memory.size() % block_bytes == 0);
  for (std::filesystem::path& path : files) files_.push_back({.path = std::move(path)});
  for (size_t block = 0; block < memory.size() / block_bytes; ++block) free_.push_back(block);
  pool_ = MakePoolReader(std::min(kPoolThreads, free_.size()), results_);
  if (mode != ReadMode::kCached) ring_ = MakeRingReader(free_.size(), results_);
}

BlockReader::~BlockReader() {
  ring_.reset();
  pool_.reset();
  for (const File& file : files_) {
    if (file.cached >= 0) close(file.cached);
    if (file.direct >= 0) close(file.direct);
  }
}

BlockReader::File& BlockReader::Opened(size_t index) {
  File& file = files_.at(index);
  if (file.opened) return file;
  uint64_t size = 0;
  file.cached = OpenRegular(file.path, &size);
  // Disables the kernel's read-ahead, so that only the requested blocks are read. Without this, the
  // probe of a single byte would read ahead too.
  (void)posix_fadvise(file.cached, 0, 0, POSIX_FADV_RANDOM);
  if (mode_ != ReadMode::kCached)
    file.direct = open(file.path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOCTTY);
  file.takes_direct = file.direct >= 0;
  file.opened = true;
  return file;
}

// Probes single bytes without waiting for the disk.
bool BlockReader::InCache(File& file, uint64_t offset, uint64_t size) const {
  for (uint64_t at = offset; file.can_ask_cache && at < offset + size; at += kProbeStride) {
    std::byte byte;
    const iovec one{&byte, 1};
    if (preadv2(file.cached, &one, 1, static_cast<off_t>(at), RWF_NOWAIT) >= 0) continue;
    if (errno == EAGAIN) return false;
    file.can_ask_cache = false;
  }
  return true;
}

void BlockReader::Start(Request& request) {
  File& file = Opened(request.file);
  const uint64_t begin = AlignDown(request.begin);
  if (request.done == 0) {
    request.direct =
        file.takes_direct &&
        (mode_ == ReadMode::kDirect || !InCache(file, request.begin, request.end - request.begin));
  }
  const uint64_t end = request.direct ? AlignUp(request.end) : request.end;
  const AsyncRead read{
      request.direct ? file.direct : file.cached, begin + request.done,
      memory_.subspan(request.block * block_bytes_ + request.done, end - begin - request.done),
      request.block};
  (request.direct && ring_ ? ring_ : pool_)->Submit(read);
}

bool BlockReader::Finish(Request& request, ssize_t result) {
  File& file = files_[request.file];
  const uint64_t at = AlignDown(request.begin) + request.done;
  if (result == -EAGAIN || result == -EINTR) {
    Start(request);
    return false;
  }
  if ((result == -EINVAL || result == -EFAULT) && request.direct) {
    file.takes_direct = false;  // the file system accepted the flag but not this read
    request.done = 0;
    Start(request);
    return false;
  }
  if (result < 0) {
    throw InputError(fmt::format("cannot read {} at byte {}: {}", file.path.string(), at,
                                 std::generic_category().message(static_cast<int>(-result))));
  }
  request.done += static_cast<uint64_t>(result);
  const uint64_t needed = request.end - AlignDown(request.begin);
  if (request.done >= needed) {
    (request.direct ? direct_bytes_ : cached_bytes_) += request.end - request.begin;
    return true;
  }
  struct stat status {};
  if (result == 0 || fstat(file.cached, &status) != 0 ||
      static_cast<uint64_t>(status.st_size) < request.end) {
    throw InputError(
        fmt::format("{} ends at byte {}, in the middle of a tensor: it was cut short after it was "
                    "opened",
                    file.path.string(), at + static_cast<uint64_t>(result)));
  }
  if (request.done % kDirectAlignment != 0) request.direct = false;
  Start(request);
  return false;
}

void BlockReader::Read(std::span<const FileRange> ranges, PieceSink& sink) {
  std::vector<Request> by_block(memory_.size() / block_bytes_);
  size_t under_way = 0, range = 0;
  uint64_t position = 0;  // bytes of ranges[range] requested so far
  std::exception_ptr failure;
  while (true) {
    while (range < ranges.size() && position >= ranges[range].size) {
      ++range;
      position = 0;
    }
    const bool more = range < ranges.size() && !failure;
    if (!more && under_way == 0) break;
    if (more && !free_.empty()) {
      const FileRange& wanted = ranges[range];
      Request& request = by_block[free_.front()];
      request = {.range = range, .file = wanted.file, .block = free_.front()};
      request.range_offset = wanted.offset;
      request.begin = wanted.offset + position;
      request.end = std::min(wanted.offset + wanted.size, AlignDown(request.begin) + block_bytes_);
      position += request.end - request.begin;
      try {
        sink.WaitForBlock(request.block);
        Start(request);
        free_.erase(free_.begin());
        ++under_way;
      } catch (...) {
        failure = std::current_exception();
      }
      continue;
    }
    const AsyncReadResult result = results_.Pop();
    Request& request = by_block[result.tag];
    bool finished = true;
    try {
      finished = Finish(request, result.bytes);
      if (finished && !failure) {
        const auto block = memory_.subspan(request.block * block_bytes_, block_bytes_);
        sink.Take(
            {request.range, request.begin - request.range_offset,
             block.subspan(request.begin - AlignDown(request.begin), request.end - request.begin),
             request.block});
      }
    } catch (...) {  // goes on, because other reads still write to their blocks
      if (!failure) failure = std::current_exception();
    }
    if (!finished) continue;
    --under_way;
    free_.push_back(request.block);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace oscar
