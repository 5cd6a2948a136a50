// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/bench_machine.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "export/cuda/device/cuda_check.h"
#include "export/cuda/device/device_array.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

int Device() {
  int device = 0;
  OSCAR_CUDA_CHECK(cudaGetDevice(&device));
  return device;
}

cudaDeviceProp Properties() {
  cudaDeviceProp properties;
  OSCAR_CUDA_CHECK(cudaGetDeviceProperties(&properties, Device()));
  return properties;
}

// Returns what nvidia-smi reports for a list of fields; empty without nvidia-smi.
std::vector<std::string> AskNvidiaSmi(const std::string& fields) {
  char bus[32] = {};
  OSCAR_CUDA_CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, Device()));
  const std::string command = fmt::format(
      "nvidia-smi -i {} --query-gpu={} --format=csv,noheader,nounits 2>/dev/null", bus, fields);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::array<char, 512> line{};
  const bool read = fgets(line.data(), line.size(), pipe) != nullptr;
  if (pclose(pipe) != 0 || !read) return {};
  std::vector<std::string> values;
  std::istringstream stream{std::string(line.data())};
  for (std::string value; std::getline(stream, value, ',');) {
    const size_t first = value.find_first_not_of(" \n"), last = value.find_last_not_of(" \n");
    values.push_back(first == std::string::npos ? "" : value.substr(first, last - first + 1));
  }
  return values;
}

Json Clocks() {
  const std::vector<std::string> values =
      AskNvidiaSmi("clocks.sm,clocks.mem,power.draw,temperature.gpu");
  if (values.size() != 4) return nullptr;
  return {{"sm_mhz", values[0]},
          {"memory_mhz", values[1]},
          {"power_w", values[2]},
          {"temperature_c", values[3]}};
}

Json ClocksUnderLoad() {
  constexpr size_t kBytes = size_t{1} << 29;
  constexpr int kCopies = 3000;  // about a second at 4 TB/s
  const DeviceArray<char> from(kBytes), to(kBytes);
  for (int i = 0; i < kCopies; ++i)
    OSCAR_CUDA_CHECK(cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice));
  Json clocks = Clocks();
  OSCAR_CUDA_CHECK(cudaDeviceSynchronize());
  return clocks;
}

std::string Version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

}  // namespace

void CheckCudaDevice() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    throw ResourceError(fmt::format(
        "no CUDA device: {}", status != cudaSuccess ? cudaGetErrorString(status) : "none found"));
  }
}

int64_t L2Bytes() { return Properties().l2CacheSize; }

Json DescribeBenchMachine() {
  const cudaDeviceProp properties = Properties();
  int driver = 0, runtime = 0;
  OSCAR_CUDA_CHECK(cudaDriverGetVersion(&driver));
  OSCAR_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  Json machine = {{"gpu", std::string(properties.name)},
                  {"compute_capability", fmt::format("{}.{}", properties.major, properties.minor)},
                  {"sms", properties.multiProcessorCount},
                  {"l2_bytes", properties.l2CacheSize},
                  {"memory_bytes", properties.totalGlobalMem},
                  {"cuda_driver", Version(driver)},
                  {"cuda_runtime", Version(runtime)}};
  const std::vector<std::string> name = AskNvidiaSmi("driver_version,clocks.max.sm");
  if (name.size() == 2) {
    machine["driver"] = name[0];
    machine["max_sm_mhz"] = name[1];
    machine["idle"] = Clocks();
    machine["loaded"] = ClocksUnderLoad();
  }
  return machine;
}

}  // namespace oscar
