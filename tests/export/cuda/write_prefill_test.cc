// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that WritePrefill's pages and windows equal linalg's in every byte, given the same rotated
// bf16 rows, and that these rows are x R within rounding.

#include <cmath>

#include "tests/export/cuda/write_test_cache.h"

namespace oscar {
namespace {

enum class Rotations { kNone, kShared, kPerHead, kKeysOnly };

struct PrefillCase {
  PagedSide k, v;
  int page_tokens = 64;
  MetadataType metadata = MetadataType::kFloat32;
  ClipMethod method = ClipMethod::kSort;
  double k_clip = 0.96, v_clip = 0.92;
  Rotations rotations = Rotations::kPerHead;
  std::vector<int> lengths = {203};
  std::vector<int> quantized = {168};
  int heads = 3;
};

// Returns the largest |y - x R|, divided by its bound for bf16 rounding and float32 sums.
double WorstRotation(const Bf16Rows& x, const Bf16Rows& y, const Bf16Rows& r, bool per_head,
                     int heads, int dim) {
  double worst = 0;
  const size_t rows = x.size() / static_cast<size_t>(dim);
  for (size_t row = 0; row < rows; ++row) {
    const size_t head = row % static_cast<size_t>(heads);
    const __nv_bfloat16* matrix = r.data() + (per_head ? head * dim * dim : 0);
    for (int j = 0; j < dim; j += 7) {
      double sum = 0;
      double magnitude = 0;
      for (int i = 0; i < dim; ++i) {
        const double term = double{__bfloat162float(x[row * dim + i])} *
                            double{__bfloat162float(matrix[i * dim + j])};
        sum += term;
        magnitude += std::abs(term);
      }
      const double error = std::abs(double{__bfloat162float(y[row * dim + j])} - sum);
      worst = std::max(worst, error / (std::abs(sum) / 256 + magnitude * 1e-5 + 1e-30));
    }
  }
  return worst;
}

class WritePrefillTest : public ::testing::TestWithParam<PrefillCase> {};

TEST_P(WritePrefillTest, EqualsTheScalarCodec) {
  const PrefillCase& c = GetParam();
  const int heads = c.heads;
  WriteTestShape shape;
  shape.format = {c.k, c.v, c.metadata, c.page_tokens};
  shape.num_kv_heads = heads;
  shape.lengths = c.lengths;
  shape.quantized = c.quantized;
  WriteTestCache cache(shape);
  std::vector<int32_t> row_begin = {0};
  for (const int length : c.lengths) row_begin.push_back(row_begin.back() + length);
  const auto tokens = static_cast<size_t>(row_begin.back());
  const size_t k_size = tokens * heads * c.k.dim;
  const size_t v_size = tokens * heads * c.v.dim;
  const Bf16Rows k = RandomBf16(k_size, 11), v = RandomBf16(v_size, 12);
  const size_t matrices = c.rotations == Rotations::kShared ? 1 : heads;
  const Bf16Rows k_r = RandomBf16(matrices * c.k.dim * c.k.dim, 13, 1 / std::sqrt(c.k.dim));
  const Bf16Rows v_r = RandomBf16(matrices * c.v.dim * c.v.dim, 14, 1 / std::sqrt(c.v.dim));
  const DeviceArray<__nv_bfloat16> k_device(k), v_device(v), k_matrix(k_r), v_matrix(v_r);
  DeviceArray<__nv_bfloat16> k_out(k_size), v_out(v_size);
  k_out.Fill(0xFF);
  v_out.Fill(0xFF);
  const DeviceArray<int32_t> row_begin_device(row_begin);
  DeviceArray<uint32_t> bad(1);
  bad.Fill(0);

  WriteOptions options;
  const bool per_head = c.rotations != Rotations::kShared;
  const bool rotate_k = c.rotations != Rotations::kNone;
  const bool rotate_v = rotate_k && c.rotations != Rotations::kKeysOnly;
  options.k = {rotate_k ? k_matrix.data() : nullptr, per_head, c.k_clip};
  options.v = {rotate_v ? v_matrix.data() : nullptr, per_head, c.v_clip};
  options.clip_method = c.method;
  options.bad_rows = bad.data();
  options.rotated_k = k_out.data();
  options.rotated_v = v_out.data();
  PrefillTokens prefill;
  prefill.k = k_device.data();
  prefill.v = v_device.data();
  prefill.num_tokens = static_cast<int>(tokens);
  prefill.row_begin = row_begin_device.data();
  WritePrefill(cache.view(), options, prefill, nullptr);

  const Bf16Rows k_rotated = k_out.ToHost(), v_rotated = v_out.ToHost();
  if (rotate_k) {
    EXPECT_LE(WorstRotation(k, k_rotated, k_r, per_head, heads, c.k.dim), 1);
  }
  if (rotate_v) {
    EXPECT_LE(WorstRotation(v, v_rotated, v_r, per_head, heads, c.v.dim), 1);
  }
  for (int request = 0; request < cache.view().num_requests; ++request) {
    for (int p = 0; p < c.lengths[static_cast<size_t>(request)]; ++p) {
      const size_t row = static_cast<size_t>(row_begin[static_cast<size_t>(request)] + p) * heads;
      cache.Expect(request, p, &k_rotated[row * c.k.dim], &v_rotated[row * c.v.dim], options);
    }
  }
  EXPECT_TRUE(cache.Matches());
  EXPECT_EQ(bad.ToHost()[0], 0U);

  // A call that does not return the rotated rows writes the same pages.
  if (!rotate_k || !rotate_v) return;
  options.rotated_k = options.rotated_v = nullptr;
  WritePrefill(cache.view(), options, prefill, nullptr);
  EXPECT_TRUE(cache.Matches());
}

PagedSide Side(int dim, int bits, int group = 0) { return {dim, bits, group > 0 ? group : dim}; }

std::vector<PrefillCase> BitPairs() {
  std::vector<PrefillCase> cases;
  for (const int k : {2, 3, 4}) {
    for (const int v : {2, 3, 4}) cases.push_back({.k = Side(128, k), .v = Side(128, v)});
  }
  return cases;
}

std::vector<PrefillCase> Shapes() {
  std::vector<PrefillCase> cases;
  for (const int dim : {64, 96, 128, 160, 192, 256, 512}) {
    for (const int group : {0, 64, 32}) {
      if (group > 0 && dim % group != 0) continue;
      for (const MetadataType type : {MetadataType::kFloat32, MetadataType::kBFloat16}) {
        const int bits = 2 + (dim / 32 + group / 32) % 3;
        cases.push_back({.k = Side(dim, bits, group), .v = Side(dim, 2, group), .metadata = type});
        cases.push_back({.k = Side(dim, 2, group),
                         .v = Side(dim, bits, group),
                         .metadata = type,
                         .method = ClipMethod::kBisect});
      }
    }
  }
  cases.push_back({.k = Side(192, 2), .v = Side(128, 2)});
  cases.push_back({.k = Side(128, 3), .v = Side(64, 2, 32), .rotations = Rotations::kKeysOnly});
  return cases;
}

std::vector<PrefillCase> Options() {
  std::vector<PrefillCase> cases;
  const PrefillCase plain{.k = Side(128, 2), .v = Side(128, 2)};
  for (const Rotations rotations :
       {Rotations::kNone, Rotations::kShared, Rotations::kPerHead, Rotations::kKeysOnly}) {
    for (const ClipMethod method : {ClipMethod::kSort, ClipMethod::kBisect}) {
      for (const int page : {16, 64, 128}) {
        PrefillCase c = plain;
        c.rotations = rotations;
        c.method = method;
        c.page_tokens = page;
        cases.push_back(c);
      }
    }
  }
  for (const double ratio : {-1.0, 0.0, 0.01, 0.5, 0.7, 0.9, 0.99, 1.0, 2.0}) {
    for (const ClipMethod method : {ClipMethod::kSort, ClipMethod::kBisect}) {
      for (const int bits : {2, 4}) {
        PrefillCase c = plain;
        c.k.bits = bits;
        c.k_clip = c.v_clip = ratio;
        c.method = method;
        cases.push_back(c);
      }
    }
  }
  return cases;
}

// Returns cases with tails, whose lengths and quantized counts are not multiples of a tile, and
// cases with several requests.
std::vector<PrefillCase> Lengths() {
  std::vector<PrefillCase> cases;
  const auto add = [&](std::vector<int> lengths, std::vector<int> quantized) {
    for (const int dim : {96, 128}) {
      for (const int bits : {2, 3}) {
        cases.push_back({.k = Side(dim, bits),
                         .v = Side(dim, bits),
                         .page_tokens = 16,
                         .lengths = lengths,
                         .quantized = quantized});
      }
    }
  };
  add({1}, {0});
  add({16}, {0});
  add({17}, {0});
  add({47}, {8});
  add({48}, {0});
  add({120}, {96});
  add({121, 3, 77, 16, 200}, {80, 0, 40, 0, 184});
  add({64, 64, 64}, {32, 40, 48});
  // With 66 heads, a CTA writes all 68 blocks of a head. That is more than it plans at a time.
  cases.push_back({.k = Side(128, 2),
                   .v = Side(128, 2),
                   .page_tokens = 16,
                   .lengths = {4300},
                   .quantized = {4256},
                   .heads = 66});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(BitPairs, WritePrefillTest, ::testing::ValuesIn(BitPairs()));
INSTANTIATE_TEST_SUITE_P(Shapes, WritePrefillTest, ::testing::ValuesIn(Shapes()));
INSTANTIATE_TEST_SUITE_P(Options, WritePrefillTest, ::testing::ValuesIn(Options()));
INSTANTIATE_TEST_SUITE_P(Lengths, WritePrefillTest, ::testing::ValuesIn(Lengths()));

}  // namespace
}  // namespace oscar
