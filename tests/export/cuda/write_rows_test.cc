// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests rows that break codecs: ties, constants, zeros of both signs, subnormals, one huge value,
// values at the ends of the range, NaN and infinity, and few distinct values at every clip rank.
#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "tests/export/cuda/write_test_cache.h"

namespace oscar {
namespace {

float FromBits(uint32_t bf16) { return std::bit_cast<float>(bf16 << 16); }

using Value = std::function<float(std::mt19937&, int d)>;

std::vector<Value> SpecialRows() {
  const auto pick = [](std::mt19937& r, std::vector<float> values) {
    return values[r() % values.size()];
  };
  const float step = 1.0F / 128;  // 1 + step is the bf16 after 1
  return {
      [](std::mt19937&, int) { return 0.0F; },
      [](std::mt19937&, int) { return -0.0F; },
      [=](std::mt19937& r, int) {
        return pick(r, {0.0F, -0.0F});
      },
      [](std::mt19937&, int) { return 3.0F; },
      [](std::mt19937&, int) { return -1e30F; },
      [=](std::mt19937& r, int) {
        return pick(r, {1, 1 + step});
      },
      [=](std::mt19937& r, int) {
        return pick(r, {-1, 1});
      },
      [=](std::mt19937& r, int) {
        return pick(r, {-1.5F, -0.5F, 0.5F, 1.5F});
      },
      [=](std::mt19937& r, int) {
        return pick(r, {-3, -2, -1, 0, 1, 2, 3});
      },
      [=](std::mt19937& r, int) {
        return pick(r, {0, 0.5F, 1, 1.5F, 2, 2.5F, 3});
      },
      [=](std::mt19937& r, int) {
        return pick(r, {0, 7.5F, 15, 0.5F, 1.5F, 14.5F});
      },
      [](std::mt19937& r, int) { return static_cast<float>(r() % 9) * 0.125F; },
      [](std::mt19937& r, int) { return FromBits(r() % 0x80); },  // subnormal
      [](std::mt19937& r, int) { return FromBits((r() % 0x100) | (r() % 2) << 15); },
      [](std::mt19937& r, int d) { return d == 5 ? 1e30F : static_cast<float>(r() % 100) * 0.01F; },
      [](std::mt19937& r, int d) { return d == 77 ? -1e20F : static_cast<float>(r() % 7); },
      [](std::mt19937& r, int d) {
        return d == 3 ? 1e3F : 100 + static_cast<float>(r() % 3) * 0.5F;
      },
      [=](std::mt19937& r, int) {
        return pick(r, {FromBits(0x7F7F), 1});
      },
      [=](std::mt19937& r, int) {
        return pick(r, {FromBits(0x7F7F), FromBits(0xFF7F)});
      },
      [=](std::mt19937& r, int) {
        return pick(r, {FromBits(0x7EFF), FromBits(0xFEFF), 1});
      },
      [](std::mt19937& r, int) { return FromBits(r() % 0x7F80 | (r() % 2) << 15); },
      [](std::mt19937& r, int) { return FromBits(0x3F00 + r() % 0x100); },
      [](std::mt19937& r, int) { return FromBits(0x3F80 + r() % 4 + ((r() % 2) << 15)); },
      [](std::mt19937& r, int) { return FromBits(0x3080 + r() % 0x200); },  // near the range floor
      [](std::mt19937& r, int) { return FromBits(0x3200 + r() % 0x100 + ((r() % 2) << 15)); },
      [](std::mt19937& r, int) { return 1000 + static_cast<float>(r() % 2) * 8; },
      [](std::mt19937& r, int d) { return d == 9 ? NAN : static_cast<float>(r() % 7); },
      [](std::mt19937& r, int d) { return d == 127 ? -INFINITY : static_cast<float>(r() % 7); },
      [](std::mt19937& r, int) { return std::normal_distribution<float>()(r); },
      [](std::mt19937& r, int d) {
        return std::normal_distribution<float>(0, std::exp2(-static_cast<float>(d % 64) / 4))(r);
      },
      [power = 1.0F](std::mt19937& r, int d) mutable {  // a different shape in each row
        if (d == 0) power = std::uniform_real_distribution<float>(0.2F, 2)(r);
        const float x = std::normal_distribution<float>()(r);
        return std::copysign(std::pow(std::abs(x), power), x);
      },
      [](std::mt19937& r, int d) { return d < 12 ? 50 + static_cast<float>(r() % 9) : 1; },
  };
}

struct RowsCase {
  PagedSide side;
  ClipMethod method;
  double ratio;
  MetadataType metadata = MetadataType::kFloat32;
  ScaleFit scales = ScaleFit::kRange;
};

class WriteRowsTest : public ::testing::TestWithParam<RowsCase> {};

TEST_P(WriteRowsTest, EqualTheScalarCodec) {
  const RowsCase& c = GetParam();
  const std::vector<Value> kinds = SpecialRows();
  WriteTestShape shape;
  shape.format = {c.side, c.side, c.metadata, 16};
  shape.num_kv_heads = 2;
  const int tokens = 16 + 16 * static_cast<int>(kinds.size());
  shape.lengths = {tokens};
  shape.quantized = {tokens - 16};
  WriteTestCache cache(shape);
  std::mt19937 random(5);
  const auto dim = static_cast<size_t>(c.side.dim);
  Bf16Rows rows(static_cast<size_t>(tokens) * 2 * dim);
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t token = i / (2 * dim);
    // In head 0, all rows of a tile are of one kind. In head 1, a tile mixes kinds.
    const size_t kind = i / dim % 2 == 0 ? token / 16 : token;
    rows[i] = __float2bfloat16(kinds[kind % kinds.size()](random, static_cast<int>(i % dim)));
  }
  const DeviceArray<__nv_bfloat16> x(rows);
  const DeviceArray<int32_t> row_begin(std::vector<int32_t>{0, tokens});
  DeviceArray<uint32_t> bad(1);
  bad.Fill(0);
  WriteOptions options;
  options.k.clip_ratio = options.v.clip_ratio = c.ratio;
  options.k.scales = options.v.scales = c.scales;
  options.clip_method = c.method;
  options.bad_rows = bad.data();
  WritePrefill(cache.view(), options, {x.data(), x.data(), tokens, row_begin.data(), nullptr},
               nullptr);
  for (int p = 0; p < tokens; ++p) {
    const __nv_bfloat16* row = &rows[static_cast<size_t>(p) * 2 * dim];
    cache.Expect(0, p, row, row, options);
  }
  EXPECT_TRUE(cache.Matches());
  EXPECT_GT(cache.bad_rows(), 0);
  EXPECT_EQ(bad.ToHost()[0], static_cast<uint32_t>(cache.bad_rows()));
}

std::vector<RowsCase> RowsCases() {
  std::vector<RowsCase> cases;
  for (const ClipMethod method : {ClipMethod::kSort, ClipMethod::kBisect}) {
    for (const double ratio : {0.0, 0.03, 0.5, 0.86, 0.92, 0.96, 0.995, 1.0}) {
      for (const int bits : {2, 3, 4}) cases.push_back({{128, bits, 128}, method, ratio});
      cases.push_back({{128, 2, 32}, method, ratio});
      cases.push_back({{128, 2, 64}, method, ratio, MetadataType::kBFloat16});
      cases.push_back({{256, 2, 256}, method, ratio});
      cases.push_back({{64, 2, 64}, method, ratio});
      for (const ScaleFit fit :
           {ScaleFit::kRange, ScaleFit::kUnbiased, ScaleFit::kUnbiasedRounded}) {
        cases.push_back({{128, 2, 32}, method, ratio, MetadataType::kByte, fit});
        cases.push_back({{64, 3, 16}, method, ratio, MetadataType::kByte, fit});
        cases.push_back({{256, 4, 256}, method, ratio, MetadataType::kByte, fit});
        cases.push_back({{128, 2, 128}, method, ratio, MetadataType::kBFloat16, fit});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Special, WriteRowsTest, ::testing::ValuesIn(RowsCases()));

}  // namespace
}  // namespace oscar
