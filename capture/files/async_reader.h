// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads files with many reads in flight, by the kernel's ring (io_uring) or by a pool of threads
// that call pread. Both put results into one queue. Trap: the memory of a read belongs to the
// reader until the result has been taken from the queue. The destructor waits until all reads are
// done, but not until their results are taken.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>

namespace oscar {

struct AsyncRead {
  int descriptor = -1;
  uint64_t offset = 0;  // bytes
  std::span<std::byte> into;
  size_t tag = 0;  // for the caller's use
};

struct AsyncReadResult {
  size_t tag = 0;
  ssize_t bytes = 0;  // bytes read (may be fewer than requested; 0 at the end), or -errno
};

class ReadResults {
 public:
  void Push(const AsyncReadResult& result);
  AsyncReadResult Pop();  // waits for a result

 private:
  std::mutex mutex_;
  std::condition_variable there_;
  std::deque<AsyncReadResult> results_;
};

class AsyncReader {
 public:
  virtual ~AsyncReader() = default;
  virtual void Submit(const AsyncRead& read) = 0;
};

// `results` must outlive the reader.
std::unique_ptr<AsyncReader> MakePoolReader(size_t threads, ReadResults& results);

// Keeps up to `depth` reads in flight. Returns null if the kernel or a sandbox refuses a ring, or
// if this program was built without liburing.
std::unique_ptr<AsyncReader> MakeRingReader(size_t depth, ReadResults& results);

}  // namespace oscar
