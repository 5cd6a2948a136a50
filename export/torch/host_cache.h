// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A view of a layer's paged cache in host memory. A view has those KV heads of the layer that have
// the same bits, in the layout of export/cuda/cache/cache_format.h. The host supports more than the
// kernels: other quantization groups, and quantizing one token at a time.
//
// Tokens are stored where export/cuda/cache/cache_view.h says, with one addition: while the recent
// ring has free slots, it also keeps the newest quantized tokens, so that a request may be
// truncated by some tokens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "export/cuda/cache/cache_format.h"

namespace oscar {

using BFloat16Bits = uint16_t;

// The format of a view's pages, and the parameters that decide when tokens move into them.
struct CacheShape {
  CacheFormat format;
  int sink_tokens = 64;     // a multiple of 16
  int recent_slots = 272;   // a multiple of 16
  int recent_tokens = 256;  // tokens that a query reads exactly, including its own
  int step = 8;             // tokens that are quantized at a time

  int window_slots() const { return sink_tokens + recent_slots; }
  int64_t window_head_values() const {
    return int64_t{window_slots()} * (format.k.dim + format.v.dim);
  }
  // Returns the number of tokens in pages for a request of `length` tokens.
  int64_t Quantized(int64_t length) const {
    return std::max<int64_t>(0, length - sink_tokens - recent_tokens) / step * step;
  }
};

// Reads [k_dim, k_bits, k_group, v_dim, v_bits, v_group, metadata, page_tokens, sink_tokens,
// recent_slots, recent_tokens, step]. Throws UsageError for an unsupported value and says what is
// supported.
CacheShape CacheShapeOf(std::span<const int64_t> format);

struct HostCache {
  CacheShape shape;
  int num_kv_heads = 1;  // KV heads of the view
  int num_requests = 1;
  int64_t num_pages = 0, num_windows = 0;
  uint8_t* pages = nullptr;  // [num_pages, PageBytes]
  // [num_windows, num_kv_heads] of { K [window_slots, k.dim], V [window_slots, v.dim] }
  BFloat16Bits* windows = nullptr;
  const int32_t* page_table = nullptr;  // [num_requests, page_table_stride]
  int64_t page_table_stride = 0;
  const int32_t* window_of_request = nullptr;  // [num_requests]
  // [4, num_requests]: tokens and tokens in pages, then both as they were before this step
  const int32_t* state = nullptr;

  int64_t length(int request) const { return state[request]; }
  int64_t quantized(int request) const { return state[num_requests + request]; }
  int64_t length_before(int request) const { return state[2 * num_requests + request]; }
  int64_t quantized_before(int request) const { return state[3 * num_requests + request]; }

  // Returns the record with a quantized token. `token` counts from 0 after the sinks.
  uint8_t* Record(int request, int head, int64_t token) const;
  // Returns the row of a position that is a sink or among the newest tokens.
  BFloat16Bits* WindowRow(int request, int head, bool values, int64_t position) const;
};

// Throws UsageError unless all pages and windows to which requests refer exist, and `row_begin`
// [num_requests + 1] covers exactly `num_rows` rows. `appended`: also checks that the state grew by
// these rows.
void CheckRequests(const HostCache& cache, const int32_t* row_begin, int64_t num_rows,
                   bool appended);

// The layout of the keys or the values in a record: codes and metadata of its tokens.
class RecordSide {
 public:
  RecordSide(const CacheFormat& format, bool values);
  // Returns the instance for a format, which is made only once.
  static const RecordSide& Of(const CacheFormat& format, bool values);

  int groups() const { return GroupsPerRow(side_); }
  const PagedSide& side() const { return side_; }

  // Writes token t of the tile: codes [dim], and scales and zeros [groups, 2] that are already
  // rounded to the metadata type.
  void Write(uint8_t* record, int t, std::span<const uint8_t> codes,
             std::span<const float> scales_zeros) const;
  void WriteBad(uint8_t* record, int t) const;  // makes the token read as NaN
  // Reads the codes of all 16 tokens, as [16, dim] or, with `by_dim`, as [dim, 16].
  void ReadCodes(const uint8_t* record, bool by_dim, uint8_t* codes) const;
  // Reads the scales and the zeros of all 16 tokens, both [groups, 16].
  void ReadMetadata(const uint8_t* record, float* scales, float* zeros) const;

 private:
  // The parts of four codes that share a byte of a plane, two bits apart: those of dims d, d + 8, d
  // + 16 and d + 24.
  struct Run {
    uint16_t byte, d;
    uint8_t shift;
  };
  std::vector<Run> RunsOf(int plane_bits, bool values) const;
  void WriteMetadata(uint8_t* record, int t, int group, float scale, float zero) const;

  PagedSide side_;
  MetadataType metadata_;
  int codes_offset_, metadata_offset_;  // bytes
  std::vector<Run> low_, high_;         // ordered by token
};

}  // namespace oscar
