// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that a write with error feedback equals the scalar codec in every byte, given the same
// rotated rows. The cases vary shape, clipping, sides, requests and chunks, and have rows that
// break codecs. A planted error in one factor must be detected.
#include <cmath>
#include <random>

#include "export/cuda/reference/device_factors.h"
#include "tests/export/cuda/write_test_cache.h"

namespace oscar {
namespace {

using Random = std::mt19937_64;

int Pick(Random& random, std::initializer_list<int> values) {
  return values.begin()[random() % values.size()];
}

// Returns one factor per head: dense, banded, with only extreme values, or zero.
std::vector<Matrix> RandomFactors(Random& random, int heads, int dim) {
  std::vector<Matrix> factors;
  for (int head = 0; head < heads; ++head) {
    const double unit = std::exp2(static_cast<double>(random() % 6) - 11);
    Matrix factor = Matrix::Zero(dim, dim);
    const int kind = static_cast<int>(random() % 4);
    for (int j = 1; j < dim; ++j) {
      for (int i = 0; i < j; ++i) {
        const auto integer = static_cast<double>(static_cast<int>(random() % 255) - 127);
        if (kind == 0 || (kind == 1 && j - i < 20)) factor(i, j) = unit * integer;
        if (kind == 2 && random() % 4 == 0) factor(i, j) = integer > 0 ? unit * 127 : unit * -127;
      }
    }
    factors.push_back(factor);
  }
  return factors;
}

// Returns rows [tokens, heads, dim] of many kinds: Gaussian, with outliers, constant, with few
// values, with constant groups, far from zero, tiny, huge, and rows that cannot be stored.
Bf16Rows FeedbackRows(Random& random, int tokens, int heads, int dim) {
  std::normal_distribution<float> normal;
  Bf16Rows rows;
  for (int row = 0; row < tokens * heads; ++row) {
    const auto kind = random() % 24;
    for (int d = 0; d < dim; ++d) {
      float x = normal(random);
      if (kind == 0) x = 3;
      if (kind == 1) x = 0;
      if (kind == 2) x = static_cast<float>(random() % 4) - 1.5F;
      if (kind == 3 && random() % 16 == 0) x *= 40;
      if (kind == 4 && d % 64 < 32) x = -0.75F;
      if (kind == 5) x += 200;
      if (kind == 6) x *= 1e-9F;
      if (kind == 7) x *= 1e30F;
      if (kind == 8 && d == dim / 2) x = 1e30F;
      if (kind == 9 && d == dim - 1) x = NAN;
      if (kind == 10 && d == 0) x = -INFINITY;
      if (kind == 11) x *= 1e38F;
      rows.push_back(__float2bfloat16(x));
    }
  }
  return rows;
}

struct FedSide {
  FedSide(Random& random, const PagedSide& shape, int tokens, int heads, bool with_feedback)
      : paged(shape),
        row(static_cast<size_t>(heads * shape.dim)),
        x(FeedbackRows(random, tokens, heads, shape.dim)),
        rotated(x.size()),
        factors(RandomFactors(random, heads, shape.dim)),
        fed(with_feedback) {
    std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(shape.dim)));
    Bf16Rows matrix;
    for (int i = 0; i < heads * shape.dim * shape.dim; ++i)
      matrix.push_back(__float2bfloat16(normal(random)));
    rotation = DeviceArray<__nv_bfloat16>(matrix);
  }
  PagedSide paged;
  size_t row;  // values per token
  DeviceArray<__nv_bfloat16> x, rotated, rotation;
  DeviceFactors factors;
  bool fed;
};

void RunCase(int seed) {
  Random random(static_cast<uint64_t>(seed));
  const bool quarters = random() % 3 == 0;  // groups as in the choice for `any`
  const auto shape_of = [&]() -> PagedSide {
    // Half of the shapes have specialized kernels.
    if (random() % 2 == 0) return {128, 2, quarters ? 32 : 128};
    const int dim = Pick(random, {64, 96, 128, 128, 192, 256, 512});
    const int group = Pick(random, {dim, 64, 32, dim / 4});
    return {dim, Pick(random, {2, 2, 3, 4}),
            dim % group == 0 && (group != dim / 4 || HasQuarters(dim)) ? group : dim};
  };
  WriteTestShape shape;
  shape.format.k = shape_of();
  shape.format.v = random() % 2 == 0 ? shape.format.k : shape_of();
  shape.format.metadata =
      std::initializer_list<MetadataType>{MetadataType::kFloat32, MetadataType::kFloat32,
                                          MetadataType::kBFloat16, MetadataType::kByte}
          .begin()[quarters ? 3 : random() % 4];
  shape.format.page_tokens = Pick(random, {16, 64, 128});
  shape.num_kv_heads = Pick(random, {1, 2, 3});
  const int heads = shape.num_kv_heads, requests = Pick(random, {1, 1, 2, 3});
  // Prompts arrive in chunks. Each chunk adds tokens to every request and quantizes more of them.
  const int chunks = Pick(random, {1, 1, 2, 3});
  std::vector<std::vector<int>> lengths(1, std::vector<int>(static_cast<size_t>(requests)));
  for (int chunk = 0; chunk < chunks; ++chunk) {
    lengths.push_back(lengths.back());
    for (int& length : lengths.back()) length += 1 + static_cast<int>(random() % 150);
  }
  const auto quantized_of = [&](std::vector<int> of) {
    for (int& length : of) length = std::max(0, length - shape.sink_tokens - 24) / 8 * 8;
    return of;
  };
  shape.lengths = lengths.back();
  shape.quantized = quantized_of(shape.lengths);
  WriteTestCache cache(shape);
  int tokens = 0;
  for (const int length : shape.lengths) tokens += length;
  const int sides_fed = static_cast<int>(random() % 3);  // 0: keys, 1: values, 2: both
  const FedSide k(random, shape.format.k, tokens, heads, sides_fed != 1),
      v(random, shape.format.v, tokens, heads, sides_fed != 0);
  DeviceArray<uint32_t> bad(1);
  bad.Fill(0);
  WriteOptions options;
  options.clip_method = random() % 4 == 0 ? ClipMethod::kBisect : ClipMethod::kSort;
  options.bad_rows = bad.data();
  options.overlap_previous = random() % 2 == 0;
  const std::vector<double> ratios = {0.9, 0, 0.96};
  for (const auto& [side, write] : {std::pair(&k, &options.k), std::pair(&v, &options.v)}) {
    if (random() % 4 != 0) write->rotation = side->rotation.data();
    write->clip_ratio = std::initializer_list<double>{0, 0.5, 0.92, 0.96}.begin()[random() % 4];
    if (random() % 3 == 0) write->head_clip_ratios = std::span(ratios).first(heads);
    write->scales = static_cast<ScaleFit>(
        quarters ? 1 + random() % 2 : std::max<int>(0, static_cast<int>(random() % 5) - 2));
    if (!side->fed) continue;
    side->factors.Give(*write);
    cache.SetFeedback(side == &v, side->factors.values);
  }

  // The rotated rows of each side and request, by position. A row in a window is needed again when
  // a flush quantizes it.
  std::vector<std::vector<Bf16Rows>> seen(2, std::vector<Bf16Rows>(shape.lengths.size()));
  const auto expect = [&](int request, int position) {
    const auto at = [&](const FedSide& side) {
      return &seen[&side == &v ? 1 : 0][static_cast<size_t>(request)]
                  [static_cast<size_t>(position) * side.row];
    };
    cache.Expect(request, position, at(k), at(v), options);
  };
  int rows_before = 0;
  for (size_t chunk = 1; chunk < lengths.size(); ++chunk) {
    const std::vector<int>&begin = lengths[chunk - 1], &end = lengths[chunk];
    const std::vector<int> before = quantized_of(begin), after = quantized_of(end);
    std::vector<int> moved;
    for (size_t r = 0; r < begin.size(); ++r)
      moved.push_back(std::max(before[r], std::min(after[r], begin[r] - shape.sink_tokens)));
    cache.SetCounters(begin, moved);
    const DeviceArray<int32_t> quantized_before(std::vector<int32_t>(before.begin(), before.end()));
    FlushWindows(cache.view(), options, quantized_before.data(), 32, nullptr);
    for (int r = 0; r < requests; ++r) {
      const auto i = static_cast<size_t>(r);
      for (int token = before[i]; token < moved[i]; ++token) expect(r, shape.sink_tokens + token);
    }
    std::vector<int32_t> row_begin = {0};
    for (size_t r = 0; r < begin.size(); ++r)
      row_begin.push_back(row_begin.back() + end[r] - begin[r]);
    const DeviceArray<int32_t> rows(row_begin),
        positions(std::vector<int32_t>(begin.begin(), begin.end()));
    cache.SetCounters(end, after);
    options.rotated_k = k.rotated.data();
    options.rotated_v = v.rotated.data();
    WritePrefill(cache.view(), options,
                 {k.x.data() + rows_before * k.row, v.x.data() + rows_before * v.row,
                  row_begin.back(), rows.data(), positions.data()},
                 nullptr);
    for (const FedSide* side : {&k, &v}) {
      const Bf16Rows rotated = side->rotated.ToHost();
      for (size_t r = 0; r < begin.size(); ++r) {
        Bf16Rows& of_request = seen[side == &v ? 1 : 0][r];
        of_request.insert(of_request.end(), rotated.begin() + row_begin[r] * side->row,
                          rotated.begin() + row_begin[r + 1] * side->row);
      }
    }
    for (int r = 0; r < requests; ++r) {
      const auto i = static_cast<size_t>(r);
      for (int p = begin[i]; p < end[i]; ++p) expect(r, p);
    }
    rows_before += row_begin.back();
    ASSERT_TRUE(cache.Matches()) << "case " << seed << ", chunk " << chunk << ", K " << k.paged.dim
                                 << " x " << k.paged.bits << ", V " << v.paged.dim << " x "
                                 << v.paged.bits;
  }
  EXPECT_EQ(bad.ToHost()[0], static_cast<uint32_t>(cache.bad_rows())) << "case " << seed;
}

TEST(WriteFeedback, EqualsTheScalarCodecInRandomCases) {
  for (int seed = 0; seed < 300 && !HasFatalFailure(); ++seed) RunCase(seed);
}

// The comparison must detect one wrong number in a factor, the last of its last column.
TEST(WriteFeedback, IsToldFromANeighbour) {
  constexpr int kDim = 128, kTokens = 16 + 16 * 200 + 32;
  WriteTestShape shape;
  shape.num_kv_heads = 1;
  shape.lengths = {kTokens};
  shape.quantized = {16 * 200};
  const std::vector<float> none(kDim * kDim);
  const Bf16Rows rows = RandomBf16(kTokens * kDim, 3);
  Bf16Rows identity(kDim * kDim);
  for (size_t i = 0; i < kDim; ++i) identity[i * kDim + i] = __float2bfloat16(1);
  const DeviceArray<__nv_bfloat16> x(rows), rotation(identity);
  const DeviceArray<int32_t> row_begin(std::vector<int32_t>{0, kTokens});
  DeviceArray<uint32_t> bad(1);
  bad.Fill(0);
  for (const bool rotated : {false, true}) {  // selects the kernel
    for (const bool planted : {false, true}) {
      WriteTestCache cache(shape);
      Matrix factor = Matrix::Zero(kDim, kDim);
      if (planted) factor(kDim - 2, kDim - 1) = 0.0625;
      const PackedFeedback packed = PackFeedbackFactor(factor);
      const DeviceArray<int8_t> columns(packed.columns);
      const DeviceArray<float> unit(std::vector<float>{packed.unit});
      WriteOptions options;
      options.bad_rows = bad.data();
      options.k = options.v = {.rotation = rotated ? rotation.data() : nullptr,
                               .per_head = false,
                               .clip_ratio = 0.96,
                               .feedback = columns.data(),
                               .feedback_units = unit.data()};
      cache.SetFeedback(false, none);
      cache.SetFeedback(true, none);
      WritePrefill(cache.view(), options, {x.data(), x.data(), kTokens, row_begin.data(), nullptr},
                   nullptr);
      for (int p = 0; p < kTokens; ++p)
        cache.Expect(0, p, &rows[static_cast<size_t>(p * kDim)],
                     &rows[static_cast<size_t>(p * kDim)], options);
      EXPECT_EQ(static_cast<bool>(cache.Matches()), !planted) << rotated;
    }
  }
}

}  // namespace
}  // namespace oscar
