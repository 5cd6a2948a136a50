// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the experts of one layer on all tokens. It routes every token, processes one ExpertRun after
// another, and finally adds the experts' sum to the hidden states. So each expert is read once. The
// sum of each stream (a copy of the hidden states, see LayerLoop::Run) is a tensor as large as the
// stream.
// With several ranks, each expert stays on the rank that read it, and tokens are sent there. A rank
// applies its experts to the tokens of all ranks, in the same steps as a single rank would. A
// token's results are added in the order of the experts. Only tokens of the same stretch
// (token_layout.h) share a step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "capture/model/experts/experts.h"
#include "capture/model/run/layer_weights.h"
#include "capture/model/run/token_layout.h"  // RowRange
#include "capture/model/spec/model_spec.h"

namespace oscar {

class ExpertsPass {
 public:
  // Row ranges of a stream whose tokens share the steps of experts. In all other steps of the
  // layer, each range is processed by itself.
  using Stretch = std::vector<RowRange>;

  // Keeps references to all arguments. `streams`: hidden states [T_stream, hidden_size] after the
  // layer's attention; they must not change until Finish. `stretches`: for each stream, its
  // stretches. Waits for the device once per stretch. With several `ranks`, there is only one
  // stream, with this rank's tokens. `stretches` then has all stretches of the run, and all ranks
  // make the same calls.
  ExpertsPass(const LayerSpec& layer, const LayerWeights& weights, double eps, int64_t token_chunk,
              std::span<at::Tensor> streams, std::vector<std::vector<Stretch>> stretches,
              RankGroup& ranks = OneRank());

  // Adds a run of experts; `experts` is this rank's slice of it.
  void Add(const ExpertRun& run, const ExpertWeights& experts);

  // Applies the layer's steps after the experts and adds the result to the hidden states.
  // `per_layer_input` returns rows [n, dim] of a stream, or an undefined tensor if the layer has no
  // such input.
  void Finish(const std::function<at::Tensor(size_t stream, int64_t first_row, int64_t num_rows)>&
                  per_layer_input);

  // Returns, for each expert, how many tokens of the first stream chose it on all ranks.
  // -> [num_experts]
  std::vector<int64_t> TokensPerExpert() const;

  // Bytes that a pass needs for `tokens` tokens of one stream.
  static int64_t HeldBytes(const ExpertsSpec& experts, int64_t tokens, int64_t element);

 private:
  at::Tensor Input(const at::Tensor& hidden) const;  // experts' input for hidden states
  TokensByExpert Route(const at::Tensor& stream, const Stretch& stretch) const;
  void AddOfAllRanks(const ExpertRun& run, const ExpertWeights& experts, size_t stretch);

  const LayerSpec& layer_;
  const LayerWeights& weights_;
  double eps_;
  int64_t token_chunk_;
  std::span<at::Tensor> streams_;
  bool beside_mlp_;  // the layer has an MLP and experts
  std::vector<std::vector<Stretch>> stretches_;
  RankGroup& ranks_;
  std::vector<std::vector<TokensByExpert>> orders_;  // for each stream and stretch
  // Token counts of the first stream: [stretches][ranks, num_experts].
  std::vector<std::vector<std::vector<int64_t>>> counts_;
  std::vector<at::Tensor> sums_;  // [T_stream, hidden_size]
};

}  // namespace oscar
