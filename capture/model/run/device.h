// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The device and precision of a model. Compiles and runs without a CUDA toolkit and without a GPU,
// because it uses only device-neutral interfaces of LibTorch. Memory numbers of a GPU are those of
// LibTorch's allocator; the CUDA context and cuBLAS workspaces are not included.
#pragma once

#include <ATen/core/ATen_fwd.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "capture/checkpoint/dtype.h"

namespace oscar {

// The number of GPUs that LibTorch can use; loads the module for them (capture/gpu/gpu_module.h).
int NumGpus();

// Parses "auto" (the first GPU, else the CPU), "cpu", "cuda" (= cuda:0) or "cuda:i". Throws
// UsageError for another word, ResourceError if there is no such GPU.
at::Device ParseDevice(std::string_view name);

// Parses "bf16", "f16", "f32", or "auto": the stored type on a GPU, f32 on the CPU. Throws
// UsageError for another word.
at::ScalarType ParseComputeDType(std::string_view name, DType stored, at::Device device);
std::string_view ComputeDTypeName(at::ScalarType dtype);  // "bf16", "f16", "f32"

// Converts BF16, F16, F32 to the tensor type. Throws InputError for another, naming `what`.
at::ScalarType ToScalarType(DType dtype, std::string_view what);

// "cpu (2 threads, AVX512)" or "cuda:0 (NVIDIA H200, 140 GiB)".
std::string DescribeDevice(at::Device device);

struct DeviceMemory {
  uint64_t peak = 0;   // bytes: most held at once since ResetPeakMemory (GPU: allocated by tensors;
                       // CPU: resident set)
  uint64_t limit = 0;  // bytes of the device (CPU: of the machine or this process's cgroup)
  uint64_t free = 0;   // unused bytes of it (CPU: not queried, 0)
};
DeviceMemory QueryMemory(at::Device device);
void ResetPeakMemory(at::Device device);  // if the system allows it

// Starts the driver and loads kernels that every model needs. That takes half a second on first use
// of a GPU, so it can run beside other work. Does nothing on a CPU.
void WarmUp(at::Device device);

// Copies to the device. A copy from host memory does not wait for the device's earlier work.
at::Tensor SendTo(const at::Tensor& x, at::Device device);

// Returns LibTorch's cached memory to the device, so that it counts as free.
void ReleaseCachedMemory(at::Device device);

// Memory (with `swap` including swap) available to new work, including page cache that can be
// dropped, within the limits of control groups.
uint64_t AvailableHostBytes(bool swap = false);
uint64_t ResidentBytes();  // of this process, now

// Sets full-precision products (no TF32, no reduced-precision accumulation) and deterministic
// attention kernels. LibTorch's settings are process-wide; LayerLoop calls this.
void UseExactArithmetic();

}  // namespace oscar
