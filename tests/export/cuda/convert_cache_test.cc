// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Pages to plain codes and to upstream's layout and back, against linalg's codes and packing.
#include "export/cuda/convert/convert_cache.h"

#include <algorithm>
#include <cstring>

#include "linalg/int2_codec.h"
#include "tests/export/cuda/write_test_cache.h"

namespace oscar {
namespace {

constexpr int kHeads = 2;
constexpr int kTokens = 150;  // all but the sinks are quantized: 134 and the tail of 6 more

struct Written {
  explicit Written(const CacheFormat& format)
      : cache({format, kHeads, {kTokens}, {kTokens - 16}, 16, 32}),
        k(RandomBf16(static_cast<size_t>(kTokens * kHeads * format.k.dim), 1)),
        v(RandomBf16(static_cast<size_t>(kTokens * kHeads * format.v.dim), 2)) {
    const DeviceArray<__nv_bfloat16> k_device(k), v_device(v);
    const DeviceArray<int32_t> row_begin(std::vector<int32_t>{0, kTokens});
    DeviceArray<uint32_t> bad(1);
    bad.Fill(0);
    WriteOptions options;
    options.bad_rows = bad.data();
    WritePrefill(cache.view(), options,
                 {k_device.data(), v_device.data(), kTokens, row_begin.data(), nullptr}, nullptr);
    for (int p = 0; p < kTokens; ++p)
      cache.Expect(0, p, &k[static_cast<size_t>(p * kHeads * format.k.dim)],
                   &v[static_cast<size_t>(p * kHeads * format.v.dim)], options);
    EXPECT_TRUE(cache.Matches());
  }
  // Codes and metadata of one quantized row by linalg.
  void Reference(bool values, int64_t token, int head, std::vector<uint8_t>& codes,
                 std::vector<float>& scales_zeros) const {
    const CacheFormat& format = cache.view().format;
    const CacheSide& side = values ? format.v : format.k;
    const size_t row = static_cast<size_t>((16 + token) * kHeads + head);
    const std::vector<float> x =
        ToFloats(&(values ? v : k)[row * static_cast<size_t>(side.dim)], side.dim);
    codes.resize(static_cast<size_t>(side.dim));
    scales_zeros.resize(static_cast<size_t>(2 * GroupsPerRow(side)));
    EncodeAffineRow(x, {side.bits, side.quant_group_size, format.metadata}, codes, scales_zeros);
  }
  WriteTestCache cache;
  Bf16Rows k, v;
};

TEST(UnpackPages, GivesTheCodes) {
  for (const int bits : {2, 3, 4}) {
    for (const int dim : {96, 128}) {
      CacheFormat format{{dim, bits, 32}, {dim, 6 - bits, dim}, MetadataType::kBFloat16, 64};
      const Written written(format);
      const int64_t begin = 5;
      const int64_t count = 121;
      const auto rows = static_cast<size_t>(count * kHeads);
      DeviceArray<uint8_t> codes[2] = {DeviceArray<uint8_t>(rows * dim),
                                       DeviceArray<uint8_t>(rows * dim)};
      DeviceArray<float> metadata[2] = {DeviceArray<float>(rows * 2 * (dim / 32)),
                                        DeviceArray<float>(rows * 2)};
      UnpackPages(written.cache.view(), 0, begin, count,
                  {codes[0].data(), codes[1].data(), metadata[0].data(), metadata[1].data()},
                  nullptr);
      for (const bool values : {false, true}) {
        const std::vector<uint8_t> actual = codes[values ? 1 : 0].ToHost();
        const std::vector<float> scales_zeros = metadata[values ? 1 : 0].ToHost();
        std::vector<uint8_t> expected;
        std::vector<float> expected_metadata;
        for (size_t row = 0; row < rows; ++row) {
          written.Reference(values, begin + static_cast<int64_t>(row) / kHeads,
                            static_cast<int>(row) % kHeads, expected, expected_metadata);
          ASSERT_TRUE(std::equal(expected.begin(), expected.end(), &actual[row * dim])) << row;
          ASSERT_TRUE(std::equal(expected_metadata.begin(), expected_metadata.end(),
                                 &scales_zeros[row * expected_metadata.size()]))
              << row;
        }
      }
    }
  }
}

TEST(TokenMajor, RoundTripThroughPackCodes) {
  for (const int dim : {64, 96, 128, 256}) {
    const CacheFormat format{{dim, 2, 32}, {dim, 2, dim}, MetadataType::kFloat32, 64};
    const Written written(format);
    const int64_t count = kTokens - 16;
    const int slots = 200;
    std::vector<int64_t> slot_of(static_cast<size_t>(count));
    for (size_t i = 0; i < slot_of.size(); ++i) slot_of[i] = static_cast<int64_t>(i * 37 % slots);
    const DeviceArray<int64_t> slot_device(slot_of);
    const size_t rows = slots * kHeads;
    DeviceArray<uint8_t> k_codes(rows * dim / 4), v_codes(rows * dim / 4);
    DeviceArray<float> k_metadata(rows * 2 * (dim / 32)), v_metadata(rows * 2);
    const TokenMajorRows token_major{k_codes.data(), v_codes.data(), k_metadata.data(),
                                     v_metadata.data(), slot_device.data()};
    PagesToTokenMajor(written.cache.view(), 0, 0, count, token_major, nullptr);
    for (const bool values : {false, true}) {
      const std::vector<uint8_t> packed = (values ? v_codes : k_codes).ToHost();
      const std::vector<float> metadata = (values ? v_metadata : k_metadata).ToHost();
      std::vector<uint8_t> codes, expected(static_cast<size_t>(dim / 4));
      std::vector<float> scales_zeros;
      for (int64_t token = 0; token < count; ++token) {
        for (int head = 0; head < kHeads; ++head) {
          written.Reference(values, token, head, codes, scales_zeros);
          PackCodes(codes, {.head_dim = dim, .quant_group_size = dim}, expected);
          const size_t row =
              static_cast<size_t>(slot_of[static_cast<size_t>(token)] * kHeads + head);
          ASSERT_TRUE(std::equal(expected.begin(), expected.end(), &packed[row * dim / 4]));
          ASSERT_TRUE(std::equal(scales_zeros.begin(), scales_zeros.end(),
                                 &metadata[row * scales_zeros.size()]));
        }
      }
    }
    // Back into an empty cache in two pieces that share a tile; tails of words stay as they were.
    WriteTestCache copy({format, kHeads, {kTokens}, {kTokens - 16}, 16, 32});
    TokenMajorToPages(copy.view(), 0, 0, 53, token_major, nullptr);
    TokenMajorRows rest = token_major;
    rest.slots += 53;
    TokenMajorToPages(copy.view(), 0, 53, count - 53, rest, nullptr);
    DeviceArray<uint8_t> again(k_codes.size());
    DeviceArray<uint8_t> again_v(v_codes.size());
    DeviceArray<float> again_metadata(k_metadata.size()), again_metadata_v(v_metadata.size());
    again.Fill(0);
    const TokenMajorRows second{again.data(), again_v.data(), again_metadata.data(),
                                again_metadata_v.data(), slot_device.data()};
    PagesToTokenMajor(copy.view(), 0, 0, count, second, nullptr);
    const std::vector<uint8_t> a = k_codes.ToHost(), b = again.ToHost();
    const std::vector<float> c = v_metadata.ToHost(), d = again_metadata_v.ToHost();
    for (const int64_t slot : slot_of) {
      const size_t row = static_cast<size_t>(slot * kHeads);
      ASSERT_TRUE(
          std::equal(&a[row * dim / 4], &a[row * dim / 4] + kHeads * dim / 4, &b[row * dim / 4]));
      ASSERT_EQ(c[row * 2], d[row * 2]);
    }
  }
}

}  // namespace
}  // namespace oscar
