// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares row codecs on tensors with their scalar references: 8-bit floats, Lloyd-Max forms and
// TurboQuant's sphere codec bit for bit, its product codec to 1e-12.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "export/simulate/codecs/float8_tensor.h"
#include "export/simulate/codecs/lloyd_max_tensor.h"
#include "export/simulate/codecs/turboquant_tensor.h"
#include "export/simulate/random_rotation.h"
#include "tests/reference/scalar_float8.h"
#include "tests/reference/scalar_lloyd_max.h"
#include "tests/reference/scalar_sphere.h"

namespace oscar {
namespace {

// Returns random rows of different magnitudes, and rows that are likely to break a codec.
at::Tensor Rows(int64_t dim) {
  at::manual_seed(static_cast<uint64_t>(dim));
  at::Tensor rows = at::randn({96, dim}, at::kFloat);
  rows[1].fill_(3);  // constant
  rows[2].mul_(1e-20);
  rows[3].mul_(1e15);
  rows[4][0] = 1e18;                              // one huge value
  rows[5].copy_(at::arange(dim).to(at::kFloat));  // ramp
  rows[6].abs_();
  rows[7].zero_();
  rows[8].zero_()[1] = -0.F;
  rows[9].mul_(1e-41);  // subnormal
  rows[10].fill_(-0.F);
  rows[11].copy_(at::arange(dim).remainder(2).mul(2).sub(1));  // +-1: thresholds of many scales
  rows.slice(0, 40, 70).copy_(rows.slice(0, 40, 70).to(at::kBFloat16));
  rows.slice(0, 70, 96).mul_(8).round_();  // ties
  return rows;
}

using RowFunction = std::function<void(std::span<const float> x, std::span<float> y)>;

void ExpectRows(const at::Tensor& rows, const at::Tensor& actual, const RowFunction& scalar) {
  ASSERT_EQ(actual.sizes(), rows.sizes());
  ASSERT_EQ(actual.scalar_type(), at::kFloat);
  const at::Tensor values = actual.contiguous();
  const auto dim = static_cast<size_t>(rows.size(1));
  std::vector<float> expected(dim);
  for (int64_t row = 0; row < rows.size(0); ++row) {
    scalar({rows[row].const_data_ptr<float>(), dim}, expected);
    const float* y = values[row].const_data_ptr<float>();
    for (size_t i = 0; i < dim; ++i) {
      ASSERT_EQ(std::memcmp(&expected[i], y + i, sizeof(float)), 0)
          << "dim " << dim << " row " << row << " value " << i << ": " << y[i] << ", expected "
          << expected[i];
    }
  }
}

TEST(RowCodecs, Float8) {
  const at::Tensor rows = Rows(128);
  // Also tests every 65521st bit pattern, so that all exponents occur.
  const at::Tensor patterns =
      at::arange(0, int64_t{1} << 32, 65521, at::kLong).to(at::kInt).view(at::kFloat);
  const at::Tensor all = patterns.masked_select(patterns.isfinite());
  const at::Tensor many = all.narrow(0, 0, all.size(0) / 128 * 128).view({-1, 128});
  EXPECT_GT(many.size(0), 400);
  for (const Float8Type type : {Float8Type::kE4M3, Float8Type::kE5M2}) {
    for (const float scale : {1.F, 0.37F, 1e-3F, 250.F}) {
      const at::Tensor scales = at::full({1, 1}, scale, at::kFloat);
      for (const at::Tensor& x : {rows, many}) {
        ExpectRows(x, Float8RoundTrip(x, scales, type),
                   [&](std::span<const float> in, std::span<float> out) {
                     for (size_t i = 0; i < in.size(); ++i)
                       out[i] = Float8RoundTrip(in[i], scale, type);
                   });
      }
    }
  }
}

// LibTorch's casts give the codes of the scalar reference for every number of a type, the midpoints
// between neighbours, the floats next to both, and values that underflow.
TEST(RowCodecs, Float8CastsOfLibTorchAreTheScalarCodes) {
  for (const Float8Type type : {Float8Type::kE4M3, Float8Type::kE5M2}) {
    const float max = Float8Max(type);
    std::vector<float> values = {0, max, 1e-30F, std::numeric_limits<float>::denorm_min()};
    for (uint8_t code = 0; code < EncodeFloat8(max, type); ++code) {
      const float low = DecodeFloat8(code, type),
                  high = DecodeFloat8(static_cast<uint8_t>(code + 1), type),
                  middle = low + (high - low) / 2;
      for (const float value : {low, middle}) {
        values.insert(values.end(),
                      {value, std::nextafter(value, 0.F), std::nextafter(value, max)});
      }
    }
    at::manual_seed(5);
    const at::Tensor random =
        at::randn({20000}).mul(at::rand({20000}).mul(40).sub(24).exp2()).clamp(-max, max);
    values.insert(values.end(), random.const_data_ptr<float>(),
                  random.const_data_ptr<float>() + random.numel());
    const size_t count = values.size();
    for (size_t i = 0; i < count; ++i) values.push_back(-values[i]);
    const at::Tensor codes =
        at::tensor(values)
            .to(type == Float8Type::kE4M3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2)
            .view(at::kByte);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(codes.const_data_ptr<uint8_t>()[i], EncodeFloat8(values[i], type))
          << values[i] << " as " << (type == Float8Type::kE4M3 ? "E4M3" : "E5M2");
    }
    // The tensor codec saturates where the cast alone gives NaN or infinity.
    const at::Tensor beyond = at::tensor({max * 1.5F, -max * 4, 3e38F});
    EXPECT_TRUE(Float8RoundTrip(beyond, at::ones({1}), type).equal(at::tensor({max, -max, max})));
  }
}

TEST(RowCodecs, LloydMax) {
  for (const LloydMaxForm form :
       {LloydMaxForm::kExact, LloydMaxForm::kServing, LloydMaxForm::kLlamaCpp}) {
    for (const int64_t dim : {64, 96, 128, 256, 80}) {
      for (const StoredFloat metadata :
           {StoredFloat::kFloat32, StoredFloat::kBFloat16, StoredFloat::kFloat16}) {
        const at::Tensor rows = Rows(dim);
        ExpectRows(rows, LloydMaxRoundTrip(rows, form, metadata),
                   [&](std::span<const float> x, std::span<float> y) {
                     std::vector<uint8_t> codes(x.size());
                     std::vector<float> numbers(
                         2 * x.size() / static_cast<size_t>(LloydMaxGroupsOf(form, dim).scale));
                     EncodeLloydMax<float>(x, form, metadata, codes, numbers);
                     DecodeLloydMax<float>(codes, numbers, form, y);
                   });
      }
    }
  }
}

TEST(RowCodecs, Sphere) {
  for (const int64_t dim : {64, 128, 80}) {
    for (int bits = 0; bits <= 4; ++bits) {
      for (const bool norm_correction : {false, true}) {
        if (bits == 0 && norm_correction) continue;
        for (const StoredFloat norm : {StoredFloat::kFloat16, StoredFloat::kFloat32}) {
          const SphereRule rule{SphereLevels(bits, dim), norm_correction, norm};
          const at::Tensor rows = Rows(dim);
          ExpectRows(rows, SphereRoundTrip(rows, rule),
                     [&](std::span<const float> x, std::span<float> y) {
                       std::vector<uint8_t> codes(x.size());
                       const float stored = EncodeSphere<float>(x, rule, codes);
                       DecodeSphere<float>(codes, stored, rule, y);
                     });
        }
      }
    }
  }
}

// S holds small whole numbers, so products with it hardly depend on the order of summation.
TEST(RowCodecs, Product) {
  constexpr int64_t kDim = 64;
  at::manual_seed(3);
  const at::Tensor s = at::randint(-4, 5, {kDim, kDim}, at::kFloat);
  for (int bits = 1; bits <= 4; ++bits) {
    const SphereRule rule{SphereLevels(bits - 1, kDim)};
    const at::Tensor rows = Rows(kDim).to(at::kDouble);
    const at::Tensor actual = ProductRoundTrip(rows, rule, s.to(at::kDouble));
    const at::Tensor wide = s.to(at::kDouble).contiguous();
    const std::span<const double> matrix(wide.const_data_ptr<double>(), kDim * kDim);
    std::vector<double> y(kDim);
    std::vector<uint8_t> codes(kDim), signs(kDim);
    for (int64_t row = 0; row < rows.size(0); ++row) {
      const std::span<const double> x(rows[row].const_data_ptr<double>(), kDim);
      const auto norms = EncodeProduct<double>(x, rule, matrix, codes, signs);
      DecodeProduct<double>(codes, signs, norms, rule, matrix, y);
      const at::Tensor expected = at::tensor(y, at::kDouble);
      // In these rows some products with S are 0 up to rounding, so either sign is correct.
      if (row == 1 || row == 11 || row == 7 || row == 10) continue;
      ASSERT_LE((actual[row] - expected).abs().max().item<double>(), 1e-12 * norms.norm)
          << bits << " bits, row " << row;
    }
  }
}

}  // namespace
}  // namespace oscar
