// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The byte format of the paged low-bit KV cache, for host and device. A tile is 16 tokens of one KV
// head, and its record is contiguous. In a plane of codes, every lane of a warp has its own words,
// which hold the codes that it feeds to mma.m16n8k16. So reading needs no shuffle. Trap: keys and
// values are ordered differently. Half-words hold neighbouring dims of K, but neighbouring tokens
// of V.
//
//   page    [num_kv_heads][page_tokens / 16] records
//   record  K low plane | K high plane | V low plane | V high plane | K metadata | V metadata
//
//   low plane      the low 2 bits of every code
//   high plane     1 bit of 3-bit codes or 2 bits of 4-bit codes; empty for 2-bit codes
//   metadata       [groups][16 tokens][scale, zero]
//   byte metadata  [8 tokens][groups][token, token + 8][scale, zero], so that one load gives a lane
//                  the metadata of its two tokens
//
// The place of a code, for token t of the tile and dimension D of the row:
//
//        lane                    half of a word   step n in [0, dim / 4)
//   K    4 (t % 8) + (D % 8)/2   D % 2            (t / 8) (dim / 8) + D / 8
//   V    4 (D % 8) + (t % 8)/2   t % 2            (t / 8) (dim / 8) + D / 8
//
//   2-bit plane  word n / 8 of the lane, bit 16 half + 2 (n % 8)
//   1-bit plane  word n / 16, bit 16 half + 8 (s / 2) + s % 2 + 2 (n % 4) with s = n % 16 / 4: one
//                shift brings four neighbouring steps to bits 2, 4, 6, 8, above their low parts
//
// A lane's words are stored in chunks of 16, 8 or 4 bytes, the largest size that divides them. The
// same chunk of all 32 lanes is contiguous.
#pragma once

#include <cstdint>

#include "linalg/affine_codec.h"  // MetadataType

namespace oscar {

inline constexpr int kTileTokens = 16;
inline constexpr int kMinCacheDim = 64;
inline constexpr int kMaxCacheDim = 512;

// The format of the keys or the values.
struct PagedSide {
  int dim = 128;               // values per row: a multiple of 32, 64 to 512
  int bits = 2;                // 2, 3 or 4
  int quant_group_size = 128;  // values per scale and zero: dim, 64, 32, or dim / 4 (HasQuarters)
};

struct CacheFormat {
  PagedSide k, v;
  MetadataType metadata = MetadataType::kFloat32;  // type of stored scales and zeros
  int page_tokens = 128;                           // 16, 64 or 128
};

// Whether the kernels support quantization groups of a quarter of a head of this dimension.
constexpr bool HasQuarters(int dim) { return dim == 64 || dim == 128 || dim == 256 || dim == 512; }

constexpr bool IsValid(const PagedSide& side) {
  return side.dim >= kMinCacheDim && side.dim <= kMaxCacheDim && side.dim % 32 == 0 &&
         side.bits >= 2 && side.bits <= 4 &&
         (side.quant_group_size == side.dim || side.quant_group_size == 64 ||
          side.quant_group_size == 32 ||
          (HasQuarters(side.dim) && side.quant_group_size == side.dim / 4)) &&
         side.dim % side.quant_group_size == 0;
}
constexpr bool IsValid(const CacheFormat& format) {
  return IsValid(format.k) && IsValid(format.v) &&
         (format.page_tokens == 16 || format.page_tokens == 64 || format.page_tokens == 128);
}

constexpr int GroupsPerRow(const PagedSide& side) { return side.dim / side.quant_group_size; }

// Returns the number of 32-bit words per lane in a plane with `plane_bits` bits per code.
constexpr int PlaneWords(int dim, int plane_bits) {
  return plane_bits == 2 ? dim / 32 : plane_bits == 1 ? (dim + 63) / 64 : 0;
}
constexpr int PlaneBytes(int dim, int plane_bits) { return 128 * PlaneWords(dim, plane_bits); }
constexpr int ChunkWords(int words) { return words % 4 == 0 ? 4 : words % 2 == 0 ? 2 : 1; }
// Returns the byte offset of word `word` of lane `lane` in a plane with `words` words per lane.
constexpr int WordByte(int words, int lane, int word) {
  const int chunk = ChunkWords(words);
  return ((word / chunk * 32 + lane) * chunk + word % chunk) * 4;
}

constexpr int CodeBytes(const PagedSide& side) {  // bytes of both planes
  return PlaneBytes(side.dim, 2) + PlaneBytes(side.dim, side.bits - 2);
}
constexpr int MetadataBytes(const PagedSide& side, MetadataType type) {
  return GroupsPerRow(side) * kTileTokens * 2 * static_cast<int>(MetadataTypeBytes(type));
}

// Byte offsets within a record.
constexpr int KCodesOffset(const CacheFormat&) { return 0; }
constexpr int VCodesOffset(const CacheFormat& format) { return CodeBytes(format.k); }
constexpr int KMetadataOffset(const CacheFormat& format) {
  return VCodesOffset(format) + CodeBytes(format.v);
}
constexpr int VMetadataOffset(const CacheFormat& format) {
  return KMetadataOffset(format) + MetadataBytes(format.k, format.metadata);
}
constexpr int RecordBytes(const CacheFormat& format) {  // a multiple of 32
  return VMetadataOffset(format) + MetadataBytes(format.v, format.metadata);
}
constexpr int64_t PageBytes(const CacheFormat& format, int num_kv_heads) {
  return int64_t{num_kv_heads} * (format.page_tokens / kTileTokens) * RecordBytes(format);
}

// The order in which keys or values pack codes into words; see the table above.
enum class CacheOrder { kKeys, kValues };

struct CodePlace {
  int lane, word, bit;
};
// Returns the place of token t in [0, 16) and dimension d in the plane with `plane_bits` bits per
// code.
constexpr CodePlace PlaceOfCode(CacheOrder order, int dim, int plane_bits, int t, int d) {
  const bool keys = order == CacheOrder::kKeys;
  const int lane = keys ? 4 * (t % 8) + d % 8 / 2 : 4 * (d % 8) + t % 8 / 2;
  const int half = keys ? d % 2 : t % 2;
  const int n = t / 8 * (dim / 8) + d / 8;
  if (plane_bits == 2) return {lane, n / 8, 16 * half + 2 * (n % 8)};
  const int s = n % 16 / 4;
  return {lane, n / 16, 16 * half + 8 * (s / 2) + s % 2 + 2 * (n % 4)};
}
// Returns the index of a scale, that of token t and a group, in the metadata of the keys or values.
// The zero follows its scale.
constexpr int MetadataIndex(const PagedSide& side, MetadataType type, int t, int group) {
  return type == MetadataType::kByte ? ((t % 8 * GroupsPerRow(side) + group) * 2 + t / 8) * 2
                                     : (group * kTileTokens + t) * 2;
}

}  // namespace oscar
