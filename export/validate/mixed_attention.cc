// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Queries are processed in chunks. Under a mask, a chunk attends to the stored tokens, and to the
// few tokens that one of its queries reads exactly: the sinks and a band of recent tokens. A token
// may be exact only in keys or only in values; then it appears once more in that form.
//
// On a GPU, plain windows need no mask. They are three softmaxes over ranges of keys that flash
// attention can select itself, joined by their log-sum-exps.
#include "export/validate/mixed_attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace oscar {
namespace {

// Returns the number of queries in a chunk. All queries of a chunk are multiplied by all keys that
// one of them reads exactly, a band at least as wide as the chunk. On a CPU smaller chunks
// therefore save time.
int64_t QueryChunk(at::Device device) { return device.is_cpu() ? 256 : 512; }

constexpr int64_t kMaskBytes = int64_t{64} << 20;

// Returns the first token of the band that the query at `position` reads exactly, on one side.
int64_t ExactFrom(const ExactTokens& tokens, int64_t position) {
  return tokens.quantized_end ? tokens.quantized_end(position + 1)
                              : std::numeric_limits<int64_t>::max();
}

// Whether keys and values have the same exact tokens for every query of a chunk.
bool SidesAgree(const ExactSides& exact, int64_t begin, int64_t end) {
  if (exact.k.sink != exact.v.sink) return false;
  for (int64_t i = begin; i < end; ++i) {
    if (ExactFrom(exact.k, i) != ExactFrom(exact.v, i)) return false;
  }
  return true;
}

}  // namespace

namespace {

// Returns `visible` as a mask that is added to logits, with aligned rows. Fused attention on a GPU
// would otherwise make it in every call.
at::Tensor BiasOf(const at::Tensor& visible, at::ScalarType dtype) {
  constexpr int64_t kAligned = 16;
  const int64_t keys = visible.size(1), whole = (keys + kAligned - 1) / kAligned * kAligned;
  const at::Tensor bias =
      at::zeros({visible.size(0), whole}, visible.options().dtype(dtype)).narrow(1, 0, keys);
  return bias.masked_fill_(visible.logical_not(), -std::numeric_limits<double>::infinity());
}

}  // namespace

// The keys that a chunk of queries reads. First come the stored tokens, then those that some query
// reads exactly on both sides, then those that are exact on only one side.
struct MixedMasks::Chunk {
  struct Part {
    bool k_exact, v_exact;
    int64_t from, to;  // tokens
  };
  std::vector<Part> parts;
  at::Tensor mask;  // [queries, tokens of all parts] what queries see: bool, or on a GPU its BiasOf

  Chunk(const AttentionSpec& spec, const ExactSides& exact, int64_t begin, int64_t end,
        const at::Tensor& q) {
    const std::optional<int64_t>& window = spec.window;
    const at::Device device = q.device();
    const int64_t first = begin - std::min(begin, window.value_or(end) - 1);
    const at::Tensor positions = at::arange(begin, end, at::kLong);
    const at::Tensor age = positions.to(device, /*non_blocking=*/true).unsqueeze(1) -
                           at::arange(end, at::TensorOptions().dtype(at::kLong).device(device));
    at::Tensor visible = age.ge(0);
    if (window) visible = visible.logical_and(age.lt(*window));
    const at::Tensor k_exact = ExactMask(exact.k, positions, end, device);
    const bool agree = SidesAgree(exact, begin, end);
    const at::Tensor v_exact = agree ? k_exact : ExactMask(exact.v, positions, end, device);
    // Only the sinks inside the attention window and the tokens from `exact_from` on are read
    // exactly by any query of the chunk.
    const int64_t sinks = std::max(exact.k.sink, exact.v.sink);
    const int64_t band = std::min(ExactFrom(exact.k, begin), ExactFrom(exact.v, begin));
    const int64_t sink_end = std::clamp(sinks, first, end);
    const int64_t exact_from = std::clamp(band, sink_end, end);
    std::vector<at::Tensor> masks;
    const auto add = [&](bool k, bool v, int64_t from, int64_t to) {
      if (from >= to) return;
      const auto is = [&](const at::Tensor& of_side, bool value) {
        const at::Tensor part = of_side.slice(1, from, to);
        return value ? part : part.logical_not();
      };
      parts.push_back({k, v, from, to});
      masks.push_back(
          visible.slice(1, from, to).logical_and(is(k_exact, k)).logical_and(is(v_exact, v)));
    };
    const auto add_exact = [&](bool k, bool v) {
      add(k, v, first, sink_end);
      add(k, v, exact_from, end);
    };
    // Between the sinks and `stored_end`, some query reads both sides as stored. Later tokens are
    // exact for every query on at least one side.
    const int64_t stored_end =
        std::min({end, ExactFrom(exact.k, end - 1), ExactFrom(exact.v, end - 1)});
    add(false, false, std::max(first, sinks), stored_end);
    add_exact(true, true);
    if (!agree) {
      add_exact(true, false);
      add_exact(false, true);
    }
    mask = at::cat(masks, 1);
    if (!device.is_cpu() && !NeedsExplicitAttention(spec)) mask = BiasOf(mask, q.scalar_type());
  }

  at::Tensor Keys(const MixedCache& cache) const {
    return Join(cache.k, cache.k_stored, &Part::k_exact);
  }
  at::Tensor Values(const MixedCache& cache) const {
    return Join(cache.v, cache.v_stored, &Part::v_exact);
  }

 private:
  at::Tensor Join(const at::Tensor& exact, const at::Tensor& stored, bool Part::*is_exact) const {
    std::vector<at::Tensor> rows;
    for (const Part& part : parts)
      rows.push_back((part.*is_exact ? exact : stored).slice(0, part.from, part.to));
    return at::cat(rows);
  }
};

MixedMasks::MixedMasks() = default;
MixedMasks::~MixedMasks() = default;
MixedMasks::MixedMasks(MixedMasks&&) noexcept = default;

void MixedMasks::Clear() {
  chunks_.clear();
  bytes_ = 0;
}

std::shared_ptr<const MixedMasks::Chunk> MixedMasks::Of(const AttentionSpec& spec,
                                                        const ExactSides& exact, int64_t begin,
                                                        int64_t end, const at::Tensor& q) {
  const std::pair key(begin, end);
  if (const auto known = chunks_.find(key); known != chunks_.end()) return known->second;
  const auto made = std::make_shared<const Chunk>(spec, exact, begin, end, q);
  if (bytes_ < kMaskBytes) {
    chunks_.emplace(key, made);
    bytes_ += static_cast<int64_t>(made->mask.nbytes());
  }
  return made;
}

namespace {

// Returns the windows, if keys and values have the same ones and each query's windows are one token
// ahead of the previous query's. Otherwise returns nothing.
std::optional<CacheWindows> PlainWindows(const ExactSides& exact, int64_t tokens) {
  if (!exact.k.quantized_end || exact.k.sink != exact.v.sink) return std::nullopt;
  const CacheWindows windows{exact.k.sink, tokens - exact.k.quantized_end(tokens)};
  for (int64_t i = 0; i < tokens; ++i) {
    const int64_t end = std::max<int64_t>(0, i + 1 - windows.recent);
    if (ExactFrom(exact.k, i) != end || ExactFrom(exact.v, i) != end) return std::nullopt;
  }
  return windows;
}

// Attention over a part of the keys.
struct Part {
  at::Tensor out;  // [rows, num_q_heads, dv]
  at::Tensor lse;  // [num_q_heads, rows] float32, over the scaled logits
};

enum class Sees { kAll, kUpToItself, kRecent };

// Computes attention of q [n, num_q_heads, d] over k, v [m, num_kv_heads, d]. Unless `sees` is
// kAll, n must equal m.
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

// Drops the rows before `begin` from a FlashPart result.
Part From(const Part& part, int64_t begin) {
  return {part.out.slice(0, begin), part.lse.slice(1, begin)};
}

// Joins the attention over several parts of the keys, in which each key of a query occurs once.
// Returns [rows, num_q_heads, dv] float32.
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
  const int64_t inside = std::min(tokens, sink + recent);  // queries that see only exact keys
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
                    const MixedCache& cache, MixedMasks& masks, at::Tensor& out) {
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
  const int64_t step = QueryChunk(q.device());
  for (int64_t begin = 0; begin < tokens; begin += step) {
    const int64_t end = std::min(begin + step, tokens);
    const auto chunk = masks.Of(spec, exact, begin, end, q);
    const at::Tensor keys = chunk->Keys(cache), values = chunk->Values(cache);
    if (NeedsExplicitAttention(spec)) {
      result.slice(2, begin, end)
          .copy_(ExplicitAttention(spec, queries.slice(2, begin, end), keys, values, chunk->mask,
                                   sinks));
      continue;
    }
    result.slice(2, begin, end)
        .copy_(FusedAttention(queries.slice(2, begin, end), HeadsFirst(keys, spec),
                              HeadsFirst(values, spec), chunk->mask, spec.scale));
  }
}

}  // namespace oscar
