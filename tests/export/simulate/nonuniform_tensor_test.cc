// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/codecs/nonuniform_tensor.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <vector>

#include "capture/model/run/device.h"
#include "tests/reference/sample_levels.h"
#include "tests/reference/scalar_nonuniform.h"

namespace oscar {
namespace {

constexpr int64_t kChannels = 96;

at::Tensor Rows() {
  at::manual_seed(3);
  at::Tensor rows = at::randn({64, kChannels}, at::kFloat);
  rows[1].fill_(3);  // constant
  rows[2].mul_(1e-20);
  rows[3].mul_(1e20);
  rows[4][0] = 500;                                             // one outlier
  rows[5].copy_(at::arange(kChannels).sub(40).to(at::kFloat));  // ties between levels
  rows[6].zero_();
  rows[7].copy_(at::arange(kChannels).remainder(2).sub(1).to(at::kFloat).mul(0.0F));  // -0 and 0
  rows[8].mul_(1e-42);                                                                // subnormal
  rows[9].abs_();
  rows[10].slice(0, 0, 80).fill_(1);  // many values tie with an outlier limit
  rows[11][5] = 3e38F;
  rows.slice(0, 20, 40).copy_(rows.slice(0, 20, 40).to(at::kBFloat16));
  return rows;
}

std::vector<NonuniformFormat> Formats() {
  std::vector<NonuniformFormat> formats;
  for (int bits = 2; bits <= 4; ++bits) {
    NonuniformFormat format{bits, SampleLevels(bits), SampleLevels(bits)};
    formats.push_back(format);
    for (float& value : format.values) value = 1.1F * value + 0.01F;  // as after Q-Norm
    formats.push_back(format);
    formats.push_back({bits, {}, {}, false});
    formats.push_back({bits, {}, {}, true});
  }
  return formats;
}

template <typename T>
std::span<const T> Row(const at::Tensor& rows, int64_t row) {
  return {rows[row].const_data_ptr<T>(), static_cast<size_t>(rows.size(1))};
}

template <typename T>
void ExpectEqualBytes(const std::vector<T>& expected, const at::Tensor& actual, int64_t row) {
  const at::Tensor values = actual[row].contiguous();
  for (size_t i = 0; i < expected.size(); ++i) {
    const T value = values.const_data_ptr<T>()[i];
    ASSERT_EQ(std::memcmp(&expected[i], &value, sizeof(T)), 0)
        << "row " << row << " channel " << i << ": " << expected[i] << " against " << value;
  }
}

std::vector<at::Device> Devices() {
  std::vector<at::Device> devices = {at::kCPU};
  if (NumGpus() > 0) devices.emplace_back(at::kCUDA, 0);
  return devices;
}

template <typename T>
void CompareTokens(const at::Tensor& rows, const NonuniformFormat& format, double kept,
                   at::Device device) {
  const at::Tensor actual = RoundTripTokens(rows.to(device), kept, format).cpu();
  std::vector<T> expected(kChannels);
  for (int64_t row = 0; row < rows.size(0); ++row) {
    RoundTripToken<T>(Row<T>(rows, row), kept, format, expected);
    ExpectEqualBytes(expected, actual, row);
  }
}

TEST(NonuniformTensor, TokensEqualTheScalarCodecBitForBit) {
  for (const NonuniformFormat& format : Formats()) {
    for (const double kept : {0.99, 0.9, 1.0}) {
      for (const at::Device device : Devices()) {
        CompareTokens<float>(Rows(), format, kept, device);
        CompareTokens<double>(Rows().to(at::kDouble), format, kept, device);
      }
      if (HasFatalFailure()) FAIL() << "bits " << format.bits << " kept " << kept;
    }
  }
}

template <typename T>
void CompareChannels(const at::Tensor& rows, const NonuniformFormat& format, bool outliers) {
  const at::Tensor calibration = Rows().slice(0, 20).to(at::kFloat);
  const TensorRange range = QuantileRange(calibration, outliers ? 0.9 : 1, 0);
  at::Tensor low = range.low.contiguous(), high = range.high.contiguous();
  low[0][7] = high[0][7] = 0.25F;  // a channel with an empty range
  const TensorRange wide = {low.to(rows.scalar_type()), high.to(rows.scalar_type())};
  const at::Tensor actual = RoundTripChannels(rows, wide, format, outliers);
  std::vector<T> expected(kChannels);
  for (int64_t row = 0; row < rows.size(0); ++row) {
    RoundTripChannels<T>(Row<T>(rows, row), Row<float>(low, 0), Row<float>(high, 0), format,
                         outliers, std::span<T>(expected));
    ExpectEqualBytes(expected, actual, row);
  }
}

TEST(NonuniformTensor, ChannelsEqualTheScalarCodecBitForBit) {
  for (const NonuniformFormat& format : Formats()) {
    for (const bool outliers : {true, false}) {
      CompareChannels<float>(Rows(), format, outliers);
      CompareChannels<double>(Rows().to(at::kDouble), format, outliers);
      if (HasFatalFailure()) FAIL() << "bits " << format.bits << " outliers " << outliers;
    }
  }
}

TEST(NonuniformTensor, QuantilesEqualTheScalarOnesBitForBit) {
  const at::Tensor rows = Rows();
  const at::Tensor sorted = std::get<0>(rows.sort(1));
  for (const double kept : {0.99, 0.95, 0.5, 1.0}) {
    const TensorRange range = QuantileRange(rows, kept, 1);
    for (int64_t row = 0; row < rows.size(0); ++row) {
      const KeptQuantiles q = QuantilesKeeping(kept);
      EXPECT_EQ(range.low[row].item<float>(), QuantileOfSorted(Row<float>(sorted, row), q.low));
      EXPECT_EQ(range.high[row].item<float>(), QuantileOfSorted(Row<float>(sorted, row), q.high));
    }
  }
}

}  // namespace
}  // namespace oscar
