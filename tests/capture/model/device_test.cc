// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/device.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "linalg/base/error.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

TEST(Device, NamesAreParsed) {
  EXPECT_TRUE(ParseDevice("cpu").is_cpu());
  EXPECT_EQ(ParseDevice("auto").is_cpu(), NumGpus() == 0);
  for (const char* name : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda1", "", "cpu:0"}) {
    EXPECT_THROW(ParseDevice(name), UsageError) << name;
  }
}

TEST(Device, AMissingGpuIsAResourceError) {
  EXPECT_TRUE(Says(ErrorOf<ResourceError>([&] { ParseDevice("cuda:99"); }), "cuda:99"));
  if (NumGpus() == 0) {
    EXPECT_THROW(ParseDevice("cuda"), ResourceError);
  }
}

TEST(Device, ComputeTypes) {
  EXPECT_EQ(ParseComputeDType("bf16", DType::kF32, at::kCPU), at::kBFloat16);
  EXPECT_EQ(ParseComputeDType("f16", DType::kF32, at::kCPU), at::kHalf);
  EXPECT_EQ(ParseComputeDType("auto", DType::kBF16, at::kCPU), at::kFloat);
  EXPECT_EQ(ParseComputeDType("auto", DType::kBF16, at::Device(at::kCUDA, 0)), at::kBFloat16);
  EXPECT_THROW(ParseComputeDType("fp8", DType::kBF16, at::kCPU), UsageError);
  EXPECT_THROW(ToScalarType(DType::kF8E4M3, "a tensor"), InputError);
  EXPECT_EQ(ComputeDTypeName(at::kHalf), "f16");
}

TEST(Device, CpuDescriptionAndMemory) {
  EXPECT_TRUE(DescribeDevice(at::kCPU).starts_with("cpu ("));
  const DeviceMemory memory = QueryMemory(at::kCPU);
  EXPECT_GE(memory.peak, ResidentBytes() / 2);
  EXPECT_GT(memory.limit, memory.peak);
}

}  // namespace
}  // namespace oscar
