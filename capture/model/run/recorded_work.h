// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Repeated work that a GPU records once and then launches as a whole (a CUDA graph). One step of a
// decoder has thousands of kernels, and launching a kernel takes longer than running it.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace oscar {

class GpuGraph;  // capture/gpu/gpu_module.h

class RecordedWork {
 public:
  RecordedWork();
  ~RecordedWork();
  RecordedWork(const RecordedWork&) = delete;
  RecordedWork& operator=(const RecordedWork&) = delete;

  // Does `work`, which must not wait for the device and must have no other effects. It must use the
  // same memory whenever `shape` is the same. Trap: for a new shape, the first call runs `work`, so
  // that libraries load what they need. The second call records and replays it, and later calls
  // only replay it. `work` runs in every call on other devices, in a build whose LibTorch has no
  // CUDA, and if it cannot be recorded.
  void Run(c10::Device device, const std::vector<int64_t>& shape,
           const std::function<void()>& work);
  // Forgets the recording, because the memory will change.
  void Reset();

 private:
  std::unique_ptr<GpuGraph> graph_;
  std::vector<int64_t> shape_;  // shape of the last work, run or recorded
  bool can_record_ = true;
};

}  // namespace oscar
