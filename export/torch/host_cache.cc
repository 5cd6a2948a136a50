// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/torch/host_cache.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>

#include "linalg/affine_group.h"
#include "linalg/affine_metadata.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"
#include "linalg/stored_float.h"

namespace oscar {
namespace {

constexpr int kRunCodes = 4, kRunStride = 8;  // dims
constexpr int kGroupStep = 8;

void CheckSide(const PagedSide& side, const char* name) {
  const bool fits = side.dim >= kMinCacheDim && side.dim <= kMaxCacheDim && side.dim % 32 == 0 &&
                    side.bits >= 2 && side.bits <= 4 && side.quant_group_size > 0 &&
                    side.quant_group_size % kGroupStep == 0 &&
                    side.dim % side.quant_group_size == 0;
  if (fits) return;
  throw UsageError(fmt::format(
      "the cache of {} has head dim {}, {} bits and quantization groups of {}; supported: "
      "multiples of 32 from {} to {}, 2 to 4 bits, groups that divide the head and are multiples "
      "of {}",
      name, side.dim, side.bits, side.quant_group_size, kMinCacheDim, kMaxCacheDim, kGroupStep));
}

// These convert a scale to its byte and back. The byte has the exponent and the three highest
// mantissa bits of the scale's float16.
uint8_t ByteOfScale(float scale) {
  if (scale < 0x1p-14F) return static_cast<uint8_t>(scale * 0x1p17F);
  return static_cast<uint8_t>((std::bit_cast<uint32_t>(scale) >> 20) - ((127 - 15) << 3));
}
float ScaleOfByte(uint8_t byte) {
  if (byte < 8) return static_cast<float>(byte) * 0x1p-17F;
  if (byte >= 0xF8) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>((uint32_t{byte} + ((127 - 15) << 3)) << 20);
}

template <typename T>
void Put(uint8_t* to, int index, T value) {
  std::memcpy(to + static_cast<size_t>(index) * sizeof(T), &value, sizeof(T));
}
template <typename T>
T Get(const uint8_t* from, int index) {
  T value;
  std::memcpy(&value, from + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

CacheShape CacheShapeOf(std::span<const int64_t> format) {
  constexpr size_t kFields = 12;
  if (format.size() != kFields)
    throw UsageError(fmt::format(
        "the cache format has {} numbers, expected {}: k_dim, k_bits, k_group, v_dim, v_bits, "
        "v_group, metadata, page_tokens, sink_tokens, recent_slots, recent_tokens, step",
        format.size(), kFields));
  for (const int64_t field : format)
    if (field < 0 || field > std::numeric_limits<int>::max() / 2)
      throw UsageError(
          fmt::format("the cache format contains {}, expected numbers from 0 to 2^30 - 1", field));
  const auto at = [&](size_t i) { return static_cast<int>(format[i]); };
  if (at(6) > static_cast<int>(MetadataType::kByte))
    throw UsageError(fmt::format(
        "the cache has metadata type {}; supported: 0 (float32), 1 (bfloat16) and 2 (bytes)",
        at(6)));
  CacheShape shape{.format = {.k = {at(0), at(1), at(2)},
                              .v = {at(3), at(4), at(5)},
                              .metadata = static_cast<MetadataType>(at(6)),
                              .page_tokens = at(7)},
                   .sink_tokens = at(8),
                   .recent_slots = at(9),
                   .recent_tokens = at(10),
                   .step = at(11)};
  CheckSide(shape.format.k, "keys");
  CheckSide(shape.format.v, "values");
  const int page = shape.format.page_tokens;
  if (page != 16 && page != 64 && page != 128)
    throw UsageError(fmt::format("a cache page has {} tokens; supported: 16, 64 and 128", page));
  if (shape.step != 1 && shape.step != 8)
    throw UsageError(fmt::format("the step is {} tokens; supported: 1 and 8", shape.step));
  if (shape.sink_tokens % kTileTokens != 0 || shape.recent_slots % kTileTokens != 0 ||
      shape.recent_slots < shape.recent_tokens + shape.step)
    throw UsageError(fmt::format(
        "the cache windows have {} sink tokens and {} slots for {} recent tokens; the first two "
        "numbers must be multiples of {}, and there must be {} slots more than recent tokens",
        shape.sink_tokens, shape.recent_slots, shape.recent_tokens, kTileTokens, shape.step));
  return shape;
}

uint8_t* HostCache::Record(int request, int head, int64_t token) const {
  const CacheFormat& format = shape.format;
  const int64_t page = page_table[request * page_table_stride + token / format.page_tokens];
  const int64_t record =
      int64_t{head} * (format.page_tokens / kTileTokens) + token % format.page_tokens / kTileTokens;
  return pages + page * PageBytes(format, num_kv_heads) + record * RecordBytes(format);
}

BFloat16Bits* HostCache::WindowRow(int request, int head, bool values, int64_t position) const {
  const int64_t sink = shape.sink_tokens;
  const int64_t slot = position < sink ? position : sink + (position - sink) % shape.recent_slots;
  const CacheFormat& format = shape.format;
  BFloat16Bits* const of_head =
      windows +
      (int64_t{window_of_request[request]} * num_kv_heads + head) * shape.window_head_values();
  return values ? of_head + int64_t{shape.window_slots()} * format.k.dim + slot * format.v.dim
                : of_head + slot * format.k.dim;
}

void CheckRequests(const HostCache& cache, const int32_t* row_begin, int64_t num_rows,
                   bool appended) {
  const int page_tokens = cache.shape.format.page_tokens;
  for (int r = 0; r < cache.num_requests; ++r) {
    const int64_t rows = row_begin == nullptr ? 0 : row_begin[r + 1] - row_begin[r];
    const int64_t length = cache.length(r), quantized = cache.quantized(r);
    const int64_t grown = length - cache.length_before(r);
    if (rows < 0 || (row_begin != nullptr && row_begin[r] < 0) || rows > length ||
        (appended && rows != grown))
      throw UsageError(
          fmt::format("request {} has {} rows in this call and {} tokens, {} of them new; call "
                      "advance once before the layers of a step",
                      r, rows, length, grown));
    if (quantized != cache.shape.Quantized(length))
      throw UsageError(fmt::format(
          "request {} has {} tokens, {} of them in pages, expected {}; update the state "
          "with oscar::advance, and pass it the same format as here",
          r, length, quantized, cache.shape.Quantized(length)));
    if (cache.window_of_request[r] < 0 || cache.window_of_request[r] >= cache.num_windows)
      throw UsageError(fmt::format("request {} uses window {}, but the cache has {} windows", r,
                                   cache.window_of_request[r], cache.num_windows));
    const int64_t num_pages = (quantized + page_tokens - 1) / page_tokens;
    if (num_pages > cache.page_table_stride)
      throw UsageError(fmt::format("request {} needs {} pages, but its table has {}", r, num_pages,
                                   cache.page_table_stride));
    for (int64_t i = 0; i < num_pages; ++i) {
      const int32_t page = cache.page_table[r * cache.page_table_stride + i];
      if (page < 0 || page >= cache.num_pages)
        throw UsageError(fmt::format("request {} uses page {}, but the cache has {} pages", r, page,
                                     cache.num_pages));
    }
  }
  if (row_begin != nullptr && (row_begin[0] != 0 || row_begin[cache.num_requests] != num_rows))
    throw UsageError(fmt::format("the requests have rows {} to {}, expected 0 to {}", row_begin[0],
                                 row_begin[cache.num_requests], num_rows));
}

RecordSide::RecordSide(const CacheFormat& format, bool values)
    : side_(values ? format.v : format.k),
      metadata_(format.metadata),
      codes_offset_(values ? VCodesOffset(format) : KCodesOffset(format)),
      metadata_offset_(values ? VMetadataOffset(format) : KMetadataOffset(format)),
      low_(RunsOf(2, values)),
      high_(RunsOf(side_.bits - 2, values)) {}

std::vector<RecordSide::Run> RecordSide::RunsOf(int plane_bits, bool values) const {
  std::vector<Run> runs;
  if (plane_bits == 0) return runs;
  const CacheOrder order = values ? CacheOrder::kValues : CacheOrder::kKeys;
  const int words = PlaneWords(side_.dim, plane_bits);
  for (int t = 0; t < kTileTokens; ++t) {
    for (int d = 0; d < side_.dim; ++d) {
      if (d / kRunStride % kRunCodes != 0) continue;
      const CodePlace first = PlaceOfCode(order, side_.dim, plane_bits, t, d);
      for (int i = 1; i < kRunCodes; ++i) {
        const CodePlace next = PlaceOfCode(order, side_.dim, plane_bits, t, d + i * kRunStride);
        OSCAR_CHECK(next.lane == first.lane && next.word == first.word &&
                    next.bit == first.bit + 2 * i);
      }
      runs.push_back(
          {static_cast<uint16_t>(WordByte(words, first.lane, first.word) + first.bit / 8),
           static_cast<uint16_t>(d), static_cast<uint8_t>(first.bit % 8)});
    }
  }
  return runs;
}

const RecordSide& RecordSide::Of(const CacheFormat& format, bool values) {
  static std::mutex mutex;
  static std::map<std::tuple<int, int, int, int, int, int, MetadataType, bool>, RecordSide> known;
  const std::lock_guard lock(mutex);
  const auto key = std::tuple(format.k.dim, format.k.bits, format.k.quant_group_size, format.v.dim,
                              format.v.bits, format.v.quant_group_size, format.metadata, values);
  return known.try_emplace(key, format, values).first->second;
}

void RecordSide::WriteMetadata(uint8_t* record, int t, int group, float scale, float zero) const {
  uint8_t* const to = record + metadata_offset_;
  const int at = MetadataIndex(side_, metadata_, t, group);
  const float steps = static_cast<float>(ScaleSteps(side_.bits)),
              middle = static_cast<float>(MaxCode(side_.bits)) / 2;
  switch (metadata_) {
    case MetadataType::kFloat32:
      Put(to, at, scale);
      return Put(to, at + 1, zero);
    case MetadataType::kBFloat16:  // exact, because the lower half is zero
      Put(to, at, static_cast<BFloat16Bits>(std::bit_cast<uint32_t>(scale) >> 16));
      return Put(to, at + 1, static_cast<BFloat16Bits>(std::bit_cast<uint32_t>(zero) >> 16));
    case MetadataType::kByte:
      Put(to, at, std::isnan(scale) ? uint8_t{0xFF} : ByteOfScale(scale));
      return Put(to, at + 1, static_cast<int8_t>((zero - middle) * steps));
  }
}

void RecordSide::ReadMetadata(const uint8_t* record, float* scales, float* zeros) const {
  const uint8_t* const from = record + metadata_offset_;
  const float steps = static_cast<float>(ScaleSteps(side_.bits)),
              middle = static_cast<float>(MaxCode(side_.bits)) / 2;
  for (int i = 0; i < groups() * kTileTokens; ++i) {
    switch (metadata_) {
      case MetadataType::kFloat32:
        scales[i] = Get<float>(from, 2 * i);
        zeros[i] = Get<float>(from, 2 * i + 1);
        break;
      case MetadataType::kBFloat16:
        scales[i] = std::bit_cast<float>(uint32_t{Get<BFloat16Bits>(from, 2 * i)} << 16);
        zeros[i] = std::bit_cast<float>(uint32_t{Get<BFloat16Bits>(from, 2 * i + 1)} << 16);
        break;
      case MetadataType::kByte: {
        const int at = MetadataIndex(side_, metadata_, i % kTileTokens, i / kTileTokens);
        scales[i] = ScaleOfByte(from[at]);
        zeros[i] = middle + static_cast<float>(Get<int8_t>(from, at + 1)) / steps;
        break;
      }
    }
  }
}

void RecordSide::Write(uint8_t* record, int t, std::span<const uint8_t> codes,
                       std::span<const float> scales_zeros) const {
  OSCAR_CHECK_EQ(static_cast<int>(codes.size()), side_.dim);
  // Stores (code >> shift) & digit of every code in a plane.
  const auto plane = [&](uint8_t* to, const std::vector<Run>& runs, int shift, unsigned digit) {
    const size_t count = runs.size() / kTileTokens, first = static_cast<size_t>(t) * count;
    for (const Run& run : std::span(runs).subspan(first, count)) {
      unsigned byte = 0;
      for (unsigned j = 0; j < kRunCodes; ++j)
        byte |= (unsigned{codes[run.d + j * kRunStride]} >> shift & digit) << (2 * j);
      const unsigned others = ~(digit * 0x55U << run.shift);
      to[run.byte] = static_cast<uint8_t>((to[run.byte] & others) | byte << run.shift);
    }
  };
  plane(record + codes_offset_, low_, 0, 3);
  plane(record + codes_offset_ + PlaneBytes(side_.dim, 2), high_, 2, side_.bits == 3 ? 1 : 3);
  for (int g = 0; g < groups(); ++g)
    WriteMetadata(record, t, g, scales_zeros[2 * static_cast<size_t>(g)],
                  scales_zeros[2 * static_cast<size_t>(g) + 1]);
}

void RecordSide::WriteBad(uint8_t* record, int t) const {
  std::vector<float> metadata;
  for (int g = 0; g < groups(); ++g)
    metadata.insert(metadata.end(), {std::numeric_limits<float>::quiet_NaN(), 0});
  Write(record, t, std::vector<uint8_t>(static_cast<size_t>(side_.dim)), metadata);
}

void RecordSide::ReadCodes(const uint8_t* record, bool by_dim, uint8_t* codes) const {
  const int token_stride = by_dim ? 1 : side_.dim, dim_stride = by_dim ? kTileTokens : 1;
  const int next = kRunStride * dim_stride;
  const auto plane = [&](const uint8_t* from, const std::vector<Run>& runs, auto put) {
    const size_t count = runs.size() / kTileTokens;
    const Run* run = runs.data();
    for (int t = 0; t < kTileTokens; ++t) {
      for (size_t i = 0; i < count; ++i, ++run)
        put(unsigned{from[run->byte]} >> run->shift,
            codes + t * token_stride + run->d * dim_stride);
    }
  };
  plane(record + codes_offset_, low_, [&](unsigned byte, uint8_t* to) {
    for (int j = 0; j < kRunCodes; ++j) to[j * next] = static_cast<uint8_t>(byte >> (2 * j) & 3U);
  });
  if (high_.empty()) return;
  const unsigned mask = side_.bits == 3 ? 1 : 3;
  plane(record + codes_offset_ + PlaneBytes(side_.dim, 2), high_, [&](unsigned byte, uint8_t* to) {
    for (int j = 0; j < kRunCodes; ++j)
      to[j * next] = static_cast<uint8_t>(to[j * next] | (byte >> (2 * j) & mask) << 2);
  });
}

}  // namespace oscar
