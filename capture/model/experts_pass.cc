// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/experts_pass.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "capture/model/decoder_layer.h"
#include "linalg/check.h"

namespace oscar {

ExpertsPass::ExpertsPass(const LayerSpec& layer, const LayerWeights& weights, double eps,
                         int64_t token_chunk, std::span<at::Tensor> streams)
    : layer_(layer),
      weights_(weights),
      eps_(eps),
      token_chunk_(token_chunk),
      streams_(streams),
      beside_mlp_(layer.mlp.down.exists()) {
  OSCAR_CHECK(layer.experts && !layer.parallel);
  for (const at::Tensor& hidden : streams_) {
    std::vector<at::Tensor> experts, expert_weights;  // of each chunk
    for (int64_t begin = 0; begin < hidden.size(0); begin += token_chunk_) {
      const at::Tensor rows =
          hidden.narrow(0, begin, std::min(token_chunk_, hidden.size(0) - begin));
      const at::Tensor x = layer_.experts->router.normed_input ? rows : Input(rows);
      Choices choices = ChooseExperts(*layer_.experts, weights_.router, eps_, x);
      experts.push_back(std::move(choices.experts));
      expert_weights.push_back(std::move(choices.weights));
    }
    orders_.push_back(
        SortByExpert({at::cat(experts), at::cat(expert_weights)}, layer_.experts->num_experts));
    sums_.push_back(at::zeros_like(hidden));
  }
}

at::Tensor ExpertsPass::Input(const at::Tensor& hidden) const {
  return beside_mlp_ ? Norm(layer_.experts_in_norm, weights_.experts_in_norm, eps_, hidden)
                     : Norm(layer_.mlp_norm, weights_.mlp_norm, eps_, hidden);
}

void ExpertsPass::Add(const ExpertWeights& experts) {
  for (size_t s = 0; s < streams_.size(); ++s) {
    const auto input = [&](const at::Tensor& tokens) {
      return Input(streams_[s].index_select(0, tokens));
    };
    AddExperts(*layer_.experts, experts, orders_[s], token_chunk_, input, sums_[s]);
  }
}

void ExpertsPass::Finish(const std::function<at::Tensor(size_t stream, int64_t first_row,
                                                        int64_t num_rows)>& per_layer_input) {
  for (size_t s = 0; s < streams_.size(); ++s) {
    for (int64_t begin = 0; begin < streams_[s].size(0); begin += token_chunk_) {
      const int64_t count = std::min(token_chunk_, streams_[s].size(0) - begin);
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
  std::vector<int64_t> counts;
  for (int64_t e = 0; e < layer_.experts->num_experts; ++e)
    counts.push_back(orders_.front().count(e));
  return counts;
}

int64_t ExpertsPass::HeldBytes(const ExpertsSpec& experts, int64_t tokens, int64_t element) {
  // The sum; choices, their sorting and the sorted ones, int64 or float32 each.
  return tokens * (experts.hidden_size * element + experts.router.top_k * (5 * 8 + 3 * 4));
}

}  // namespace oscar
