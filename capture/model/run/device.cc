// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/gpu/gpu_module.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/base/error_context.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Looks up a function of the CUDA driver, which LibTorch has loaded if there is a GPU.
template <typename Function>
Function DriverFunction(const char* name) {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return driver == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(driver, name));
}

std::string GpuName(int index) {
  const auto name_of = DriverFunction<int (*)(char*, int, int)>("cuDeviceGetName");
  char name[256] = {};
  if (name_of == nullptr || name_of(name, sizeof name - 1, index) != 0) return "CUDA GPU";
  return name;
}

// Parses the bytes in a line such as "VmHWM:   1234 kB" of a file in /proc.
uint64_t ProcBytes(const char* file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key + ":")) return std::stoull(line.substr(key.size() + 1)) * 1024;
  }
  return 0;
}

// The files with the limit and the usage of a control group, in either version (cgroups(7)).
struct GroupFiles {
  std::string_view root, limit, anonymous, shared;
};
constexpr GroupFiles kFirstVersion = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "total_rss",
                                      "total_shmem"};
constexpr GroupFiles kSecondVersion = {"/sys/fs/cgroup", "memory.max", "anon", "shmem"};

struct GroupMemory {
  uint64_t limit = 0;  // bytes
  uint64_t held = 0;   // bytes in use that cannot be dropped (no page cache)
};

std::optional<GroupMemory> MemoryOf(const fs::path& group, const GroupFiles& files) {
  GroupMemory memory;
  if (!(std::ifstream(group / files.limit) >> memory.limit)) return std::nullopt;  // "max"
  std::ifstream stat(group / "memory.stat");
  uint64_t bytes = 0;
  for (std::string name; stat >> name >> bytes;)
    if (name == files.anonymous || name == files.shared) memory.held += bytes;
  return memory;
}

// Returns the control groups that limit this process: its own and all above it.
std::vector<GroupMemory> OfControlGroups() {
  std::vector<GroupMemory> all;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "number:controllers:path"
    const size_t controllers = line.find(':') + 1, path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) continue;
    const std::string names = line.substr(controllers, path - controllers - 1);
    if (!names.empty() && names != "memory") continue;
    const GroupFiles& files = names.empty() ? kSecondVersion : kFirstVersion;
    for (fs::path group = line.substr(path);; group = group.parent_path()) {
      if (const auto memory = MemoryOf(fs::path(files.root) / group.relative_path(), files))
        all.push_back(*memory);
      if (group == group.parent_path()) break;
    }
  }
  return all;
}

uint64_t HostMemoryLimit() {
  uint64_t least = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                   static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  for (const GroupMemory& group : OfControlGroups()) least = std::min(least, group.limit);
  return least;
}

}  // namespace

int NumGpus() {
  if (LoadGpuModule() == nullptr || !at::hasCUDA()) return 0;
  return static_cast<int>(at::getNumGPUs());
}

at::Device ParseDevice(std::string_view name) {
  if (name == "cpu") return at::kCPU;
  const int num_gpus = NumGpus();  // starts the driver
  if (name == "auto") return num_gpus > 0 ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  int index = 0;
  if (name != "cuda") {
    constexpr std::string_view kPrefix = "cuda:";
    const char* end = name.data() + name.size();
    const char* digits = name.data() + std::min(name.size(), kPrefix.size());
    const auto [stop, error] = std::from_chars(digits, end, index);
    if (!name.starts_with(kPrefix) || error != std::errc() || stop != end || index < 0) {
      throw UsageError(
          fmt::format("device '{}' is unknown: expected auto, cpu, cuda or cuda:<number>", name));
    }
  }
  if (index >= num_gpus) {
    throw ResourceError(
        fmt::format("device '{}' does not exist; LibTorch finds {} CUDA GPUs. Check the driver "
                    "with nvidia-smi, or use --device cpu",
                    name, num_gpus));
  }
  return {at::kCUDA, static_cast<at::DeviceIndex>(index)};
}

at::ScalarType ToScalarType(DType dtype, std::string_view what) {
  if (dtype == DType::kBF16) return at::kBFloat16;
  if (dtype == DType::kF16) return at::kHalf;
  if (dtype == DType::kF32) return at::kFloat;
  throw InputError(fmt::format(
      "{} is stored as {}, a weight format that is not implemented. Supported: BF16, F16, F32",
      what, DTypeName(dtype)));
}

at::ScalarType ParseComputeDType(std::string_view name, DType stored, at::Device device) {
  if (name == "bf16") return at::kBFloat16;
  if (name == "f16") return at::kHalf;
  if (name == "f32") return at::kFloat;
  if (name != "auto") {
    throw UsageError(
        fmt::format("compute type '{}' is unknown: expected auto, bf16, f16 or f32", name));
  }
  return device.is_cpu() ? at::kFloat : ToScalarType(stored, "the model");
}

std::string_view ComputeDTypeName(at::ScalarType dtype) {
  if (dtype == at::kBFloat16) return "bf16";
  if (dtype == at::kHalf) return "f16";
  OSCAR_CHECK(dtype == at::kFloat);
  return "f32";
}

std::string DescribeDevice(at::Device device) {
  if (device.is_cpu())
    return fmt::format("cpu ({} threads, {})", at::get_num_threads(), at::get_cpu_capability());
  return fmt::format("{} ({}, {:.1f} GiB)", device.str(), GpuName(device.index()),
                     static_cast<double>(QueryMemory(device).limit) / (1 << 30));
}

DeviceMemory QueryMemory(at::Device device) {
  if (device.is_cpu()) return {ProcBytes("/proc/self/status", "VmHWM"), HostMemoryLimit(), 0};
  // The allocator only knows the device's size if there is a current context, which this call
  // creates.
  return WithErrorContext("asking " + device.str() + " for its memory", [&]() -> DeviceMemory {
    at::globalContext().lazyInitDevice(device.type());
    auto* allocator = c10::getDeviceAllocator(device.type());
    constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto stats = allocator->getDeviceStats(device.index());
    const auto [free, total] = allocator->getMemoryInfo(device.index());
    return {static_cast<uint64_t>(stats.allocated_bytes[kAll].peak), total, free};
  });
}

void ResetPeakMemory(at::Device device) {
  if (device.is_cpu()) {
    std::ofstream("/proc/self/clear_refs") << "5";  // resets VmHWM if the system supports that
    return;
  }
  at::globalContext().lazyInitDevice(device.type());
  c10::getDeviceAllocator(device.type())->resetPeakStats(device.index());
}

void WarmUp(at::Device device) {
  if (device.is_cpu()) return;
  UseExactArithmetic();
  for (const at::ScalarType dtype : {at::kBFloat16, at::kDouble}) {
    const at::Tensor x = at::ones({64, 64}, at::TensorOptions().device(device).dtype(dtype));
    at::Tensor y = at::linear(x, x).add_(x).mul(x).to(at::kFloat);
    y = y.unsqueeze(0).bmm(y.unsqueeze(0)).square().mean(-1).rsqrt_();
    (void)y.to(dtype).sum().item<double>();
  }
  const at::Tensor q =
      at::ones({1, 1, 64, 64}, at::TensorOptions().device(device).dtype(at::kBFloat16));
  (void)at::scaled_dot_product_attention(q, q, q, {}, 0.0, /*is_causal=*/true).cpu();
}

void ReleaseCachedMemory(at::Device device) {
  if (!device.is_cpu()) c10::getDeviceAllocator(device.type())->emptyCache();
}

at::Tensor SendTo(const at::Tensor& x, at::Device device) {
  if (!x.is_cpu() || device.is_cpu()) return x.to(device);
  return x.pin_memory().to(device, /*non_blocking=*/true);
}

uint64_t AvailableHostBytes(bool swap) {
  uint64_t available = ProcBytes("/proc/meminfo", "MemAvailable");
  if (swap) available += ProcBytes("/proc/meminfo", "SwapFree");
  for (const GroupMemory& group : OfControlGroups())
    available = std::min(available, group.limit - std::min(group.limit, group.held));
  return available;
}

uint64_t ResidentBytes() { return ProcBytes("/proc/self/status", "VmRSS"); }

void UseExactArithmetic() {
  auto& context = at::globalContext();
  context.setFloat32MatmulPrecision("highest");
  context.setAllowTF32CuBLAS(false);
  context.setAllowBF16ReductionCuBLAS(false);
  context.setAllowFP16ReductionCuBLAS(false);
  context.setSDPUseCuDNN(false);
}

}  // namespace oscar
