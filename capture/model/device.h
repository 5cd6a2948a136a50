// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Where and in which precision a model runs. Compiles and runs without a CUDA toolkit and without a
// GPU: nothing but device-neutral interfaces of LibTorch. Memory numbers of a GPU are those
// of LibTorch's allocator; the CUDA context and cuBLAS workspaces come on top.
#pragma once

#include <ATen/core/ATen_fwd.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "capture/checkpoint/dtype.h"

namespace oscar {

// That LibTorch can use; loads what it uses them through (capture/gpu/gpu_module.h).
int NumGpus();

// "auto" (the first GPU, else the CPU), "cpu", "cuda" (= cuda:0) or "cuda:i". UsageError for
// another word, ResourceError if there is no such GPU.
at::Device ParseDevice(std::string_view name);

// "bf16", "f16", "f32", or "auto": what the checkpoint stores on a GPU, f32 on the CPU. UsageError
// for another word.
at::ScalarType ParseComputeDType(std::string_view name, DType stored, at::Device device);
std::string_view ComputeDTypeName(at::ScalarType dtype);  // "bf16", "f16", "f32"

// BF16, F16, F32 to the tensor type; InputError for another, naming `what`.
at::ScalarType ToScalarType(DType dtype, std::string_view what);

// "cpu (2 threads, AVX512)" or "cuda:0 (NVIDIA H200, 140 GiB)".
std::string DescribeDevice(at::Device device);

struct DeviceMemory {
  uint64_t peak = 0;   // bytes: most held at once since ResetPeakMemory (GPU: allocated by tensors;
                       // CPU: resident set)
  uint64_t limit = 0;  // bytes the device has (CPU: of the machine or this process's cgroup)
  uint64_t free = 0;   // bytes of it that nobody holds (CPU: not asked, 0)
};
DeviceMemory QueryMemory(at::Device device);
void ResetPeakMemory(at::Device device);  // where the system allows it

// Starts the driver and loads kernels that every model needs, half a second of a GPU's first use,
// so that it can be done beside other work. Nothing on a CPU.
void WarmUp(at::Device device);

// A copy there, of host memory without waiting for what the device does before.
at::Tensor SendTo(const at::Tensor& x, at::Device device);

// Hands back to the device what LibTorch keeps for tensors to come, so that it counts as free.
void ReleaseCachedMemory(at::Device device);

// Of memory, and with `swap` of that, to new work: page cache that can be dropped included, what
// control groups do not allow left out.
uint64_t AvailableHostBytes(bool swap = false);
uint64_t ResidentBytes();  // of this process, now

// Full-precision products (no TF32, no reduced-precision accumulation) and deterministic attention
// kernels. Settings of LibTorch are process-wide; LayerLoop calls this.
void UseExactArithmetic();

}  // namespace oscar
