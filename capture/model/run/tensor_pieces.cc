// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/tensor_pieces.h"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include "linalg/base/parallel_for.h"

// A function of MKL, which LibTorch contains on x86-64. Without it, another BLAS may split the
// product of a piece among threads again.
extern "C" int MKL_Set_Num_Threads_Local(int threads) __attribute__((weak));

namespace oscar {
namespace {

// Limits BLAS calls of this thread to one thread.
class OneThread {
 public:
  OneThread() : before_(MKL_Set_Num_Threads_Local == nullptr ? 0 : MKL_Set_Num_Threads_Local(1)) {}
  ~OneThread() {
    if (MKL_Set_Num_Threads_Local != nullptr) MKL_Set_Num_Threads_Local(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace

void ForEachTensorPiece(int64_t count, const std::function<void(int64_t)>& piece) {
  ParallelFor(
      count,
      [&](int64_t index) {
        // A helper's thread does not know that the caller computes without gradients.
        const at::AutoDispatchBelowADInplaceOrView below_autograd;
        const OneThread one_thread;
        piece(index);
      },
      at::get_num_threads());
}

}  // namespace oscar
