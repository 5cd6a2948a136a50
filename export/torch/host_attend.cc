// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/torch/host_attend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "export/torch/host_arithmetic.h"
#include "linalg/base/parallel_for.h"

namespace oscar {
namespace {

constexpr int64_t kChunkTokens = 512;  // tokens per unit of work (one query and KV head)
constexpr float kNothing = -std::numeric_limits<float>::infinity();

// The unnormalized softmax over some tokens, for the query heads of a KV head.
struct Partial {
  std::vector<float> max, sum, out;  // [heads], [heads], [heads, v.dim]

  Partial(int64_t heads, int v_dim)
      : max(static_cast<size_t>(heads), kNothing),
        sum(static_cast<size_t>(heads)),
        out(static_cast<size_t>(heads * v_dim)) {}
};

struct Unit {
  int request, head;
  int64_t row, position, begin, end;  // tokens
};

// Computes attention from one query to a chunk of tokens.
class ChunkAttention {
 public:
  ChunkAttention(const HostCache& cache, const AttendRule& rule, const HostQueries& queries)
      : cache_(cache),
        rule_(rule),
        queries_(queries),
        keys_(RecordSide::Of(cache.shape.format, false)),
        values_(RecordSide::Of(cache.shape.format, true)),
        k_dim_(keys_.side().dim),
        v_dim_(values_.side().dim),
        heads_(static_cast<int>(queries.gqa_ratio)),
        bytes_(static_cast<size_t>(kTileTokens * std::max(k_dim_, v_dim_))),
        codes_(bytes_.size()),
        scores_(static_cast<size_t>(heads_) * kTileTokens),
        k_scales_(static_cast<size_t>(keys_.groups()) * kTileTokens),
        k_zeros_(k_scales_.size()),
        v_scales_(static_cast<size_t>(values_.groups()) * kTileTokens),
        v_zeros_(v_scales_.size()),
        q_sums_(static_cast<size_t>(heads_ * keys_.groups())) {}

  void Run(const Unit& unit, Partial& partial) {
    unit_ = unit;
    partial_ = &partial;
    const int64_t head = queries_.heads == nullptr ? unit.head : queries_.heads[unit.head];
    q_ = queries_.q + (unit.row * queries_.num_q_heads + head * queries_.gqa_ratio) * k_dim_;
    const int group = keys_.side().quant_group_size;
    for (int i = 0; i < heads_ * keys_.groups(); ++i) {
      const float* const from = q_ + i / keys_.groups() * k_dim_ + i % keys_.groups() * group;
      q_sums_[static_cast<size_t>(i)] = std::accumulate(from, from + group, 0.0F);
    }
    const int64_t sink = cache_.shape.sink_tokens;
    const int64_t quantized_end = QuantizedEnd(cache_, rule_, unit.request, unit.position);
    Exact(unit.begin, std::min(unit.end, sink));
    const int64_t end = std::min(unit.end, quantized_end);
    for (int64_t p = std::max(unit.begin, sink); p < end;) {
      const int64_t tile_end = std::min(end, (p / kTileTokens + 1) * kTileTokens);
      QuantizedTile(p, tile_end);
      p = tile_end;
    }
    Exact(std::max({unit.begin, sink, quantized_end}), unit.end);
  }

 private:
  // Computes attention to tokens [begin, end) of one tile.
  void QuantizedTile(int64_t begin, int64_t end) {
    const int64_t token = begin - cache_.shape.sink_tokens;
    const uint8_t* const record = cache_.Record(unit_.request, unit_.head, token);
    const int first = static_cast<int>(token % kTileTokens),
              last = first + static_cast<int>(end - begin);
    const auto load = [&](const auto& side, bool by_dim, int dim, auto& scales, auto& zeros) {
      side.ReadCodes(record, by_dim, bytes_.data());
      FloatsOfBytes(bytes_.data(), kTileTokens * dim, codes_.data());
      side.ReadMetadata(record, scales.data(), zeros.data());
    };
    load(keys_, /*by_dim=*/true, k_dim_, k_scales_, k_zeros_);
    const int group = keys_.side().quant_group_size;
    for (int h = 0; h < heads_; ++h) {
      float* const scores = scores_.data() + h * kTileTokens;
      std::fill_n(scores, kTileTokens, 0.0F);
      for (int g = 0; g < keys_.groups(); ++g) {
        float products[kTileTokens];
        CodeScores(q_ + h * k_dim_ + g * group, codes_.data() + g * group * kTileTokens, group,
                   products);
        const float q_sum = q_sums_[static_cast<size_t>(h * keys_.groups() + g)];
        const size_t at = static_cast<size_t>(g) * kTileTokens;
        for (size_t t = 0; t < kTileTokens; ++t)
          scores[t] += (products[t] - k_zeros_[at + t] * q_sum) * k_scales_[at + t];
      }
    }
    load(values_, /*by_dim=*/false, v_dim_, v_scales_, v_zeros_);
    const int v_group = values_.side().quant_group_size;
    for (int h = 0; h < heads_; ++h) {
      float* const weights = scores_.data() + h * kTileTokens;
      float* const out = Softmax(h, first, last, weights);
      std::fill(weights, weights + first, 0.0F);
      std::fill(weights + last, weights + kTileTokens, 0.0F);
      for (int g = 0; g < values_.groups(); ++g) {
        float scaled[kTileTokens], zero = 0;
        const size_t at = static_cast<size_t>(g) * kTileTokens;
        // Tokens outside the range may hold any value, even NaN.
        for (int t = 0; t < kTileTokens; ++t) {
          const bool inside = t >= first && t < last;
          scaled[t] = inside ? weights[t] * v_scales_[at + static_cast<size_t>(t)] : 0;
          if (inside) zero += scaled[t] * v_zeros_[at + static_cast<size_t>(t)];
        }
        AddWeightedCodes(scaled, codes_.data() + g * v_group, v_dim_, v_group, out + g * v_group);
        for (int d = 0; d < v_group; ++d) out[g * v_group + d] -= zero;
      }
    }
  }

  void Exact(int64_t begin, int64_t end) {
    for (int64_t from = begin; from < end; from += kTileTokens) {
      const int count = static_cast<int>(std::min<int64_t>(kTileTokens, end - from));
      for (int t = 0; t < count; ++t) {
        FloatsOfBits(ExactRow(false, from + t), k_dim_, codes_.data());
        for (int h = 0; h < heads_; ++h)
          scores_[static_cast<size_t>(h * kTileTokens + t)] =
              Dot(q_ + h * k_dim_, codes_.data(), k_dim_);
      }
      for (int h = 0; h < heads_; ++h) Softmax(h, 0, count, scores_.data() + h * kTileTokens);
      for (int t = 0; t < count; ++t) {
        FloatsOfBits(ExactRow(true, from + t), v_dim_, codes_.data());
        for (int h = 0; h < heads_; ++h)
          AddScaled(scores_[static_cast<size_t>(h * kTileTokens + t)], codes_.data(), v_dim_,
                    partial_->out.data() + h * v_dim_);
      }
    }
  }

  const BFloat16Bits* ExactRow(bool values, int64_t position) const {
    if (queries_.tail_slots == 0 || position < cache_.shape.sink_tokens)
      return cache_.WindowRow(unit_.request, unit_.head, values, position);
    const int64_t slot = position - cache_.length_before(unit_.request) + cache_.shape.recent_slots;
    return (values ? queries_.tail_v : queries_.tail_k) +
           ((int64_t{unit_.request} * cache_.num_kv_heads + unit_.head) * queries_.tail_slots +
            slot) *
               (values ? v_dim_ : k_dim_);
  }

  // Turns products [first, last) into weights of a head's running softmax. If the largest logit
  // rises, rescales the head's output. Returns that output.
  float* Softmax(int head, int first, int last, float* scores) {
    const auto h = static_cast<size_t>(head);
    float largest = partial_->max[h];
    for (int t = first; t < last; ++t) {
      scores[t] *= rule_.scale;
      if (rule_.softcap > 0) scores[t] = rule_.softcap * std::tanh(scores[t] / rule_.softcap);
      largest = std::max(largest, scores[t]);
    }
    float* const out = partial_->out.data() + head * v_dim_;
    if (largest > partial_->max[h]) {
      const float factor = std::exp(partial_->max[h] - largest);
      partial_->sum[h] *= factor;
      Scale(factor, v_dim_, out);
      partial_->max[h] = largest;
    }
    for (int t = first; t < last; ++t) {
      scores[t] = std::exp(scores[t] - largest);
      partial_->sum[h] += scores[t];
    }
    return out;
  }

  const HostCache& cache_;
  const AttendRule& rule_;
  const HostQueries& queries_;
  const RecordSide &keys_, &values_;
  const int k_dim_, v_dim_, heads_;
  std::vector<uint8_t> bytes_;
  std::vector<float> codes_, scores_, k_scales_, k_zeros_, v_scales_, v_zeros_, q_sums_;
  Unit unit_ = {};
  const float* q_ = nullptr;
  Partial* partial_ = nullptr;
};

// Merges the chunks of a query and KV head in order, then adds the attention sinks.
void Finish(const HostQueries& queries, const Unit& unit, int v_dim, std::span<Partial> partials) {
  const int64_t head = queries.heads == nullptr ? unit.head : queries.heads[unit.head];
  for (int64_t i = 0; i < queries.gqa_ratio; ++i) {
    const auto h = static_cast<size_t>(i);
    const int64_t q_head = head * queries.gqa_ratio + i;
    const float sink = queries.sinks == nullptr ? kNothing : queries.sinks[q_head];
    float largest = sink;
    for (const Partial& partial : partials) largest = std::max(largest, partial.max[h]);
    float* const out = queries.out + (unit.row * queries.num_q_heads + q_head) * v_dim;
    std::fill_n(out, v_dim, 0.0F);
    float sum = std::exp(sink - largest);
    for (const Partial& partial : partials) {
      const float factor = std::exp(partial.max[h] - largest);
      sum += partial.sum[h] * factor;
      AddScaled(factor, partial.out.data() + i * v_dim, v_dim, out);
    }
    Scale(1 / sum, v_dim, out);
  }
}

}  // namespace

int64_t QuantizedEnd(const HostCache& cache, const AttendRule& rule, int request,
                     int64_t position) {
  const int64_t length = rule.exact_chunk ? cache.length_before(request) : position + 1;
  return cache.shape.sink_tokens + cache.shape.Quantized(length);
}

void HostAttend(const HostCache& cache, const AttendRule& rule, const HostQueries& queries,
                int num_threads) {
  std::vector<Unit> units;
  std::vector<size_t> first_unit;  // first chunk of each query and KV head
  int64_t tokens = 0;
  for (int r = 0; r < cache.num_requests; ++r) {
    const int64_t rows = queries.row_begin[r + 1] - queries.row_begin[r];
    for (int64_t j = 0; j < rows; ++j) {
      const int64_t position = cache.length(r) - rows + j;
      const int64_t begin = rule.window > 0 ? std::max<int64_t>(0, position + 1 - rule.window) : 0;
      for (int h = 0; h < cache.num_kv_heads; ++h) {
        first_unit.push_back(units.size());
        for (int64_t from = begin; from <= position;) {
          const int64_t to = std::min(position + 1, (from / kChunkTokens + 1) * kChunkTokens);
          units.push_back({r, h, queries.row_begin[r] + j, position, from, to});
          tokens += to - from;
          from = to;
        }
      }
    }
  }
  const int v_dim = cache.shape.format.v.dim;
  std::vector<Partial> partials(units.size(), Partial(queries.gqa_ratio, v_dim));
  constexpr int64_t kWorthThreads = 1024;
  ParallelFor(
      static_cast<int64_t>(units.size()),
      [&](int64_t index) {
        const auto i = static_cast<size_t>(index);
        ChunkAttention(cache, rule, queries).Run(units[i], partials[i]);
      },
      tokens < kWorthThreads ? 1 : num_threads);
  first_unit.push_back(units.size());
  for (size_t i = 0; i + 1 < first_unit.size(); ++i)
    Finish(queries, units[first_unit[i]], v_dim,
           std::span(partials).subspan(first_unit[i], first_unit[i + 1] - first_unit[i]));
}

}  // namespace oscar
