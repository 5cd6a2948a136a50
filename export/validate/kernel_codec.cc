// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/kernel_codec.h"

#include <bit>
#include <cstring>

#include "linalg/affine_codec.h"
#include "linalg/affine_group.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

uint32_t ReadWord(const uint8_t* bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

float ReadMetadata(const uint8_t* values, MetadataType type, int index) {
  if (type == MetadataType::kFloat32) return std::bit_cast<float>(ReadWord(values + 4 * index));
  uint16_t bits;
  std::memcpy(&bits, values + 2 * index, sizeof bits);
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

int ReadCode(const uint8_t* plane, CacheOrder order, int dim, int plane_bits, int token, int d) {
  const CodePlace place = PlaceOfCode(order, dim, plane_bits, token, d);
  const int byte = WordByte(PlaneWords(dim, plane_bits), place.lane, place.word);
  return static_cast<int>(ReadWord(plane + byte) >> place.bit) & ((1 << plane_bits) - 1);
}

}  // namespace

void CodecAgreement::Add(const CodecAgreement& other) {
  codes += other.codes;
  differing_codes += other.differing_codes;
  differing_metadata += other.differing_metadata;
  differing_simulated += other.differing_simulated;
}

StoredRows ReadStoredRows(std::span<const uint8_t> pages, const CacheFormat& format,
                          int num_kv_heads, int head, CacheOrder order, int64_t tokens) {
  const bool keys = order == CacheOrder::kKeys;
  const PagedSide& side = keys ? format.k : format.v;
  const int codes_offset = keys ? KCodesOffset(format) : VCodesOffset(format);
  const int metadata_offset = keys ? KMetadataOffset(format) : VMetadataOffset(format);
  const int groups = GroupsPerRow(side), high_bits = side.bits - 2;
  const int tiles_per_page = format.page_tokens / kTileTokens;
  StoredRows rows{tokens, side.dim, groups, {}, {}};
  rows.codes.reserve(static_cast<size_t>(tokens * side.dim));
  rows.scales_zeros.reserve(static_cast<size_t>(tokens * groups * 2));
  for (int64_t token = 0; token < tokens; ++token) {
    const int64_t page = token / format.page_tokens;
    const int64_t tile = token % format.page_tokens / kTileTokens;
    const int t = static_cast<int>(token % kTileTokens);
    const int64_t at = page * PageBytes(format, num_kv_heads) +
                       (int64_t{head} * tiles_per_page + tile) * RecordBytes(format);
    OSCAR_CHECK(at + RecordBytes(format) <= static_cast<int64_t>(pages.size()));
    const uint8_t* record = pages.data() + at;
    const uint8_t* low = record + codes_offset;
    const uint8_t* high = low + PlaneBytes(side.dim, 2);
    for (int d = 0; d < side.dim; ++d) {
      int code = ReadCode(low, order, side.dim, 2, t, d);
      if (high_bits > 0) code |= ReadCode(high, order, side.dim, high_bits, t, d) << 2;
      rows.codes.push_back(static_cast<uint8_t>(code));
    }
    for (int group = 0; group < groups; ++group) {
      const int index = MetadataIndex(side, format.metadata, t, group);
      for (int part = 0; part < 2; ++part)
        rows.scales_zeros.push_back(
            ReadMetadata(record + metadata_offset, format.metadata, index + part));
    }
  }
  return rows;
}

std::vector<float> DequantizeRows(const StoredRows& rows) {
  std::vector<float> values(rows.codes.size());
  const int64_t group_size = rows.dim / rows.groups;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t group = i / static_cast<size_t>(group_size);
    const AffineGroup<float> affine{rows.scales_zeros[2 * group], rows.scales_zeros[2 * group + 1]};
    values[i] = AffineValue(rows.codes[i], affine);
  }
  return values;
}

CodecAgreement CompareWithCodec(const StoredRows& stored, const PagedSide& side,
                                MetadataType metadata, double clip_ratio,
                                std::span<const float> rotated, std::span<const float> simulated) {
  OSCAR_CHECK_EQ(rotated.size(), stored.codes.size());
  OSCAR_CHECK_EQ(simulated.size(), stored.codes.size());
  const AffineFormat format{side.bits, side.quant_group_size, metadata};
  const auto dim = static_cast<size_t>(stored.dim), pairs = static_cast<size_t>(2 * stored.groups);
  std::vector<uint8_t> codes(dim);
  std::vector<float> scales_zeros(pairs);
  const std::vector<float> values = DequantizeRows(stored);
  CodecAgreement agreement;
  agreement.codes = static_cast<int64_t>(stored.codes.size());
  for (size_t row = 0; row < static_cast<size_t>(stored.tokens); ++row) {
    ClipAndEncodeAffineRow(rotated.subspan(row * dim, dim), format, {clip_ratio, ClipMethod::kSort},
                           codes, scales_zeros);
    for (size_t d = 0; d < dim; ++d) {
      const size_t i = row * dim + d;
      agreement.differing_codes += codes[d] != stored.codes[i] ? 1 : 0;
      agreement.differing_simulated += values[i] != simulated[i] ? 1 : 0;
    }
    for (size_t i = 0; i < pairs; ++i) {
      const float found = stored.scales_zeros[row * pairs + i];
      agreement.differing_metadata +=
          std::bit_cast<uint32_t>(found) != std::bit_cast<uint32_t>(scales_zeros[i]) ? 1 : 0;
    }
  }
  return agreement;
}

}  // namespace oscar
