// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/torch/host_write.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

#include "export/torch/host_arithmetic.h"
#include "linalg/base/error.h"
#include "linalg/base/parallel_for.h"
#include "linalg/feedback_codec.h"
#include "linalg/stored_float.h"

namespace oscar {
namespace {

constexpr int64_t kRowsOfPiece = 64;

// Returns the number of threads to use. Every call starts new threads, so each needs enough work.
int Threads(int64_t operations, int num_threads) {
  constexpr int64_t kWorthwhile = 1 << 20;
  return operations < kWorthwhile ? 1 : num_threads;
}

// Rotates and quantizes the rows of keys or values.
class SideWriter {
 public:
  SideWriter(const HostCache& cache, const HostSide& side, const HostRows& rows, bool values)
      : cache_(cache),
        side_(side),
        rows_(rows),
        values_(values),
        record_(RecordSide::Of(cache.shape.format, values)),
        dim_(static_cast<size_t>(record_.side().dim)) {}

  // Computes the rotated rows [rows, num_kv_heads, dim].
  void Turn(int64_t num_rows, int num_threads) {
    const size_t heads = static_cast<size_t>(cache_.num_kv_heads);
    turned_.resize(static_cast<size_t>(num_rows) * heads * dim_);
    std::vector<float> matrices;
    const size_t square = dim_ * dim_;
    if (side_.rotation != nullptr) {
      matrices.resize((side_.per_head ? heads : 1) * square);
      FloatsOfBits(side_.rotation, static_cast<int>(std::ssize(matrices)), matrices.data());
    }
    const BFloat16Bits* const x = values_ ? rows_.v : rows_.k;
    const int64_t pieces = (num_rows + kRowsOfPiece - 1) / kRowsOfPiece;
    const auto piece = [&](int64_t index) {
      std::vector<float> row(dim_), y(dim_);
      const int64_t end = std::min(num_rows, (index + 1) * kRowsOfPiece);
      for (int64_t r = index * kRowsOfPiece; r < end; ++r) {
        for (size_t h = 0; h < heads; ++h) {
          const int64_t head = rows_.heads == nullptr ? static_cast<int64_t>(h) : rows_.heads[h];
          const BFloat16Bits* const from =
              x + (r * rows_.layer_heads + head) * static_cast<int64_t>(dim_);
          for (size_t d = 0; d < dim_; ++d) {
            row[d] = FloatOfBits(from[d]);
            if (side_.mean != nullptr) row[d] = NearestBFloat16(row[d] - side_.mean[h * dim_ + d]);
          }
          if (side_.rotation != nullptr) {
            RowTimesMatrix(row.data(), matrices.data() + (side_.per_head ? h * square : 0),
                           static_cast<int>(dim_), y.data());
          } else {
            y = row;
          }
          BFloat16Bits* const to = turned_.data() + (static_cast<size_t>(r) * heads + h) * dim_;
          std::transform(y.begin(), y.end(), to, BitsOfFloat);
        }
      }
    };
    ParallelFor(
        pieces, piece,
        Threads(num_rows * cache_.num_kv_heads * static_cast<int64_t>(square), num_threads));
  }

  void UnpackFeedback() {
    if (side_.feedback == nullptr || !factors_.empty()) return;
    const size_t heads = static_cast<size_t>(cache_.num_kv_heads);
    const size_t stride = static_cast<size_t>(FeedbackStride(static_cast<int>(dim_)));
    factors_.resize(heads * dim_ * dim_);
    for (size_t h = 0; h < heads; ++h) {
      for (size_t j = 0; j < dim_; ++j) {
        const int8_t* const column = side_.feedback + (h * dim_ + j) * stride;
        for (size_t i = 0; i < j; ++i) {
          const bool own = i / kFeedbackBlock == j / kFeedbackBlock;
          factors_[(h * dim_ + i) * dim_ + j] =
              side_.feedback_units[h] *
              static_cast<float>(column[own ? dim_ + i % kFeedbackBlock : i]);
        }
      }
    }
  }

  // Returns the rotated row of a position, from the windows if it is older than this call.
  const BFloat16Bits* Row(int request, int head, int64_t position) const {
    const int64_t before = cache_.length_before(request);
    if (position < before) return cache_.WindowRow(request, head, values_, position);
    const int64_t row = rows_.row_begin[request] + position - before;
    return turned_.data() + static_cast<size_t>(row * cache_.num_kv_heads + head) * dim_;
  }

  // Quantizes tokens [begin, end) of a request. Returns how many rows could not be stored.
  int64_t Quantize(int request, int head, int64_t begin, int64_t end) const {
    const PagedSide& side = record_.side();
    const AffineFormat format{side.bits, side.quant_group_size, cache_.shape.format.metadata,
                              side_.scales};
    const RowClip clip{side_.clip.empty()
                           ? 0
                           : side_.clip[side_.clip.size() == 1 ? 0 : static_cast<size_t>(head)]};
    std::vector<float> row(dim_), metadata(2 * static_cast<size_t>(record_.groups()));
    std::vector<uint8_t> codes(dim_);
    int64_t bad = 0;
    for (int64_t token = begin; token < end; ++token) {
      const BFloat16Bits* const from = Row(request, head, token + cache_.shape.sink_tokens);
      std::transform(from, from + dim_, row.begin(), FloatOfBits);
      uint8_t* const record = cache_.Record(request, head, token);
      const int t = static_cast<int>(token % kTileTokens);
      try {
        if (side_.feedback != nullptr) {
          const std::span factor =
              std::span(factors_).subspan(static_cast<size_t>(head) * dim_ * dim_, dim_ * dim_);
          EncodeAffineRowWithFeedback<float>(row, format, clip, factor, codes, metadata);
        } else {
          ClipAndEncodeAffineRow(row, format, clip, codes, metadata);
        }
        record_.Write(record, t, codes, metadata);
      } catch (const NumericalError&) {
        record_.WriteBad(record, t);
        ++bad;
      }
    }
    return bad;
  }

  void WriteWindow(int request, int head, int64_t position) const {
    std::copy_n(Row(request, head, position), dim_,
                cache_.WindowRow(request, head, values_, position));
  }

  void WriteTail(int request, int head) const {
    const int64_t before = cache_.length_before(request), slots = cache_.shape.recent_slots;
    const int64_t begin = std::max<int64_t>(
        {0, before - slots,
         std::min(before, cache_.shape.sink_tokens + cache_.quantized_before(request))});
    BFloat16Bits* const to =
        (values_ ? rows_.tail_v : rows_.tail_k) + (int64_t{request} * cache_.num_kv_heads + head) *
                                                      rows_.tail_slots * static_cast<int64_t>(dim_);
    for (int64_t position = begin; position < cache_.length(request); ++position)
      std::copy_n(Row(request, head, position), dim_,
                  to + (position - before + slots) * static_cast<int64_t>(dim_));
  }

  size_t dim() const { return dim_; }
  bool feeds_back() const { return side_.feedback != nullptr; }

 private:
  const HostCache& cache_;
  const HostSide& side_;
  const HostRows& rows_;
  bool values_;
  const RecordSide& record_;
  size_t dim_;
  std::vector<BFloat16Bits> turned_;
  std::vector<float> factors_;  // [num_kv_heads, dim, dim]
};

// Tokens of a request and head that share a record, for keys and values.
struct Piece {
  int request, head;
  int64_t begin, end;
};

}  // namespace

int64_t HostWrite(const HostCache& cache, const HostSide& k, const HostSide& v,
                  const HostRows& rows, int num_threads) {
  SideWriter sides[] = {{cache, k, rows, false}, {cache, v, rows, true}};
  const int64_t num_rows = rows.row_begin[cache.num_requests];
  std::vector<Piece> pieces;
  for (int r = 0; r < cache.num_requests; ++r) {
    const int64_t begin = cache.quantized_before(r), end = cache.quantized(r);
    for (int h = 0; h < cache.num_kv_heads; ++h) {
      for (int64_t from = begin; from < end;) {
        const int64_t to = std::min(end, (from / kTileTokens + 1) * kTileTokens);
        pieces.push_back({r, h, from, to});
        from = to;
      }
    }
  }
  int64_t cost = 0;  // approximate cost of a quantized row
  for (SideWriter& side : sides) {
    side.Turn(num_rows, num_threads);
    if (!pieces.empty()) side.UnpackFeedback();
    const auto dim = static_cast<int64_t>(side.dim());
    cost += dim * (side.feeds_back() ? dim / 2 : 32);
  }
  std::atomic<int64_t> bad{0};
  const auto quantize = [&](int64_t index) {
    const Piece& piece = pieces[static_cast<size_t>(index)];
    for (const SideWriter& side : sides)
      bad += side.Quantize(piece.request, piece.head, piece.begin, piece.end);
  };
  const auto num_pieces = static_cast<int64_t>(pieces.size());
  ParallelFor(num_pieces, quantize, Threads(num_pieces * kTileTokens * cost, num_threads));
  const auto keep = [&](int64_t index) {
    const int r = static_cast<int>(index) / cache.num_kv_heads,
              h = static_cast<int>(index) % cache.num_kv_heads;
    const int64_t before = cache.length_before(r), length = cache.length(r);
    const int64_t newest = length - cache.shape.recent_slots;
    for (const SideWriter& side : sides) {
      if (rows.tail_slots > 0) side.WriteTail(r, h);
      const int64_t sinks = std::min<int64_t>(length, cache.shape.sink_tokens);
      for (int64_t p = before; p < sinks; ++p) side.WriteWindow(r, h, p);
      for (int64_t p = std::max({before, sinks, newest}); p < length; ++p)
        side.WriteWindow(r, h, p);
    }
  };
  ParallelFor(int64_t{cache.num_requests} * cache.num_kv_heads, keep, 1);
  return bad;
}

void HostReadPages(const HostCache& cache, int request, bool values, int64_t begin, int64_t end,
                   float* out, int64_t head_stride, int num_threads) {
  const RecordSide& side = RecordSide::Of(cache.shape.format, values);
  const int dim = side.side().dim, group = side.side().quant_group_size;
  const int64_t first = begin / kTileTokens, tiles = (end + kTileTokens - 1) / kTileTokens - first;
  const auto tile = [&](int64_t index) {
    const auto head = static_cast<int>(index / tiles);
    const int64_t token = (first + index % tiles) * kTileTokens;
    const uint8_t* const record = cache.Record(request, head, token);
    uint8_t codes[kTileTokens * kMaxCacheDim];
    std::vector<float> scales(static_cast<size_t>(side.groups()) * kTileTokens),
        zeros(scales.size());
    side.ReadCodes(record, false, codes);
    side.ReadMetadata(record, scales.data(), zeros.data());
    for (int64_t p = std::max(begin, token); p < std::min(end, token + kTileTokens); ++p) {
      const auto t = static_cast<size_t>(p - token);
      float* const to = out + head * head_stride + (p - begin) * dim;
      for (int d = 0; d < dim; ++d) {
        const size_t at = static_cast<size_t>(d / group) * kTileTokens + t;
        to[d] = (static_cast<float>(codes[t * static_cast<size_t>(dim) + static_cast<size_t>(d)]) -
                 zeros[at]) *
                scales[at];
      }
    }
  };
  if (tiles > 0)
    ParallelFor(tiles * cache.num_kv_heads, tile,
                Threads(tiles * cache.num_kv_heads * kTileTokens * dim * 2, num_threads));
}

void HostMultiply(const HostProduct& product, int num_threads) {
  const int64_t dim = product.dim, square = dim * dim;
  std::vector<float> matrices(static_cast<size_t>(product.num_matrices * square));
  FloatsOfBits(product.matrices, static_cast<int>(std::ssize(matrices)), matrices.data());
  const int64_t heads_of_matrix = product.heads / product.num_matrices;
  const int64_t rows = product.rows * product.heads;
  const auto piece = [&](int64_t index) {
    for (int64_t r = index * kRowsOfPiece; r < std::min(rows, (index + 1) * kRowsOfPiece); ++r) {
      const float* const matrix = matrices.data() + r % product.heads / heads_of_matrix * square;
      const float* const x = product.x + r * dim;
      float* const y = product.y + r * dim;
      if (product.transposed) {
        for (int64_t i = 0; i < dim; ++i) y[i] = Dot(x, matrix + i * dim, static_cast<int>(dim));
        continue;
      }
      RowTimesMatrix(x, matrix, static_cast<int>(dim), y);
      std::transform(y, y + dim, y, [](float value) { return FloatOfBits(BitsOfFloat(value)); });
    }
  };
  ParallelFor((rows + kRowsOfPiece - 1) / kRowsOfPiece, piece, Threads(rows * square, num_threads));
}

}  // namespace oscar
