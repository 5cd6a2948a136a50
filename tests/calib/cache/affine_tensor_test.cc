// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/cache/affine_tensor.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <vector>

#include "linalg/affine_codec.h"
#include "linalg/feedback_codec.h"

namespace oscar {
namespace {

constexpr MetadataType kMetadata[] = {MetadataType::kFloat32, MetadataType::kBFloat16,
                                      MetadataType::kByte};
constexpr ScaleFit kFits[] = {ScaleFit::kRange, ScaleFit::kUnbiased, ScaleFit::kUnbiasedRounded};

at::Tensor Rows(int64_t dim, uint64_t seed) {
  at::manual_seed(seed);
  at::Tensor rows = at::randn({64, dim}, at::kFloat);
  rows[1].fill_(3);  // constant
  rows[2].mul_(1e-20);
  rows[3].mul_(1e20);
  rows[4][0] = 500;                               // one outlier
  rows[5].copy_(at::arange(dim).to(at::kFloat));  // ramp: may hit points half-way between codes
  rows[6].abs_();
  rows[7].fill_(1).slice(0, 0, dim, 16).fill_(1.25);  // constant after clipping
  rows[8].mul_(1e-9);
  rows.slice(0, 20, 40).copy_(rows.slice(0, 20, 40).to(at::kBFloat16));
  return rows;
}

template <typename T>
void ExpectScalarValues(const at::Tensor& rows, double ratio, const AffineFormat& format) {
  const at::Tensor sorted = std::get<0>(rows.abs().sort(-1));
  const at::Tensor tensor = AffineRoundTrip(rows, ClipThresholds(sorted, ratio), format);
  const auto dim = static_cast<size_t>(rows.size(1));
  for (int64_t row = 0; row < rows.size(0); ++row) {
    std::vector<T> expected(dim);
    const T* x = rows[row].const_data_ptr<T>();
    QuantizeDequantizeAffineRow<T>(std::span<const T>(x, dim), format, {ratio, ClipMethod::kSort},
                                   std::span<T>(expected));
    ASSERT_EQ(
        std::memcmp(expected.data(), tensor[row].const_data_ptr<T>(), expected.size() * sizeof(T)),
        0)
        << "dim " << dim << " group " << format.quant_group_size << " ratio " << ratio << " bits "
        << format.bits << " fit " << static_cast<int>(format.scales) << " row " << row;
  }
}

// The sorting network handles many rows at once, rows of any length, and ties.
TEST(AffineTensor, MagnitudesAreSorted) {
  for (const int64_t dim : {1, 3, 64, 96, 128, 200, 512}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      const at::Tensor rows = at::randn({3, 7, dim}, dtype).mul(8).round();
      EXPECT_TRUE(SortedMagnitudes(rows).equal(std::get<0>(rows.abs().sort(-1)))) << dim;
    }
  }
  const at::Tensor unknown = at::full({1, 4}, NAN);
  EXPECT_TRUE(SortedMagnitudes(unknown).isnan().all().item<bool>());
}

TEST(QuantizedRows, HeadsHaveTheirOwnBitsAndClipRatios) {
  at::manual_seed(7);
  const at::Tensor rows = at::randn({3, 40, 32});
  const std::vector<int> bits = {2, 4, 3};
  for (const std::vector<double>& clip : {std::vector{0.9, 0.99, 0.94}, std::vector{0.94}}) {
    const at::Tensor mixed = QuantizedRows(rows, {bits, clip, 16}, SortedMagnitudes(rows));
    EXPECT_TRUE(mixed.equal(QuantizedRows(rows, {bits, clip, 16})));
    for (size_t head = 0; head < 3; ++head) {
      const auto i = static_cast<int64_t>(head);
      const double ratio = clip[clip.size() == 1 ? 0 : head];
      const at::Tensor alike = QuantizedRows(rows, {{bits[head]}, {ratio}, 16});
      EXPECT_TRUE(mixed[i].equal(alike[i])) << head;
    }
    EXPECT_FALSE(mixed.equal(QuantizedRows(rows, {{2}, clip, 16})));
  }
}

TEST(AffineTensor, EqualsTheScalarCodecBitForBit) {
  for (int64_t dim : {32, 64, 128, 96}) {
    const at::Tensor rows = Rows(dim, static_cast<uint64_t>(dim));
    for (int64_t group : {dim, dim / 2, dim / 4}) {
      for (double ratio : {0.0, 0.8, 0.92, 0.96, 1.0}) {
        for (int bits : {2, 4}) {
          for (const ScaleFit fit : kFits) {
            for (const MetadataType metadata : kMetadata) {
              const AffineFormat format{bits, group, metadata, fit};
              ExpectScalarValues<float>(rows, ratio, format);
              ExpectScalarValues<double>(rows.to(at::kDouble), ratio, format);
            }
          }
        }
      }
    }
  }
}

// Expects the values of the scalar codec, bit for bit; each head has its own `factor` [heads, dim,
// dim].
template <typename T>
void ExpectScalarFeedback(const at::Tensor& rows, const AffineQuantizer& quantizer,
                          const at::Tensor& factor) {
  const at::Tensor read = QuantizedRows(rows, quantizer, {}, false, factor);
  const int64_t dim = rows.size(2);
  const AffineFormat format{quantizer.bits[0], quantizer.quant_group_size, quantizer.metadata,
                            quantizer.scales};
  std::vector<T> expected(static_cast<size_t>(dim));
  for (int64_t head = 0; head < rows.size(0); ++head) {
    const at::Tensor of_head = factor[head].to(rows.scalar_type()).contiguous();
    for (int64_t row = 0; row < rows.size(1); ++row) {
      const T* x = rows[head][row].const_data_ptr<T>();
      QuantizeDequantizeWithFeedback<T>(
          std::span<const T>(x, expected.size()), format, {quantizer.clip[0], ClipMethod::kSort},
          std::span<const T>(of_head.const_data_ptr<T>(), static_cast<size_t>(dim * dim)),
          std::span<T>(expected));
      const at::Tensor actual = read[head][row].contiguous();
      ASSERT_EQ(std::memcmp(expected.data(), actual.const_data_ptr<T>(), dim * sizeof(T)), 0)
          << "dim " << dim << " head " << head << " row " << row;
    }
  }
}

TEST(AffineTensor, FeedbackEqualsTheScalarCodecBitForBit) {
  for (const int64_t dim : {32, 64, 96}) {
    at::manual_seed(static_cast<uint64_t>(dim));
    const at::Tensor rows = at::stack({Rows(dim, 5), Rows(dim, 6)});
    const at::Tensor factor = at::randint(-127, 128, {2, dim, dim}).div(256).triu(1);
    for (const int64_t group : {dim, dim / 4}) {
      for (const double ratio : {0.0, 0.92}) {
        for (const int bits : {2, 4}) {
          for (const ScaleFit fit : kFits) {
            for (const MetadataType metadata : {MetadataType::kBFloat16, MetadataType::kByte}) {
              const AffineQuantizer quantizer{{bits}, {ratio}, group, false, fit, metadata};
              ExpectScalarFeedback<float>(rows, quantizer, factor);
              ExpectScalarFeedback<double>(rows.to(at::kDouble), quantizer, factor);
            }
          }
          const AffineQuantizer plain{{bits}, {ratio}, group};
          ExpectScalarFeedback<float>(rows, plain, factor);
          ExpectScalarFeedback<double>(rows.to(at::kDouble), plain, factor);
        }
      }
    }
  }
}

}  // namespace
}  // namespace oscar
