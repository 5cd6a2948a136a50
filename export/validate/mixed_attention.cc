// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See mixed_attention.h. A chunk of queries attends to the concatenation of the stored tokens and
// of the few that some query of the chunk reads exactly (the sinks and a band), under a mask. Where
// keys and values disagree about a token, it stands there with either side exact as well.
#include "export/validate/mixed_attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
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

}  // namespace

void MixedAttention(const AttentionSpec& spec, const ExactSides& exact, const at::Tensor& q,
                    const MixedCache& cache, at::Tensor& out) {
  if (!exact.any()) {
    CausalAttention(spec, q, cache.k_stored, cache.v_stored, {}, out);
    return;
  }
  const int64_t tokens = q.size(0);
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
