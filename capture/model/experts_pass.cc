// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/experts_pass.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "capture/model/decoder_layer.h"
#include "capture/ranks/rank_group.h"
#include "linalg/check.h"

namespace oscar {

ExpertsPass::ExpertsPass(const LayerSpec& layer, const LayerWeights& weights, double eps,
                         int64_t token_chunk, std::span<at::Tensor> streams,
                         std::vector<std::vector<RowRange>> chunks, RankGroup* ranks)
    : layer_(layer),
      weights_(weights),
      eps_(eps),
      token_chunk_(token_chunk),
      streams_(streams),
      beside_mlp_(layer.mlp.down.exists()),
      chunks_(std::move(chunks)),
      ranks_(ranks) {
  OSCAR_CHECK(layer.experts && !layer.parallel);
  OSCAR_CHECK(ranks == nullptr || streams.size() == 1);
  for (size_t s = 0; s < streams_.size(); ++s) {
    std::vector<at::Tensor> experts, expert_weights;  // of each chunk
    for (const RowRange& chunk : chunks_[s]) {
      const at::Tensor rows = streams_[s].narrow(0, chunk.first, chunk.count);
      const at::Tensor x = layer_.experts->router.normed_input ? rows : Input(rows);
      Choices choices = ChooseExperts(*layer_.experts, weights_.router, eps_, x);
      experts.push_back(std::move(choices.experts));
      expert_weights.push_back(std::move(choices.weights));
    }
    orders_.push_back(
        SortByExpert({at::cat(experts), at::cat(expert_weights)}, layer_.experts->num_experts));
    sums_.push_back(at::zeros_like(streams_[s]));
  }
  counts_.emplace_back();
  for (int64_t e = 0; e < layer_.experts->num_experts; ++e)
    counts_[0].push_back(orders_[0].count(e));
  if (ranks_ == nullptr) return;
  const at::Tensor own = at::tensor(counts_[0], at::kLong).to(streams_[0].device());
  const at::Tensor all = ranks_->AllGather(own).cpu();
  const int64_t* count = all.const_data_ptr<int64_t>();
  counts_.clear();
  for (int r = 0; r < ranks_->size(); ++r, count += own.numel())
    counts_.emplace_back(count, count + own.numel());
}

at::Tensor ExpertsPass::Input(const at::Tensor& hidden) const {
  return beside_mlp_ ? Norm(layer_.experts_in_norm, weights_.experts_in_norm, eps_, hidden)
                     : Norm(layer_.mlp_norm, weights_.mlp_norm, eps_, hidden);
}

void ExpertsPass::Add(const ExpertRun& run, const ExpertWeights& experts) {
  if (ranks_ != nullptr) {
    AddOfAllRanks(run, experts);
    return;
  }
  for (size_t s = 0; s < streams_.size(); ++s) {
    const auto input = [&](const at::Tensor& tokens) {
      return Input(streams_[s].index_select(0, tokens));
    };
    AddExperts(*layer_.experts, experts, orders_[s], token_chunk_, input, sums_[s]);
  }
}

void ExpertsPass::AddOfAllRanks(const ExpertRun& run, const ExpertWeights& experts) {
  const TokensByExpert& order = orders_[0];
  const auto begin_of = [&](int64_t e) { return order.begins[static_cast<size_t>(e)]; };
  const int64_t first = begin_of(run.first), count = begin_of(run.first + run.count) - first;
  const at::Tensor tokens = order.tokens.narrow(0, first, count);
  // In the order of experts, and so of the ranks that have them.
  std::vector<int64_t> sent, received;
  for (int r = 0; r < ranks_->size(); ++r) {
    const ExpertRun slice = SliceOfRun(run, r, ranks_->size());
    sent.push_back(begin_of(slice.first + slice.count) - begin_of(slice.first));
    const auto from = counts_[static_cast<size_t>(r)].begin() + experts.run.first;
    received.push_back(std::accumulate(from, from + experts.run.count, int64_t{0}));
  }
  const at::Tensor rows = ranks_->AllToAll(streams_[0].index_select(0, tokens), sent, received);
  const at::Tensor weights =
      ranks_->AllToAll(order.weights.narrow(0, first, count), sent, received);

  // They come by rank, then expert; of one rank they are by expert, then rank: tokens ascending.
  TokensByExpert all;
  all.begins.assign(order.begins.size(), 0);
  std::vector<int64_t> places, next(received.size());
  std::exclusive_scan(received.begin(), received.end(), next.begin(), int64_t{0});
  for (int64_t e = experts.run.first; e < experts.run.first + experts.run.count; ++e) {
    all.begins[static_cast<size_t>(e)] = std::ssize(places);
    for (size_t r = 0; r < next.size(); ++r) {
      for (int64_t i = counts_[r][static_cast<size_t>(e)]; i > 0; --i) places.push_back(next[r]++);
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
      ranks_->AllToAll(at::empty_like(rows).index_copy_(0, place, outputs), received, sent);
  for (int64_t e = run.first; e < run.first + run.count; ++e) {
    const int64_t begin = begin_of(e) - first, own = begin_of(e + 1) - begin_of(e);
    if (own == 0) continue;
    sums_[0].index_add_(0, tokens.narrow(0, begin, own), returned.narrow(0, begin, own));
  }
}

void ExpertsPass::Finish(const std::function<at::Tensor(size_t stream, int64_t first_row,
                                                        int64_t num_rows)>& per_layer_input) {
  for (size_t s = 0; s < streams_.size(); ++s) {
    for (const auto& [begin, count] : chunks_[s]) {
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
  std::vector<int64_t> sums(counts_[0].size());
  for (const std::vector<int64_t>& of_rank : counts_)
    std::ranges::transform(sums, of_rank, sums.begin(), std::plus());
  return sums;
}

int64_t ExpertsPass::HeldBytes(const ExpertsSpec& experts, int64_t tokens, int64_t element) {
  // The sum; choices, their sorting and the sorted ones, int64 or float32 each.
  return tokens * (experts.hidden_size * element + experts.router.top_k * (5 * 8 + 3 * 4));
}

}  // namespace oscar
