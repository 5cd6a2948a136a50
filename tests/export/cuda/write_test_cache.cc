// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/cuda/write_test_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <span>

#include "linalg/base/error.h"
#include "linalg/feedback_codec.h"
#include "tests/export/cuda/record_row.h"

namespace oscar {
namespace {

// Returns a random permutation of 0, 1, ..., size - 1.
std::vector<int32_t> Shuffled(int size, unsigned seed) {
  std::vector<int32_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

// Returns a mask of the bits in a record that are in use. 1-bit planes may leave half a word
// unused.
std::vector<uint8_t> UsedBits(const CacheFormat& format) {
  std::vector<uint8_t> used(static_cast<size_t>(RecordBytes(format)), 0xFF);
  for (const bool values : {false, true}) {
    const PagedSide& side = values ? format.v : format.k;
    if (side.bits != 3) continue;
    uint8_t* plane = used.data() + (values ? VCodesOffset(format) : KCodesOffset(format)) +
                     PlaneBytes(side.dim, 2);
    std::fill(plane, plane + PlaneBytes(side.dim, 1), uint8_t{0});
    for (int t = 0; t < kTileTokens; ++t) {
      for (int d = 0; d < side.dim; ++d)
        PutCode(plane, values ? CacheOrder::kValues : CacheOrder::kKeys, side.dim, 1, t, d, 1);
    }
  }
  return used;
}

// Replaces -0 by +0, for metadata.
float Canonical(float x) { return x == 0 ? 0.0F : x; }

void CanonicalizeMetadata(const CacheView& view, std::vector<uint8_t>& pages) {
  const CacheFormat& format = view.format;
  const auto record_bytes = static_cast<size_t>(RecordBytes(format));
  const auto metadata = static_cast<size_t>(KMetadataOffset(format));
  const size_t step = static_cast<size_t>(MetadataTypeBytes(format.metadata));
  if (step == 1) return;  // zeros of byte metadata have no sign
  for (size_t record = 0; record < pages.size(); record += record_bytes) {
    for (size_t i = record + metadata; i < record + record_bytes; i += step) {
      uint32_t bits = 0;
      std::memcpy(&bits, &pages[i], step);
      if (bits == (1U << (8 * step - 1))) std::memset(&pages[i], 0, step);
    }
  }
}

}  // namespace

std::vector<float> ToFloats(const __nv_bfloat16* row, int dim) {
  std::vector<float> values(static_cast<size_t>(dim));
  std::transform(row, row + dim, values.begin(),
                 [](__nv_bfloat16 x) { return __bfloat162float(x); });
  return values;
}

Bf16Rows RandomBf16(size_t size, uint64_t seed, double scale) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, scale);
  Bf16Rows values(size);
  for (size_t i = 0; i < size; ++i)
    values[i] = __float2bfloat16(static_cast<float>(normal(random) * (i % 37 == 0 ? 10 : 1)));
  return values;
}

WriteTestCache::WriteTestCache(const WriteTestShape& shape) {
  view_.format = shape.format;
  view_.num_kv_heads = shape.num_kv_heads;
  view_.num_requests = static_cast<int>(shape.lengths.size());
  view_.sink_tokens = shape.sink_tokens;
  view_.recent_slots = shape.recent_slots;
  const int longest = *std::max_element(shape.lengths.begin(), shape.lengths.end());
  view_.page_table_stride = longest / shape.format.page_tokens + 1;
  const int num_pages = view_.page_table_stride * view_.num_requests + 3;
  table_ = Shuffled(num_pages, 1);
  table_.resize(static_cast<size_t>(view_.page_table_stride * view_.num_requests));
  window_of_request_ = Shuffled(view_.num_requests, 2);
  expected_pages_.assign(
      static_cast<size_t>(num_pages * PageBytes(view_.format, view_.num_kv_heads)), 0xFF);
  pages_ = DeviceArray<uint8_t>(expected_pages_);
  expected_windows_.resize(static_cast<size_t>(WindowBytes(view_) / 2 * view_.num_requests));
  windows_ = DeviceArray<__nv_bfloat16>(expected_windows_.size());
  windows_.Fill(0xFF);
  expected_windows_ = windows_.ToHost();
  page_table_ = DeviceArray<int32_t>(table_);
  window_of_ = DeviceArray<int32_t>(window_of_request_);
  view_.pages = pages_.data();
  view_.windows = windows_.data();
  view_.page_table = page_table_.data();
  view_.window_of_request = window_of_.data();
  lengths_ = DeviceArray<int32_t>(shape.lengths.size());
  quantized_ = DeviceArray<int32_t>(shape.lengths.size());
  view_.lengths = lengths_.data();
  view_.quantized = quantized_.data();
  SetCounters(shape.lengths, shape.quantized);
}

void WriteTestCache::SetCounters(const std::vector<int>& lengths,
                                 const std::vector<int>& quantized) {
  host_lengths_.assign(lengths.begin(), lengths.end());
  host_quantized_.assign(quantized.begin(), quantized.end());
  const auto copy = [](const DeviceArray<int32_t>& to, const std::vector<int32_t>& from) {
    OSCAR_CUDA_CHECK(cudaMemcpy(to.data(), from.data(), to.bytes(), cudaMemcpyHostToDevice));
  };
  copy(lengths_, host_lengths_);
  copy(quantized_, host_quantized_);
}

uint8_t* WriteTestCache::ExpectedRecord(int request, int token, int head) {
  const CacheFormat& format = view_.format;
  const int64_t page =
      table_[static_cast<size_t>(request * view_.page_table_stride + token / format.page_tokens)];
  const int64_t record =
      head * (format.page_tokens / kTileTokens) + token % format.page_tokens / kTileTokens;
  return expected_pages_.data() + page * PageBytes(format, view_.num_kv_heads) +
         record * RecordBytes(format);
}

void WriteTestCache::ExpectQuantized(int request, int token, int head, const __nv_bfloat16* row,
                                     bool values, const WriteSide& write, ClipMethod method) {
  const CacheFormat& format = view_.format;
  const PagedSide& side = values ? format.v : format.k;
  const AffineFormat affine{side.bits, side.quant_group_size, format.metadata, write.scales};
  std::vector<uint8_t> codes(static_cast<size_t>(side.dim));
  std::vector<float> scales_zeros(static_cast<size_t>(2 * GroupsPerRow(side)));
  const std::vector<float> x = ToFloats(row, side.dim);
  const RowClip clip{write.head_clip_ratios.empty()
                         ? write.clip_ratio
                         : write.head_clip_ratios[static_cast<size_t>(head)],
                     method};
  const std::vector<float>& factors = factors_[values ? 1 : 0];
  try {
    if (factors.empty()) {
      ClipAndEncodeAffineRow(x, affine, clip, codes, scales_zeros);
    } else {
      const size_t size = x.size() * x.size();
      EncodeAffineRowWithFeedback<float>(
          x, affine, clip, std::span(factors).subspan(static_cast<size_t>(head) * size, size),
          codes, scales_zeros);
    }
  } catch (const NumericalError&) {
    ++bad_rows_;
    std::fill(codes.begin(), codes.end(), uint8_t{0});
    for (size_t i = 0; i < scales_zeros.size(); ++i)
      scales_zeros[i] = i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : 0;
  }
  for (float& value : scales_zeros) value = Canonical(value);
  PutRow(ExpectedRecord(request, token, head), format,
         values ? CacheOrder::kValues : CacheOrder::kKeys, token % kTileTokens, codes,
         scales_zeros);
}

void WriteTestCache::Expect(int request, int position, const __nv_bfloat16* k,
                            const __nv_bfloat16* v, const WriteOptions& options) {
  const int token = position - view_.sink_tokens;
  const bool quantized = token >= 0 && token < host_quantized_[static_cast<size_t>(request)];
  for (int head = 0; head < view_.num_kv_heads; ++head) {
    for (const bool values : {false, true}) {
      const int dim = values ? view_.format.v.dim : view_.format.k.dim;
      const __nv_bfloat16* row = (values ? v : k) + head * dim;
      if (quantized) {
        ExpectQuantized(request, token, head, row, values, values ? options.v : options.k,
                        options.clip_method);
        continue;
      }
      const int64_t window =
          int64_t{window_of_request_[static_cast<size_t>(request)]} * view_.num_kv_heads + head;
      const int slot = token < 0 ? position : view_.sink_tokens + token % view_.recent_slots;
      std::copy(row, row + dim,
                expected_windows_.begin() + window * WindowHeadValues(view_) +
                    (values ? WindowSlots(view_) * view_.format.k.dim : 0) + slot * dim);
    }
  }
}

::testing::AssertionResult WriteTestCache::Matches() const {
  OSCAR_CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<uint8_t> pages = pages_.ToHost();
  CanonicalizeMetadata(view_, pages);
  const std::vector<uint8_t> used = UsedBits(view_.format);
  for (size_t i = 0; i < pages.size(); ++i) {
    const uint8_t unused = static_cast<uint8_t>(~used[i % used.size()]);
    pages[i] = static_cast<uint8_t>((pages[i] & ~unused) | (expected_pages_[i] & unused));
  }
  const auto wrong = std::mismatch(pages.begin(), pages.end(), expected_pages_.begin());
  if (wrong.first != pages.end()) {
    const int64_t at = wrong.first - pages.begin();
    int64_t count = 0;
    for (size_t i = 0; i < pages.size(); ++i) count += pages[i] != expected_pages_[i];
    const int64_t page_bytes = PageBytes(view_.format, view_.num_kv_heads);
    const int record_bytes = RecordBytes(view_.format);
    return ::testing::AssertionFailure() << fmt::format(
               "{} of {} bytes of the pages differ; first: page {} record {} byte {} (V codes from "
               "{}, metadata from {} and {}): {:#x}, expected {:#x}",
               count, pages.size(), at / page_bytes, at % page_bytes / record_bytes,
               at % page_bytes % record_bytes, VCodesOffset(view_.format),
               KMetadataOffset(view_.format), VMetadataOffset(view_.format), *wrong.first,
               *wrong.second);
  }
  const std::vector<__nv_bfloat16> windows = windows_.ToHost();
  for (size_t i = 0; i < windows.size(); ++i) {
    if (std::memcmp(&windows[i], &expected_windows_[i], 2) != 0)
      return ::testing::AssertionFailure()
             << fmt::format("window value {} is {}, expected {}", i, __bfloat162float(windows[i]),
                            __bfloat162float(expected_windows_[i]));
  }
  return ::testing::AssertionSuccess();
}

}  // namespace oscar
