// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The result queue that a reader fills, and the reader that uses a pool of threads.
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "capture/files/async_reader.h"

namespace oscar {
namespace {

class PoolReader : public AsyncReader {
 public:
  PoolReader(size_t threads, ReadResults& results) : results_(results) {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }

  ~PoolReader() override {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    wanted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void Submit(const AsyncRead& read) override {
    {
      const std::scoped_lock lock(mutex_);
      reads_.push_back(read);
    }
    wanted_.notify_one();
  }

 private:
  void Work() {
    while (true) {
      AsyncRead read;
      {
        std::unique_lock lock(mutex_);
        wanted_.wait(lock, [&] { return stopping_ || !reads_.empty(); });
        if (reads_.empty()) return;
        read = reads_.front();
        reads_.pop_front();
      }
      ssize_t bytes;
      do {
        bytes = pread(read.descriptor, read.into.data(), read.into.size(),
                      static_cast<off_t>(read.offset));
      } while (bytes < 0 && errno == EINTR);
      results_.Push({read.tag, bytes < 0 ? -errno : bytes});
    }
  }

  ReadResults& results_;
  std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<AsyncRead> reads_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

void ReadResults::Push(const AsyncReadResult& result) {
  {
    const std::scoped_lock lock(mutex_);
    results_.push_back(result);
  }
  there_.notify_one();
}

AsyncReadResult ReadResults::Pop() {
  std::unique_lock lock(mutex_);
  there_.wait(lock, [&] { return !results_.empty(); });
  const AsyncReadResult result = results_.front();
  results_.pop_front();
  return result;
}

std::unique_ptr<AsyncReader> MakePoolReader(size_t threads, ReadResults& results) {
  return std::make_unique<PoolReader>(threads, results);
}

}  // namespace oscar
