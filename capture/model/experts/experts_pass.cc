// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/experts/experts_pass.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "capture/model/run/decoder_layer.h"
#include "capture/ranks/rank_group.h"
#include "linalg/base/check.h"

namespace oscar {

ExpertsPass::ExpertsPass(const LayerSpec& layer, const LayerWeights& weights, double eps,
                         int64_t token_chunk, std::span<at::Tensor> streams,
                         std::vector<std::vector<Stretch>> stretches, RankGroup& ranks)
    : layer_(layer),
      weights_(weights),
      eps_(eps),
      token_chunk_(token_chunk),
      streams_(streams),
      beside_mlp_(layer.mlp.down.exists()),
      stretches_(std::move(stretches)),
      ranks_(ranks) {
  OSCAR_CHECK(layer.experts && !layer.parallel);
  OSCAR_CHECK(ranks.size() == 1 || streams.size() == 1);
  for (size_t s = 0; s < streams_.size(); ++s) {
    std::vector<TokensByExpert>& orders = orders_.emplace_back();
    for (const Stretch& stretch : stretches_[s]) orders.push_back(Route(streams_[s], stretch));
    sums_.push_back(at::zeros_like(streams_[s]));
  }
  const int64_t num_experts = layer_.experts->num_experts;
  std::vector<int64_t> own;  // [stretches, num_experts]
  for (const TokensByExpert& order : orders_[0])
    for (int64_t e = 0; e < num_experts; ++e) own.push_back(order.count(e));
  const at::Tensor sent = at::tensor(own, at::kLong);
  const at::Tensor all = ranks_.size() == 1 ? sent.unsqueeze(0)
                                            : ranks_.AllGather(sent.to(streams_[0].device())).cpu();
  const auto* const count = all.const_data_ptr<int64_t>();  // [ranks, stretches, num_experts]
  for (size_t g = 0; g < orders_[0].size(); ++g) {
    counts_.emplace_back();
    for (int64_t r = 0; r < all.size(0); ++r) {
      const auto* const begin = count + r * all.size(1) + static_cast<int64_t>(g) * num_experts;
      counts_.back().emplace_back(begin, begin + num_experts);
    }
  }
}

// Routes all tokens of a stretch.
TokensByExpert ExpertsPass::Route(const at::Tensor& stream, const Stretch& stretch) const {
  const auto longs = at::dtype(at::kLong).device(stream.device());
  const int64_t top_k = layer_.experts->router.top_k;
  std::vector<at::Tensor> experts = {at::empty({0, top_k}, longs)},
                          weights = {at::empty({0, top_k}, longs.dtype(at::kFloat))};
  for (const RowRange& chunk : stretch) {
    const at::Tensor rows = stream.narrow(0, chunk.first, chunk.count);
    const at::Tensor x = layer_.experts->router.normed_input ? rows : Input(rows);
    Choices choices = ChooseExperts(*layer_.experts, weights_.router, eps_, x);
    experts.push_back(std::move(choices.experts));
    weights.push_back(std::move(choices.weights));
  }
  TokensByExpert order =
      SortByExpert({at::cat(experts), at::cat(weights)}, layer_.experts->num_experts);
  if (!stretch.empty()) order.tokens.add_(stretch.front().first);
  return order;
}

at::Tensor ExpertsPass::Input(const at::Tensor& hidden) const {
  return beside_mlp_ ? Norm(layer_.experts_in_norm, weights_.experts_in_norm, eps_, hidden)
                     : Norm(layer_.mlp_norm, weights_.mlp_norm, eps_, hidden);
}

void ExpertsPass::Add(const ExpertRun& run, const ExpertWeights& experts) {
  for (size_t s = 0; s < streams_.size(); ++s) {
    const auto input = [&](const at::Tensor& tokens) {
      return Input(streams_[s].index_select(0, tokens));
    };
    for (size_t g = 0; g < orders_[s].size(); ++g) {
      if (ranks_.size() > 1) {
        AddOfAllRanks(run, experts, g);
      } else {
        AddExperts(*layer_.experts, experts, orders_[s][g], token_chunk_, input, sums_[s]);
      }
    }
  }
}

void ExpertsPass::AddOfAllRanks(const ExpertRun& run, const ExpertWeights& experts,
                                size_t stretch) {
  const TokensByExpert& order = orders_[0][stretch];
  const std::vector<std::vector<int64_t>>& counts = counts_[stretch];
  const auto begin_of = [&](int64_t e) { return order.begins[static_cast<size_t>(e)]; };
  const int64_t first = begin_of(run.first), count = begin_of(run.first + run.count) - first;
  const at::Tensor tokens = order.tokens.narrow(0, first, count);
  const bool any = std::ranges::any_of(counts, [&](const std::vector<int64_t>& of_rank) {
    const auto begin = of_rank.begin() + run.first;
    return std::any_of(begin, begin + run.count, [](int64_t of_expert) { return of_expert > 0; });
  });
  if (!any) return;  // on all ranks: no token of the stretch chose an expert of this run
  // Rows are sorted by expert. Each rank has consecutive experts, so rows are also sorted by rank.
  std::vector<int64_t> sent, received;
  for (int r = 0; r < ranks_.size(); ++r) {
    const ExpertRun slice = SliceOfRun(run, r, ranks_.size());
    sent.push_back(begin_of(slice.first + slice.count) - begin_of(slice.first));
    const auto from = counts[static_cast<size_t>(r)].begin() + experts.run.first;
    received.push_back(std::accumulate(from, from + experts.run.count, int64_t{0}));
  }
  const at::Tensor rows = ranks_.AllToAll(streams_[0].index_select(0, tokens), sent, received);
  const at::Tensor weights = ranks_.AllToAll(order.weights.narrow(0, first, count), sent, received);

  // Rows arrive sorted by rank, then by expert. They are reordered by expert, then by rank, so that
  // tokens ascend within each expert.
  TokensByExpert all;
  all.begins.assign(order.begins.size(), 0);
  std::vector<int64_t> places, next(received.size());
  std::exclusive_scan(received.begin(), received.end(), next.begin(), int64_t{0});
  for (int64_t e = experts.run.first; e < experts.run.first + experts.run.count; ++e) {
    all.begins[static_cast<size_t>(e)] = std::ssize(places);
    for (size_t r = 0; r < next.size(); ++r) {
      for (int64_t i = counts[r][static_cast<size_t>(e)]; i > 0; --i) places.push_back(next[r]++);
    }
    all.begins[static_cast<size_t>(e) + 1] = std::ssize(places);
  }
  const at::Tensor place = at::tensor(places, at::kLong).to(rows.device());
  const at::Tensor by_expert = rows.index_select(0, place);
  all.tokens = at::arange(std::ssize(places), place.options());
  all.weights = weights.index_select(0, place);
  at::Tensor outputs = at::zeros_like(by_expert);
  AddExperts(
      *layer_.experts, experts, all, token_chunk_,
      [&](const at::Tensor& chosen) { return Input(by_expert.index_select(0, chosen)); }, outputs);

  const at::Tensor returned =
      ranks_.AllToAll(at::empty_like(rows).index_copy_(0, place, outputs), received, sent);
  for (int64_t e = run.first; e < run.first + run.count; ++e) {
    const int64_t begin = begin_of(e) - first, own = begin_of(e + 1) - begin_of(e);
    if (own == 0) continue;
    sums_[0].index_add_(0, tokens.narrow(0, begin, own), returned.narrow(0, begin, own));
  }
}

void ExpertsPass::Finish(const std::function<at::Tensor(size_t stream, int64_t first_row,
                                                        int64_t num_rows)>& per_layer_input) {
  for (size_t s = 0; s < streams_.size(); ++s) {
    std::vector<RowRange> chunks;
    for (const Stretch& stretch : stretches_[s])
      chunks.insert(chunks.end(), stretch.begin(), stretch.end());
    for (const auto& [begin, count] : chunks) {
      at::Tensor hidden = streams_[s].narrow(0, begin, count);
      at::Tensor out = sums_[s].narrow(0, begin, count);
      if (beside_mlp_) {
        const at::Tensor mlp =
            Mlp(layer_.mlp, weights_, eps_, Norm(layer_.mlp_norm, weights_.mlp_norm, eps_, hidden));
        out = Norm(layer_.mlp_out_norm, weights_.mlp_out_norm, eps_, mlp)
                  .add(Norm(layer_.experts_out_norm, weights_.experts_out_norm, eps_, out));
      } else if (layer_.experts->shared_size > 0) {
        out = out.add(SharedExpert(*layer_.experts, weights_.router, Input(hidden)));
      }
      if (layer_.experts->sum_scale != 1) out = out.mul(layer_.experts->sum_scale);
      out = Norm(layer_.post_mlp_norm, weights_.post_mlp_norm, eps_, out);
      hidden.add_(layer_.residual_multiplier == 1 ? out : out.mul(layer_.residual_multiplier));
      AddPerLayerInput(layer_, weights_, eps_, per_layer_input(s, begin, count), hidden);
    }
  }
}

std::vector<int64_t> ExpertsPass::TokensPerExpert() const {
  std::vector<int64_t> sums(static_cast<size_t>(layer_.experts->num_experts));
  for (const auto& of_stretch : counts_)
    for (const std::vector<int64_t>& of_rank : of_stretch)
      std::ranges::transform(sums, of_rank, sums.begin(), std::plus());
  return sums;
}

int64_t ExpertsPass::HeldBytes(const ExpertsSpec& experts, int64_t tokens, int64_t element) {
  // Counts the experts' sum and the int64 and float32 tensors that hold the choices, their sort
  // indices and the sorted choices.
  return tokens * (experts.hidden_size * element + experts.router.top_k * (5 * 8 + 3 * 4));
}

}  // namespace oscar
