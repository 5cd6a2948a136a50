// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Work that is the same again and again, on a GPU recorded once and then started as one (a CUDA
// graph): a decoder's step is thousands of kernels, each shorter than its own launch.
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

  // Does `work`, which reads and writes the same memory whenever `shape` is the same, does not wait
  // for the device and has no other effects. Trap: the first time for a shape it runs, so that
  // libraries load what they need; the second time it is recorded; then it is not called any more.
  // It runs every time on other devices, in a build whose LibTorch has no CUDA, and where something
  // in it cannot be recorded.
  void Run(c10::Device device, const std::vector<int64_t>& shape,
           const std::function<void()>& work);
  // Forgets what was recorded: other memory from here on.
  void Reset();

 private:
  std::unique_ptr<GpuGraph> graph_;
  std::vector<int64_t> shape_;  // of the work that has run last, or is recorded
  bool can_record_ = true;
};

}  // namespace oscar
