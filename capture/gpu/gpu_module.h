// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Our code that needs LibTorch's CUDA library, in a shared object of its own. It is only loaded if
// there is a GPU, so programs also run without that library.
#pragma once

#include <ATen/core/Tensor.h>  // must come before c10d's headers
#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace oscar {

// Kernels that are recorded once and then launched together (CUDA graphs).
class GpuGraph {
 public:
  virtual ~GpuGraph() = default;
  // Returns false if `work` cannot be recorded; then nothing has run.
  virtual bool Record(c10::Device device, const std::function<void()>& work) = 0;
  virtual void Replay() = 0;
};

struct GpuModule {
  // Members are null if their headers were missing at build time.
  std::unique_ptr<GpuGraph> (*make_graph)() = nullptr;
  // Creates LibTorch's NCCL backend, as the general interface.
  c10::intrusive_ptr<c10d::Backend> (*make_nccl)(const c10::intrusive_ptr<c10d::Store>& store,
                                                 int rank, int size) = nullptr;
};

// Loads the module on the first call. Returns null if this build's LibTorch has no CUDA, or this
// machine has no driver for it. Throws ResourceError if the shared object is not next to the
// program or cannot be loaded. Trap: LibTorch caches its first answer to whether CUDA is available,
// so call this first.
const GpuModule* LoadGpuModule();

}  // namespace oscar
