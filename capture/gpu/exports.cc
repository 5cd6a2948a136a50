// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Entry points of the shared object.
#include "capture/gpu/gpu_module.h"

#ifdef OSCAR_CUDA_GRAPHS
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#endif
#ifdef OSCAR_NCCL
#define USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include <chrono>

namespace oscar {
namespace {

#ifdef OSCAR_CUDA_GRAPHS
class CudaGraph final : public GpuGraph {
 public:
  bool Record(c10::Device device, const std::function<void()>& work) override {
    const c10::StreamGuard stream(
        c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device));
    try {
      graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
      work();
      graph_.capture_end();
      return true;
    } catch (const c10::Error&) {
      try {
        graph_.capture_end();
      } catch (const c10::Error&) {  // the capture was invalid
      }
      return false;
    }
  }
  void Replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

std::unique_ptr<GpuGraph> MakeGraph() { return std::make_unique<CudaGraph>(); }
#else
constexpr auto MakeGraph = nullptr;
#endif

#ifdef OSCAR_NCCL
c10::intrusive_ptr<c10d::Backend> MakeNccl(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                           int size) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = std::chrono::hours(24 * 30);  // RankWatch detects ranks that hang
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
}
#else
constexpr auto MakeNccl = nullptr;
#endif

}  // namespace
}  // namespace oscar

extern "C" const oscar::GpuModule oscar_gpu_module = {oscar::MakeGraph, oscar::MakeNccl};
