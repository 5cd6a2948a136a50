// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/base/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace oscar {
namespace {

// Indices are handed out in order, and a started index always finishes. When index i fails, all
// lower ones still complete, so the lowest failure is known.
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

 private:
  const int64_t count_;
  const std::function<void(int64_t)>& body_;
  std::atomic<int64_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr error_;
  int64_t error_index_ = 0;
};

}  // namespace

void ParallelFor(int64_t count, const std::function<void(int64_t)>& body, int num_threads) {
  if (num_threads <= 0) num_threads = static_cast<int>(std::thread::hardware_concurrency());
  Pieces pieces(count, body);
  {
    std::vector<std::jthread> others;
    const int64_t wanted = std::min<int64_t>(num_threads, count) - 1;
    for (int64_t i = 0; i < wanted; ++i) others.emplace_back([&] { pieces.Run(); });
    pieces.Run();
  }
  pieces.Rethrow();
}

}  // namespace oscar
