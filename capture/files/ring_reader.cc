// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The reader that uses the kernel's ring. One thread submits and another takes results; liburing
// allows exactly that without a lock. A ring can be refused for many reasons
// (kernel.io_uring_disabled, seccomp, gVisor, locked memory), so failing to create one is not an
// error.
#include "capture/files/async_reader.h"

#ifdef OSCAR_WITH_LIBURING
#include <liburing.h>

#include <thread>

#include "linalg/base/check.h"

namespace oscar {
namespace {

class RingReader : public AsyncReader {
 public:
  explicit RingReader(ReadResults& results) : results_(results) {}

  bool Start(size_t depth) {
    if (io_uring_queue_init(static_cast<unsigned>(depth) + 1, &ring_, 0) != 0) return false;
    reaper_ = std::thread([this] { Reap(); });
    return true;
  }

  // A submission without a request ends the loop in `Reap` once all earlier reads are done.
  ~RingReader() override {
    if (!reaper_.joinable()) return;
    io_uring_sqe* const sqe = io_uring_get_sqe(&ring_);
    OSCAR_CHECK(sqe != nullptr);
    io_uring_prep_nop(sqe);
    io_uring_sqe_set_flags(sqe, IOSQE_IO_DRAIN);
    io_uring_sqe_set_data64(sqe, kStop);
    io_uring_submit(&ring_);
    reaper_.join();
    io_uring_queue_exit(&ring_);
  }

  void Submit(const AsyncRead& read) override {
    io_uring_sqe* const sqe = io_uring_get_sqe(&ring_);
    OSCAR_CHECK(sqe != nullptr);  // there are never more than `depth` requests
    io_uring_prep_read(sqe, read.descriptor, read.into.data(),
                       static_cast<unsigned>(read.into.size()), read.offset);
    io_uring_sqe_set_data64(sqe, read.tag);
    int submitted;
    do {
      submitted = io_uring_submit(&ring_);
    } while (submitted == -EINTR || submitted == -EAGAIN || submitted == -EBUSY);
    OSCAR_CHECK_EQ(submitted, 1);
  }

 private:
  static constexpr uint64_t kStop = ~uint64_t{0};

  void Reap() {
    while (true) {
      io_uring_cqe* cqe = nullptr;
      const int error = io_uring_wait_cqe(&ring_, &cqe);
      if (error == -EINTR || error == -EAGAIN) continue;
      OSCAR_CHECK_EQ(error, 0);
      const uint64_t tag = io_uring_cqe_get_data64(cqe);
      const ssize_t bytes = cqe->res;
      io_uring_cqe_seen(&ring_, cqe);
      if (tag == kStop) return;
      results_.Push({static_cast<size_t>(tag), bytes});
    }
  }

  ReadResults& results_;
  io_uring ring_{};
  std::thread reaper_;
};

}  // namespace

std::unique_ptr<AsyncReader> MakeRingReader(size_t depth, ReadResults& results) {
  auto reader = std::make_unique<RingReader>(results);
  if (!reader->Start(depth)) return nullptr;
  return reader;
}

}  // namespace oscar

#else

namespace oscar {

std::unique_ptr<AsyncReader> MakeRingReader(size_t, ReadResults&) { return nullptr; }

}  // namespace oscar

#endif
