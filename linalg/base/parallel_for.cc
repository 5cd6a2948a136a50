// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/base/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace oscar {
namespace {

// Hands out indices in order; an index that has started always finishes. When index i fails, all
// lower ones still complete, so the lowest failing index is known.
class Pieces {
 public:
  Pieces(int64_t count, const std::function<void(int64_t)>& body) : count_(count), body_(body) {}

  void Run() {
    while (!failed_) {
      const int64_t index = next_++;
      if (index >= count_) return;
      try {
        body_(index);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        failed_ = true;
        if (error_ == nullptr || index < error_index_) {
          error_ = std::current_exception();
          error_index_ = index;
        }
      }
    }
  }
  void Rethrow() const {
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

  std::atomic<int64_t> helpers{0};  // number of helpers that run these pieces

 private:
  const int64_t count_;
  const std::function<void(int64_t)>& body_;
  std::atomic<int64_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr error_;
  int64_t error_index_ = 0;
};

// Threads that stay for the life of the process, because a BLAS keeps buffers for each thread. A
// call requests helpers, works itself, and withdraws requests that no helper has taken. So calls
// may be nested and may come from several threads. Waking a thread takes a tenth of a millisecond
// on a virtual machine. An idle thread therefore first polls for new work for about that long; it
// yields its core meanwhile.
class Helpers {
 public:
  // Runs `pieces` on this thread and on up to `wanted` helpers.
  void Run(Pieces& pieces, int64_t wanted) {
    {
      const std::lock_guard lock(mutex_);
      for (; threads_ < wanted; ++threads_) std::thread([this] { Serve(); }).detach();
      requests_.insert(requests_.end(), static_cast<size_t>(wanted), &pieces);
      num_requests_ = requests_.size();
    }
    for (int64_t i = 0; i < wanted; ++i) requested_.notify_one();
    pieces.Run();
    {
      const std::lock_guard lock(mutex_);
      std::erase(requests_, &pieces);
      num_requests_ = requests_.size();
    }
    const auto done = [&] { return pieces.helpers == 0; };
    LookFor(done);
    std::unique_lock lock(mutex_);
    finished_.wait(lock, done);
  }

 private:
  void Serve() {
    while (true) {
      LookFor([&] { return num_requests_ > 0; });
      std::unique_lock lock(mutex_);
      requested_.wait(lock, [&] { return !requests_.empty(); });
      Pieces* const pieces = requests_.front();
      requests_.pop_front();
      num_requests_ = requests_.size();
      ++pieces->helpers;
      lock.unlock();
      pieces->Run();
      lock.lock();
      --pieces->helpers;  // its caller may go on once the lock is released
      finished_.notify_all();
    }
  }

  // Polls until `happened()` is true, for at most 200 us. Takes no lock, because many threads would
  // compete for the lock.
  static void LookFor(const auto& happened) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + std::chrono::microseconds(200);
    while (!happened() && Clock::now() < end) std::this_thread::yield();
  }

  std::mutex mutex_;
  std::condition_variable requested_, finished_;
  std::deque<Pieces*> requests_;
  std::atomic<size_t> num_requests_{0};
  int64_t threads_ = 0;
};

}  // namespace

void ParallelFor(int64_t count, const std::function<void(int64_t)>& body, int num_threads) {
  if (num_threads <= 0) num_threads = static_cast<int>(std::thread::hardware_concurrency());
  Pieces pieces(count, body);
  if (const int64_t wanted = std::min<int64_t>(num_threads, count) - 1; wanted > 0) {
    static Helpers& helpers = *new Helpers;  // its threads outlive static objects
    helpers.Run(pieces, wanted);
  } else {
    pieces.Run();
  }
  pieces.Rethrow();
}

}  // namespace oscar
