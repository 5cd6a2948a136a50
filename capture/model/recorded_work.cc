// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/recorded_work.h"

#ifdef OSCAR_LIBTORCH_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#endif

#include <utility>

namespace oscar {

#ifdef OSCAR_LIBTORCH_CUDA

struct RecordedWork::Graph {
  at::cuda::CUDAGraph cuda;
};

namespace {

// False where something in it cannot be recorded; nothing has run then.
bool Record(at::cuda::CUDAGraph& graph, c10::Device device, const std::function<void()>& work) {
  const c10::StreamGuard stream(
      c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device));
  try {
    graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    work();
    graph.capture_end();
    return true;
  } catch (const c10::Error&) {
    try {
      graph.capture_end();
    } catch (const c10::Error&) {  // the capture was void
    }
    return false;
  }
}

}  // namespace

void RecordedWork::Run(c10::Device device, const std::vector<int64_t>& shape,
                       const std::function<void()>& work) {
  const bool again = shape == shape_;
  if (!again) Reset();
  shape_ = shape;
  if (again && !graph_ && can_record_ && device.is_cuda()) {
    auto graph = std::make_unique<Graph>();
    can_record_ = Record(graph->cuda, device, work);
    if (can_record_) graph_ = std::move(graph);
  }
  if (!graph_) return work();
  graph_->cuda.replay();
}

#else

struct RecordedWork::Graph {};

void RecordedWork::Run(c10::Device, const std::vector<int64_t>&,
                       const std::function<void()>& work) {
  work();
}

#endif

RecordedWork::RecordedWork() = default;
RecordedWork::~RecordedWork() = default;

void RecordedWork::Reset() {
  graph_.reset();
  shape_.clear();
}

}  // namespace oscar
