// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the arithmetic of the cache layout. Needs no GPU.
#include "export/cuda/cache/cache_format.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "export/cuda/cache/cache_view.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

TEST(CacheFormat, EveryBitOfAPlaneHoldsOneCodeBit) {
  for (int dim = kMinCacheDim; dim <= kMaxCacheDim; dim += 32) {
    for (const int plane_bits : {1, 2}) {
      for (const CacheOrder order : {CacheOrder::kKeys, CacheOrder::kValues}) {
        const int words = PlaneWords(dim, plane_bits);
        std::set<int> bits;
        for (int t = 0; t < kTileTokens; ++t) {
          for (int d = 0; d < dim; ++d) {
            const CodePlace place = PlaceOfCode(order, dim, plane_bits, t, d);
            ASSERT_TRUE(place.lane >= 0 && place.lane < 32 && place.word >= 0 &&
                        place.word < words && place.bit >= 0 && place.bit + plane_bits <= 32)
                << fmt::format("dim {} token {} value {}", dim, t, d);
            for (int bit = 0; bit < plane_bits; ++bit)
              bits.insert(8 * WordByte(words, place.lane, place.word) + place.bit + bit);
          }
        }
        ASSERT_EQ(static_cast<int>(bits.size()), kTileTokens * dim * plane_bits);
        ASSERT_LT(*bits.rbegin(), 8 * PlaneBytes(dim, plane_bits));
        // 1-bit planes leave half a word unused if the dim is not a multiple of 64.
        if (plane_bits == 2 || dim % 64 == 0) {
          ASSERT_EQ(kTileTokens * dim * plane_bits, 8 * PlaneBytes(dim, plane_bits));
        }
      }
    }
  }
}

TEST(CacheFormat, RecordsAreAligned) {
  for (int dim = kMinCacheDim; dim <= kMaxCacheDim; dim += 32) {
    for (const int k_bits : {2, 3, 4}) {
      for (const int v_bits : {2, 3, 4}) {
        for (const int group : {dim, 64, 32}) {
          for (const MetadataType type : {MetadataType::kFloat32, MetadataType::kBFloat16}) {
            const CacheFormat format{{dim, k_bits, group}, {128, v_bits, 128}, type, 64};
            if (!IsValid(format)) continue;
            EXPECT_EQ(VCodesOffset(format) % 128, 0);
            EXPECT_EQ(KMetadataOffset(format) % 128, 0);
            EXPECT_EQ(VMetadataOffset(format) % 64, 0);
            EXPECT_EQ(RecordBytes(format) % 64, 0);
          }
        }
      }
    }
  }
  // Counted by hand: 80 bytes per token and head, or 72 with bf16 metadata.
  const CacheFormat qwen;
  EXPECT_EQ(RecordBytes(qwen), 16 * 80);
  EXPECT_EQ(RecordBytes({{}, {}, MetadataType::kBFloat16, 128}), 16 * 72);
  EXPECT_EQ(PageBytes(qwen, 8), 8 * 8 * 16 * 80);
}

std::vector<uint32_t> Plane(CacheOrder order, int dim, int plane_bits, int t, int d,
                            uint32_t code) {
  std::vector<uint32_t> words(static_cast<size_t>(PlaneBytes(dim, plane_bits) / 4));
  const CodePlace place = PlaceOfCode(order, dim, plane_bits, t, d);
  words[static_cast<size_t>(WordByte(PlaneWords(dim, plane_bits), place.lane, place.word) / 4)] =
      code << place.bit;
  return words;
}

// Compares places of scales with ones computed by hand. The zero follows its scale. Byte metadata
// of token t is next to that of token t + 8.
TEST(CacheFormat, PlacesOfScales) {
  const PagedSide quarters{128, 2, 32};
  for (const MetadataType type : {MetadataType::kFloat32, MetadataType::kBFloat16}) {
    EXPECT_EQ(MetadataIndex(quarters, type, 0, 0), 0);
    EXPECT_EQ(MetadataIndex(quarters, type, 9, 2), 82);  // 2 * (2 * 16 + 9)
  }
  EXPECT_EQ(MetadataIndex(quarters, MetadataType::kByte, 0, 0), 0);
  EXPECT_EQ(MetadataIndex(quarters, MetadataType::kByte, 8, 0), 2);
  EXPECT_EQ(MetadataIndex(quarters, MetadataType::kByte, 0, 1), 4);
  EXPECT_EQ(MetadataIndex(quarters, MetadataType::kByte, 9, 2), 26);  // 4 * (1 * 4 + 2) + 2
  EXPECT_EQ(MetadataIndex({64, 2, 64}, MetadataType::kByte, 15, 0), 30);
}

TEST(CacheFormat, LiteralPlaces) {
  const auto only = [](const std::vector<uint32_t>& words, size_t byte, uint8_t value) {
    std::vector<uint8_t> bytes(4 * words.size());
    std::memcpy(bytes.data(), words.data(), bytes.size());
    std::vector<uint8_t> expected(bytes.size());
    expected[byte] = value;
    return bytes == expected;
  };
  const auto k = CacheOrder::kKeys;
  const auto v = CacheOrder::kValues;
  // At dim 128, lane l has bytes 16 l to 16 l + 15.
  EXPECT_TRUE(only(Plane(k, 128, 2, 0, 0, 3), 0, 0x03));
  EXPECT_TRUE(only(Plane(k, 128, 2, 0, 1, 3), 2, 0x03));   // the other half of the word
  EXPECT_TRUE(only(Plane(k, 128, 2, 0, 2, 1), 16, 0x01));  // lane 1
  EXPECT_TRUE(only(Plane(k, 128, 2, 1, 0, 1), 64, 0x01));  // lane 4
  EXPECT_TRUE(only(Plane(k, 128, 2, 0, 40, 2), 1, 0x08));  // step 5: bits 10 and 11
  EXPECT_TRUE(only(Plane(k, 128, 2, 0, 64, 1), 4, 0x01));  // step 8: word 1
  EXPECT_TRUE(only(Plane(k, 128, 2, 15, 127, 3), 16 * 31 + 15, 0xC0));
  EXPECT_TRUE(only(Plane(v, 128, 2, 1, 0, 3), 2, 0x03));
  EXPECT_TRUE(only(Plane(v, 128, 2, 2, 0, 1), 16, 0x01));
  EXPECT_TRUE(only(Plane(v, 128, 2, 0, 1, 1), 64, 0x01));
  EXPECT_TRUE(only(Plane(v, 128, 2, 9, 17, 2), 16 * 4 + 2 + 8, 0x20));  // step 16 + 2
  // At dim 96, a lane has 3 words, in chunks of 4 bytes.
  EXPECT_TRUE(only(Plane(k, 96, 2, 8, 0, 1), 128 + 1, 0x01));  // step 12: word 1, bit 8
  // The 1-bit plane of dim 128 has two words; steps 0, 4, 8, 12 are bits 0, 1, 8, 9.
  EXPECT_TRUE(only(Plane(k, 128, 1, 0, 8, 1), 0, 0x04));
  EXPECT_TRUE(only(Plane(k, 128, 1, 0, 32, 1), 0, 0x02));
  EXPECT_TRUE(only(Plane(k, 128, 1, 0, 64, 1), 1, 0x01));
  EXPECT_TRUE(only(Plane(k, 128, 1, 0, 105, 1), 3, 0x08));
  EXPECT_TRUE(only(Plane(k, 128, 1, 8, 0, 1), 4, 0x01));
}

TEST(CacheView, RefusesWhatNoKernelSupports) {
  CacheView view;
  EXPECT_NO_THROW(CheckCacheView(view));
  const auto refused = [&](auto change) {
    CacheView bad = view;
    change(bad);
    EXPECT_THROW(CheckCacheView(bad), UsageError);
  };
  refused([](CacheView& c) { c.format.k.dim = 80; });
  refused([](CacheView& c) { c.format.v.dim = 544; });
  refused([](CacheView& c) { c.format.k.bits = 5; });
  refused([](CacheView& c) { c.format.v.quant_group_size = 16; });
  refused([](CacheView& c) { c.format.k = {96, 2, 64}; });
  refused([](CacheView& c) { c.format.page_tokens = 32; });
  refused([](CacheView& c) { c.num_kv_heads = 0; });
  refused([](CacheView& c) { c.sink_tokens = 8; });
  refused([](CacheView& c) { c.recent_slots = 100; });
}

}  // namespace
}  // namespace oscar
