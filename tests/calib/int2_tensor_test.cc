// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "calib/int2_tensor.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "linalg/int2_codec.h"

namespace oscar {
namespace {

at::Tensor Rows(int64_t dim, uint64_t seed) {
  at::manual_seed(seed);
  at::Tensor rows = at::randn({64, dim}, at::kFloat);
  rows[1].fill_(3);  // constant
  rows[2].mul_(1e-20);
  rows[3].mul_(1e20);
  rows[4][0] = 500;                               // one outlier
  rows[5].copy_(at::arange(dim).to(at::kFloat));  // ramp, codes on half-way points
  rows[6].abs_();
  rows.slice(0, 20, 40).copy_(rows.slice(0, 20, 40).to(at::kBFloat16));
  return rows;
}

TEST(Int2Tensor, EqualsTheScalarCodecBitForBit) {
  for (int64_t dim : {32, 64, 128, 96}) {
    const at::Tensor rows = Rows(dim, static_cast<uint64_t>(dim));
    const at::Tensor sorted = std::get<0>(rows.abs().sort(-1));
    for (int64_t group : {dim, dim / 2, dim / 4}) {
      for (double ratio : {0.0, 0.8, 0.92, 0.96, 1.0}) {
        const at::Tensor tensor = Int2RoundTrip(rows, ClipThresholds(sorted, ratio), group);
        const Int2Format format{dim, group, MetadataType::kFloat32};
        for (int64_t row = 0; row < rows.size(0); ++row) {
          std::vector<float> expected(static_cast<size_t>(dim));
          const float* x = rows[row].const_data_ptr<float>();
          QuantizeDequantizeRow<float>({x, static_cast<size_t>(dim)}, format,
                                       {ratio, ClipMethod::kSort}, expected);
          ASSERT_EQ(std::memcmp(expected.data(), tensor[row].const_data_ptr<float>(),
                                expected.size() * sizeof(float)),
                    0)
              << "dim " << dim << " group " << group << " ratio " << ratio << " row " << row;
        }
      }
    }
  }
}

}  // namespace
}  // namespace oscar
