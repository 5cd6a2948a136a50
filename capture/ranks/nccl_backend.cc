// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/ranks/nccl_backend.h"

#ifdef OSCAR_C10D_NCCL
#define USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include "linalg/check.h"

namespace oscar {

#ifdef OSCAR_C10D_NCCL

bool HasNccl() { return true; }

c10::intrusive_ptr<c10d::Backend> MakeNcclBackend(const c10::intrusive_ptr<c10d::Store>& store,
                                                  int rank, int size) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = std::chrono::hours(24 * 30);  // who hangs is found out by RankWatch
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
}

#else

bool HasNccl() { return false; }

c10::intrusive_ptr<c10d::Backend> MakeNcclBackend(const c10::intrusive_ptr<c10d::Store>&, int,
                                                  int) {
  OSCAR_CHECK(false);
}

#endif

}  // namespace oscar
