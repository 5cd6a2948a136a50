// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests ragged batches over permuted pages, split into calls at random. The cache must not depend
// on the split, and every query must read what the simulator's query reads.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "calib/cache/side_tensors.h"
#include "tests/export/torch/operator_cache.h"

namespace oscar {
namespace {

constexpr int64_t kMaxTokens = 230;

struct Batch {
  std::vector<int64_t> lengths;
  std::vector<at::Tensor> k, v, q;  // [length, heads, dim] per request

  // Returns counts[r] rows of every request r, from row done[r] on.
  at::Tensor Next(const std::vector<at::Tensor>& rows, const std::vector<int64_t>& done,
                  const std::vector<int64_t>& counts) const {
    std::vector<at::Tensor> parts;
    for (size_t r = 0; r < rows.size(); ++r)
      parts.push_back(rows[r].slice(0, done[r], done[r] + counts[r]));
    return at::cat(parts);
  }
};

Batch MakeBatch(const LayerFormat& layer, std::vector<int64_t> lengths) {
  Batch batch{.lengths = std::move(lengths), .k = {}, .v = {}, .q = {}};
  for (const int64_t length : batch.lengths) {
    const auto rows = [&](int64_t heads, int64_t dim) {
      return at::randn({length, heads, dim}).to(at::kBFloat16);
    };
    batch.k.push_back(rows(layer.num_kv_heads, layer.k.dim));
    batch.v.push_back(rows(layer.num_kv_heads, layer.v.dim));
    batch.q.push_back(rows(layer.num_kv_heads * layer.gqa_ratio, layer.k.dim));
  }
  return batch;
}

// Returns the attention outputs of one request by definition, in float64 and rotated space:
// [length, query heads, dim]. `chunk_of` [length]: tokens before the call that contained a query.
at::Tensor Expected(const LayerFormat& layer, const Batch& batch, size_t request,
                    const AttentionRule& rule, const std::vector<int64_t>& chunk_of) {
  const int64_t length = batch.lengths[request], heads = layer.num_kv_heads;
  const SimulatedRows k = Simulate(layer, false, batch.k[request]),
                      v = Simulate(layer, true, batch.v[request]);
  const at::Tensor q = QueriesOfOne(OneSide(layer.k, at::kCPU), batch.q[request], heads);
  const at::Tensor out = at::zeros({length, heads * layer.gqa_ratio, layer.v.dim}, at::kDouble);
  for (int64_t i = 0; i < length; ++i) {
    const int64_t seen = rule.exact_chunk ? chunk_of[static_cast<size_t>(i)] : i + 1;
    const int64_t end = layer.sink + std::max<int64_t>(0, seen - layer.sink - layer.recent) /
                                         layer.step * layer.step;
    const at::Tensor t = at::arange(i + 1);
    const at::Tensor exact = t.lt(layer.sink).logical_or(t.ge(end)).view({1, -1, 1});
    const int64_t first = rule.window > 0 ? std::max<int64_t>(0, i + 1 - rule.window) : 0;
    const auto read = [&](const SimulatedRows& rows) {
      return at::where(exact, rows.exact.slice(1, 0, i + 1), rows.stored.slice(1, 0, i + 1))
          .slice(1, first)
          .to(at::kDouble)
          .repeat_interleave(layer.gqa_ratio, 0);
    };
    at::Tensor logits = at::matmul(read(k), q[i].to(at::kDouble).unsqueeze(-1)).squeeze(-1) * 0.125;
    if (rule.softcap > 0) logits = logits.div(rule.softcap).tanh().mul(rule.softcap);
    if (rule.sinks.defined())
      logits = at::cat({logits, rule.sinks.to(at::kDouble).unsqueeze(1)}, 1);
    const at::Tensor weights = logits.softmax(-1).slice(1, 0, i + 1 - first);
    out[i].copy_(at::matmul(weights.unsqueeze(1), read(v)).squeeze(1));
  }
  return out;
}

void ExpectSequence(const LayerFormat& layer, const AttentionRule& rule, unsigned seed) {
  std::mt19937 random(seed);
  at::manual_seed(seed);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  const Batch batch =
      MakeBatch(layer, {1 + below(kMaxTokens), 1 + below(40), 1 + below(kMaxTokens)});
  const size_t requests = batch.lengths.size();
  OperatorCache whole(layer, 3, kMaxTokens), cut(layer, 3, kMaxTokens);
  const std::vector<int64_t> none(requests);
  whole.Step(batch.lengths, batch.Next(batch.k, none, batch.lengths),
             batch.Next(batch.v, none, batch.lengths), batch.Next(batch.q, none, batch.lengths),
             rule);
  std::vector<int64_t> done(requests);
  std::vector<std::vector<at::Tensor>> out(requests);
  std::vector<std::vector<int64_t>> chunk_of(requests);
  constexpr int64_t kMost[] = {1, 3, 17, 100};
  while (done != batch.lengths) {
    std::vector<int64_t> counts(requests);
    const int64_t most = kMost[below(4)];
    for (size_t r = 0; r < requests; ++r)
      counts[r] = std::min(batch.lengths[r] - done[r], below(most + 1));
    if (std::ranges::max(counts) == 0) continue;
    const at::Tensor rows =
        cut.Step(counts, batch.Next(batch.k, done, counts), batch.Next(batch.v, done, counts),
                 batch.Next(batch.q, done, counts), rule);
    int64_t row = 0;
    for (size_t r = 0; r < requests; ++r) {
      out[r].push_back(rows.slice(0, row, row + counts[r]));
      chunk_of[r].insert(chunk_of[r].end(), static_cast<size_t>(counts[r]), done[r]);
      row += counts[r];
      done[r] += counts[r];
    }
  }
  for (size_t r = 0; r < requests; ++r) {
    const at::Tensor expected = Expected(layer, batch, r, rule, chunk_of[r]);
    const double error = at::cat(out[r]).to(at::kDouble).sub(expected).abs().max().item<double>();
    EXPECT_LT(error, 1e-5) << "seed " << seed << ", request " << r << " of " << batch.lengths[r];
    const auto request = static_cast<int64_t>(r);
    EXPECT_TRUE(whole.Read(false)[request].equal(cut.Read(false)[request])) << seed;
    EXPECT_TRUE(whole.Read(true)[request].equal(cut.Read(true)[request])) << seed;
    EXPECT_TRUE(whole.Window(0, request).equal(cut.Window(0, request))) << seed;
    const int64_t quantized = std::max<int64_t>(0, batch.lengths[r] - layer.sink - layer.recent) /
                              layer.step * layer.step;
    for (int64_t page = 0; page * layer.page_tokens < quantized; ++page)
      EXPECT_TRUE(whole.PageOf(0, request, page).equal(cut.PageOf(0, request, page))) << seed;
  }
}

LayerFormat Chosen(int64_t page_tokens, int64_t step) {
  const SideRecipe k{.quant_group_size = 16,
                     .mean = true,
                     .own_queries = true,
                     .scales = FittedScales(true),
                     .metadata = MetadataType::kByte,
                     .clip = {0.96, 0.9}};
  const SideRecipe v{.quant_group_size = 16,
                     .per_head = false,
                     .scales = FittedScales(false),
                     .metadata = MetadataType::kByte,
                     .clip = {0.92}};
  LayerFormat layer = MakeLayer(k, v);
  layer.page_tokens = page_tokens;
  layer.step = step;
  return layer;
}

TEST(TorchSequences, ReadWhatTheSimulatorReadsHoweverTheyAreCut) {
  for (unsigned seed = 0; seed < 6; ++seed)
    ExpectSequence(Chosen(seed % 2 == 0 ? 16 : 64, seed % 3 == 0 ? 1 : 8), {}, seed);
}

TEST(TorchSequences, ObeyWindowSoftcapAndSinks) {
  const at::Tensor sinks = at::randn({4});
  ExpectSequence(Chosen(16, 8), {.window = 50}, 10);
  ExpectSequence(Chosen(64, 1), {.softcap = 2}, 11);
  ExpectSequence(Chosen(16, 8), {.softcap = 3, .window = 90, .sinks = sinks}, 12);
  ExpectSequence(Chosen(16, 8), {.exact_chunk = true}, 13);
}

TEST(TorchSequences, KeepViewsOfDifferentBitsApart) {
  const SideRecipe k{.bits = {2, 3, 2, 4}, .metadata = MetadataType::kBFloat16},
      v{.bits = {2, 2, 2, 4}, .metadata = MetadataType::kBFloat16};
  for (unsigned seed = 20; seed < 23; ++seed) ExpectSequence(MakeLayer(k, v, 4), {}, seed);
}

// Drops the last tokens, as many as the ring has spare slots, and writes the right ones instead.
TEST(TorchSequences, ForgetTheLastTokens) {
  at::manual_seed(5);
  LayerFormat layer = Chosen(16, 8);
  const Batch batch = MakeBatch(layer, {200});
  OperatorCache whole(layer, 1, kMaxTokens), cropped(layer, 1, kMaxTokens);
  whole.Step({200}, batch.k[0], batch.v[0], batch.q[0]);
  const int64_t spare = layer.recent_slots - layer.recent - layer.step;
  const auto rows = [&](const std::vector<at::Tensor>& t, int64_t begin, int64_t end) {
    return t[0].slice(0, begin, end);
  };
  const at::Tensor other = at::randn({spare, 2, 64}).to(at::kBFloat16);
  cropped.Step({190}, rows(batch.k, 0, 190), rows(batch.v, 0, 190), rows(batch.q, 0, 190));
  cropped.Step({spare}, other, other, rows(batch.q, 0, spare));
  cropped.Crop(spare);
  EXPECT_EQ(cropped.length(0), 190);
  for (int64_t i = 190; i < 200; ++i)
    cropped.Step({1}, rows(batch.k, i, i + 1), rows(batch.v, i, i + 1), rows(batch.q, i, i + 1));
  EXPECT_TRUE(whole.Read(false).equal(cropped.Read(false)));
  EXPECT_TRUE(whole.Read(true).equal(cropped.Read(true)));
}

TEST(TorchSequences, RefuseAStepThatWasNotAnnounced) {
  LayerFormat layer = Chosen(16, 8);
  OperatorCache cache(layer, 1, kMaxTokens);
  const Batch batch = MakeBatch(layer, {4});
  EXPECT_THROW(cache.Step({3}, batch.k[0], batch.v[0], batch.q[0]), std::exception);
}

}  // namespace
}  // namespace oscar
