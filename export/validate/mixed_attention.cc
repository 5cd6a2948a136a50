// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A chunk of queries attends to the concatenation of the stored tokens and
// of the few that some query of the chunk reads exactly (the sinks and a band), under a mask. Where
// keys and values disagree about a token, it stands there with either side exact as well. On a GPU
// plain windows need no mask: they are three softmaxes over keys that flash attention can leave out
// by itself, joined by their log-sum-exps.
#include "export/validate/mixed_attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

namespace oscar {
namespace {

constexpr int64_t kQueryChunk = 512;

// From which token on the query at `position` reads a side exactly.
int64_t ExactFrom(const ExactTokens& tokens, int64_t position) {
  return tokens.quantized_end ? tokens.quantized_end(position + 1)
                              : std::numeric_limits<int64_t>::max();
}

// Whether no query of a chunk reads a token exactly on one side alone.
bool SidesAgree(const ExactSides& exact, int64_t begin, int64_t end) {
  if (exact.k.sink != exact.v.sink) return false;
  for (int64_t i = begin; i < end; ++i) {
    if (ExactFrom(exact.k, i) != ExactFrom(exact.v, i)) return false;
  }
  return true;
}

// Tokens that a chunk reads in one way, and who of it does.
struct Column {
  at::Tensor k, v;
  at::Tensor mask;  // bool [queries, tokens]
};

class Chunk {
 public:
  Chunk(const AttentionSpec& spec, const ExactSides& exact, const MixedCache& cache, int64_t begin,
        int64_t end)
      : first_(begin - std::min(begin, spec.window.value_or(end) - 1)), end_(end) {
    const at::Device device = cache.k.device();
    const at::Tensor positions = at::arange(begin, end, at::kLong);
    const at::Tensor age = positions.to(device, /*non_blocking=*/true).unsqueeze(1) -
                           at::arange(end, at::TensorOptions().dtype(at::kLong).device(device));
    visible_ = age.ge(0);
    if (spec.window) visible_ = visible_.logical_and(age.lt(*spec.window));
    k_exact_ = ExactMask(exact.k, positions, end, device);
    const bool agree = SidesAgree(exact, begin, end);
    v_exact_ = agree ? k_exact_ : ExactMask(exact.v, positions, end, device);
    // Exact tokens: the sinks that are in reach, then the band of the chunk's first query.
    const int64_t sinks = std::max(exact.k.sink, exact.v.sink);
    const int64_t band = std::min(ExactFrom(exact.k, begin), ExactFrom(exact.v, begin));
    sink_end_ = std::clamp(sinks, first_, end);
    band_ = std::clamp(band, sink_end_, end);
    Add(cache.k_stored, cache.v_stored, false, false, first_, end);
    AddExact(cache.k, cache.v, true, true);
    if (agree) return;
    AddExact(cache.k, cache.v_stored, true, false);
    AddExact(cache.k_stored, cache.v, false, true);
  }

  at::Tensor Keys() const { return Join(&Column::k, 0); }
  at::Tensor Values() const { return Join(&Column::v, 0); }
  at::Tensor Mask() const { return Join(&Column::mask, 1); }

 private:
  void AddExact(const at::Tensor& k, const at::Tensor& v, bool k_exact, bool v_exact) {
    Add(k, v, k_exact, v_exact, first_, sink_end_);
    Add(k, v, k_exact, v_exact, band_, end_);
  }
  void Add(const at::Tensor& k, const at::Tensor& v, bool k_exact, bool v_exact, int64_t from,
           int64_t to) {
    if (from == to) return;
    const auto is = [&](const at::Tensor& mask, bool value) {
      const at::Tensor part = mask.slice(1, from, to);
      return value ? part : part.logical_not();
    };
    columns_.push_back({k.slice(0, from, to), v.slice(0, from, to),
                        visible_.slice(1, from, to)
                            .logical_and(is(k_exact_, k_exact))
                            .logical_and(is(v_exact_, v_exact))});
  }
  at::Tensor Join(at::Tensor Column::*member, int64_t dim) const {
    std::vector<at::Tensor> parts;
    for (const Column& column : columns_) parts.push_back(column.*member);
    return at::cat(parts, dim);
  }

  int64_t first_, end_, sink_end_ = 0, band_ = 0;
  at::Tensor visible_, k_exact_, v_exact_;  // bool [queries, end]
  std::vector<Column> columns_;
};

// The windows of both sides, where they are the same and move with every token of `tokens`.
std::optional<CacheWindows> PlainWindows(const ExactSides& exact, int64_t tokens) {
  if (!exact.k.quantized_end || exact.k.sink != exact.v.sink) return std::nullopt;
  const CacheWindows windows{exact.k.sink, tokens - exact.k.quantized_end(tokens)};
  for (int64_t i = 0; i < tokens; ++i) {
    const int64_t end = std::max<int64_t>(0, i + 1 - windows.recent);
    if (ExactFrom(exact.k, i) != end || ExactFrom(exact.v, i) != end) return std::nullopt;
  }
  return windows;
}

// Softmax over a part of the keys.
struct Part {
  at::Tensor out;  // [rows, num_q_heads, dv]
  at::Tensor lse;  // [num_q_heads, rows] float32, of the scaled logits
};

enum class Sees { kAll, kUpToItself, kRecent };

// q [n, num_q_heads, d] over k, v [m, num_kv_heads, d]; n is m unless every query sees all.
Part FlashPart(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
               Sees sees, int64_t recent = 0) {
  const bool band = sees == Sees::kRecent;
  const auto results = at::_flash_attention_forward(
      q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), /*cum_seq_q=*/{}, /*cum_seq_k=*/{}, q.size(0),
      k.size(0), /*dropout_p=*/0.0, /*is_causal=*/sees == Sees::kUpToItself,
      /*return_debug_mask=*/false, scale, band ? std::optional(recent - 1) : std::nullopt,
      band ? std::optional<int64_t>(0) : std::nullopt);
  return {std::get<0>(results)[0], std::get<1>(results)[0]};
}

// Rows from `begin` on of what FlashPart gave.
Part From(const Part& part, int64_t begin) {
  return {part.out.slice(0, begin), part.lse.slice(1, begin)};
}

// Every query sees each key in one part: [rows, num_q_heads, dv] float32.
at::Tensor Joined(const std::vector<Part>& parts) {
  std::vector<at::Tensor> sums;
  for (const Part& part : parts) sums.push_back(part.lse);
  const at::Tensor weights = at::stack(sums).softmax(0).transpose(1, 2).unsqueeze(-1);
  at::Tensor out;
  for (size_t i = 0; i < parts.size(); ++i) {
    const at::Tensor share = parts[i].out.mul(weights[static_cast<int64_t>(i)]);
    out = out.defined() ? out.add_(share) : share;
  }
  return out;
}

void WindowedFlash(const AttentionSpec& spec, const CacheWindows& windows, const at::Tensor& q,
                   const MixedCache& cache, at::Tensor& out) {
  const int64_t tokens = q.size(0), sink = windows.sink, recent = windows.recent;
  const int64_t inside = std::min(tokens, sink + recent);  // queries that see exact keys alone
  const auto rows = [](const at::Tensor& x, int64_t begin, int64_t end) {
    return x.slice(0, begin, end);
  };
  const auto part = [&](int64_t first_query, const at::Tensor& k, const at::Tensor& v,
                        int64_t first_key, int64_t end_key, Sees sees) {
    const int64_t end_query = sees == Sees::kAll ? tokens : first_query + end_key - first_key;
    return FlashPart(rows(q, first_query, end_query), rows(k, first_key, end_key),
                     rows(v, first_key, end_key), spec.scale, sees, recent);
  };
  rows(out, 0, inside).copy_(part(0, cache.k, cache.v, 0, inside, Sees::kUpToItself).out);
  if (inside == tokens) return;
  std::vector<Part> parts = {
      part(inside, cache.k_stored, cache.v_stored, sink, tokens - recent, Sees::kUpToItself),
      From(part(sink, cache.k, cache.v, sink, tokens, Sees::kRecent), recent)};
  if (sink > 0) parts.push_back(part(inside, cache.k, cache.v, 0, sink, Sees::kAll));
  rows(out, inside, tokens).copy_(Joined(parts));
}

}  // namespace

void MixedAttention(const AttentionSpec& spec, const ExactSides& exact, const at::Tensor& q,
                    const MixedCache& cache, at::Tensor& out) {
  if (!exact.any()) {
    CausalAttention(spec, q, cache.k_stored, cache.v_stored, {}, out);
    return;
  }
  const int64_t tokens = q.size(0);
  if (!spec.window && TakesFlash(spec, q, cache.k, cache.v)) {
    const std::optional<CacheWindows> windows = PlainWindows(exact, tokens);
    if (windows && windows->recent > 0) {
      WindowedFlash(spec, *windows, q, cache, out);
      return;
    }
  }
  const at::Tensor queries = HeadsFirst(q, spec), result = HeadsFirst(out, spec);
  const at::Tensor sinks = SinkLogits(spec, q.device());
  for (int64_t begin = 0; begin < tokens; begin += kQueryChunk) {
    const int64_t end = std::min(begin + kQueryChunk, tokens);
    const Chunk chunk(spec, exact, cache, begin, end);
    if (NeedsExplicitAttention(spec)) {
      result.slice(2, begin, end)
          .copy_(ExplicitAttention(spec, queries.slice(2, begin, end), chunk.Keys(), chunk.Values(),
                                   chunk.Mask(), sinks));
      continue;
    }
    result.slice(2, begin, end)
        .copy_(FusedAttention(queries.slice(2, begin, end), HeadsFirst(chunk.Keys(), spec),
                              HeadsFirst(chunk.Values(), spec), chunk.Mask(), spec.scale));
  }
}

}  // namespace oscar
