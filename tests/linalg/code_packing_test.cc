// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Bytes by hand.
#include "tests/reference/code_packing.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "tests/reference/int2_codec.h"

namespace oscar {
namespace {

using Bytes = std::vector<uint8_t>;
constexpr CodePacking kDense = CodePacking::kDense, kSliced = CodePacking::kSliced;

Bytes Pack(const Bytes& codes, int bits, CodePacking packing) {
  Bytes packed(static_cast<size_t>(PackedBytes(static_cast<int64_t>(codes.size()), bits)));
  PackCodes(codes, bits, packing, packed);
  return packed;
}

Bytes Counting(size_t count, uint8_t first, uint8_t modulus) {
  Bytes codes(count);
  for (size_t i = 0; i < count; ++i) codes[i] = static_cast<uint8_t>((first + i) % modulus);
  return codes;
}

TEST(CodePacking, PublishedBytes) {
  EXPECT_EQ(Pack({0, 1, 2, 3, 3, 2, 1, 0}, 2, kSliced), (Bytes{0x78, 0x2D}));  // P-quarter2
  EXPECT_EQ(Pack({1, 0, 0, 3}, 2, kSliced), (Bytes{0xC1}));
  EXPECT_EQ(Pack(Counting(8, 0, 8), 4, kSliced), (Bytes{0x40, 0x51, 0x62, 0x73}));  // P-half4
  EXPECT_EQ(Pack(Counting(8, 0, 8), 3, kDense), (Bytes{0x88, 0xC6, 0xFA}));         // P-le
  EXPECT_EQ(Pack(Counting(8, 0, 8), 4, kDense), (Bytes{0x10, 0x32, 0x54, 0x76}));   // P-pair4
}

TEST(CodePacking, PublishedWords) {
  const auto words = [](const Bytes& bytes) {
    std::vector<uint32_t> result(bytes.size() / 4);
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  };
  EXPECT_EQ(words(Pack(Counting(32, 0, 8), 3, kDense)),
            (std::vector<uint32_t>{0x88FAC688, 0xC688FAC6, 0xFAC688FA}));
  EXPECT_EQ(words(Pack(Counting(8, 1, 16), 4, kDense)), (std::vector<uint32_t>{0x87654321}));
}

TEST(CodePacking, TwoBitSlicesAreTheInt2Layout) {
  const Bytes codes = Counting(128, 0, 4);
  Bytes expected(32);
  PackCodes(codes, Int2Format{}, expected);
  EXPECT_EQ(Pack(codes, 2, kSliced), expected);
}

TEST(CodePacking, RoundTrips) {
  for (int bits = 1; bits <= 8; ++bits) {
    for (const CodePacking packing : {kDense, kSliced}) {
      if (packing == kSliced && 8 % bits != 0) continue;
      const Bytes codes = Counting(bits == 3 ? 77 : 128, 1, static_cast<uint8_t>((1 << bits) - 1));
      Bytes unpacked(codes.size());
      UnpackCodes(Pack(codes, bits, packing), bits, packing, unpacked);
      EXPECT_EQ(unpacked, codes) << bits;
    }
  }
}

}  // namespace
}  // namespace oscar
