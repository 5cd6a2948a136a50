// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// LibTorch's CUDA library and what of ours names its symbols, as a shared object that is loaded
// where there is a GPU: programs that need none start without.
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

// Kernels recorded once and started as one (CUDA graphs).
class GpuGraph {
 public:
  virtual ~GpuGraph() = default;
  // False where something in `work` cannot be recorded; nothing has run then.
  virtual bool Record(c10::Device device, const std::function<void()>& work) = 0;
  virtual void Replay() = 0;
};

struct GpuModule {
  // Each null where the headers that it needs were not there.
  std::unique_ptr<GpuGraph> (*make_graph)() = nullptr;
  // LibTorch's NCCL behind its general interface.
  c10::intrusive_ptr<c10d::Backend> (*make_nccl)(const c10::intrusive_ptr<c10d::Store>& store,
                                                 int rank, int size) = nullptr;
};

// Loaded by the first call. Null where this build's LibTorch has no CUDA, or this machine no driver
// of it. Throws ResourceError where the shared object is not found beside the program or does not
// load. Trap: LibTorch remembers for good what it says when it is first asked whether there is
// CUDA, so this goes before.
const GpuModule* LoadGpuModule();

}  // namespace oscar
