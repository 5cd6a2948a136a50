// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares codes and metadata unpacked from pages with those of linalg.
#include "export/cuda/reference/unpack_pages.h"

#include <algorithm>

#include "linalg/affine_codec.h"
#include "tests/export/cuda/write_test_cache.h"

namespace oscar {
namespace {

constexpr int kHeads = 2;
constexpr int kTokens = 150;  // 16 sinks and 134 quantized tokens; the last tile has 6

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
  // Computes codes and metadata of one quantized row with linalg.
  void Reference(bool values, int64_t token, int head, std::vector<uint8_t>& codes,
                 std::vector<float>& scales_zeros) const {
    const CacheFormat& format = cache.view().format;
    const PagedSide& side = values ? format.v : format.k;
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

}  // namespace
}  // namespace oscar
