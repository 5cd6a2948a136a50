// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// LibTorch's CUDA library and our code that uses its symbols, as a shared object that is loaded if
// there is a GPU, so that programs without one start without it.
#pragma once

#include <ATen/core/Tensor.h>  // before c10d's headers
#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace oscar {

// Kernels recorded once and launched together (CUDA graphs).
class GpuGraph {
 public:
  virtual ~GpuGraph() = default;
  // Returns false if `work` cannot be recorded; nothing has run then.
  virtual bool Record(c10::Device device, const std::function<void()>& work) = 0;
  virtual void Replay() = 0;
};

struct GpuModule {
  // Members are null if their headers were missing at build time.
  std::unique_ptr<GpuGraph> (*make_graph)() = nullptr;
  // Makes LibTorch's NCCL, with its general interface.
  c10::intrusive_ptr<c10d::Backend> (*make_nccl)(const c10::intrusive_ptr<c10d::Store>& store,
                                                 int rank, int size) = nullptr;
};

// Loads it on the first call. Null if this build's LibTorch has no CUDA, or this machine has no
// driver for it. Throws ResourceError if the shared object is not found beside the program or does
// not load. Trap: LibTorch caches its first answer on whether CUDA is available, so call this
// first.
const GpuModule* LoadGpuModule();

}  // namespace oscar
