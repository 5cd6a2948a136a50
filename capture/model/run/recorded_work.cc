// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/recorded_work.h"

#include <utility>

#include "capture/gpu/gpu_module.h"

namespace oscar {

void RecordedWork::Run(c10::Device device, const std::vector<int64_t>& shape,
                       const std::function<void()>& work) {
  const bool again = shape == shape_;
  if (!again) Reset();
  shape_ = shape;
  if (again && !graph_ && can_record_ && device.is_cuda()) {
    const auto make_graph = LoadGpuModule()->make_graph;
    auto graph = make_graph == nullptr ? nullptr : make_graph();
    can_record_ = graph != nullptr && graph->Record(device, work);
    if (can_record_) graph_ = std::move(graph);
  }
  if (!graph_) return work();
  graph_->Replay();
}

RecordedWork::RecordedWork() = default;
RecordedWork::~RecordedWork() = default;

void RecordedWork::Reset() {
  graph_.reset();
  shape_.clear();
}

}  // namespace oscar
