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

// Returns how many GPUs LibTorch can use; loads their module (capture/gpu/gpu_module.h).
int NumGpus();

// Parses "auto" (the first GPU, otherwise the CPU), "cpu", "cuda" (= cuda:0) or "cuda:i". Throws
// UsageError for other words, ResourceError if there is no such GPU.
at::Device ParseDevice(std::string_view name);

// Parses "bf16", "f16", "f32", or "auto": the stored type on a GPU, f32 on the CPU. Throws
// UsageError for other words.
at::ScalarType ParseComputeDType(std::string_view name, DType stored, at::Device device);
std::string_view ComputeDTypeName(at::ScalarType dtype);  // "bf16", "f16", "f32"

// Converts BF16, F16 or F32 to a tensor type. Throws InputError naming `what` for other types.
at::ScalarType ToScalarType(DType dtype, std::string_view what);

// Returns "cpu (2 threads, AVX512)" or "cuda:0 (NVIDIA H200, 140 GiB)".
std::string DescribeDevice(at::Device device);

struct DeviceMemory {
  uint64_t peak = 0;   // most bytes held at once since ResetPeakMemory (GPU: allocated by tensors;
                       // CPU: resident set)
  uint64_t limit = 0;  // bytes of the device (CPU: of the machine or the process's cgroup)
  uint64_t free = 0;   // unused bytes on the device (CPU: always 0)
};
DeviceMemory QueryMemory(at::Device device);
void ResetPeakMemory(at::Device device);  // if the system supports it

// Starts the driver and loads kernels that every model needs. On the first use of a GPU this takes
// half a second, so run it in parallel with other work. Does nothing on a CPU.
void WarmUp(at::Device device);

// Copies to the device. A copy from host memory does not wait for the device's earlier work.
at::Tensor SendTo(const at::Tensor& x, at::Device device);

// Returns LibTorch's cached memory to the device, so that it counts as free.
void ReleaseCachedMemory(at::Device device);

// Returns the memory that new work can use, within the limits of control groups. It includes page
// cache that can be dropped and, if `swap`, swap space.
uint64_t AvailableHostBytes(bool swap = false);
uint64_t ResidentBytes();  // of this process, at present

// Enables full-precision products (no TF32, no reduced-precision accumulation) and deterministic
// attention kernels. LibTorch's settings are process-wide; LayerLoop calls this.
void UseExactArithmetic();

}  // namespace oscar
