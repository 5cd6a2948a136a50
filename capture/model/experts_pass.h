// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The experts of one layer over all tokens of a run: routes every token, takes the experts as they
// are handed in, run after run, and adds their sum to the hidden states at the end. So each expert
// is read once, and no more of them are in memory than one run. It holds one more tensor of
// the size of the hidden states, for each stream, while it lives. Among ranks experts stay where
// they were read and tokens travel: whoever has an expert runs it on the tokens of all ranks, in
// the steps in which one rank would, and a token adds up what comes back in the order of the
// experts. Tokens of one stretch (token_layout.h) alone share steps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "capture/model/experts.h"
#include "capture/model/layer_weights.h"
#include "capture/model/model_spec.h"
#include "capture/model/token_layout.h"  // RowRange

namespace oscar {

class RankGroup;

class ExpertsPass {
 public:
  // Rows of a stream that go through everything but experts together, in a row.
  using Stretch = std::vector<RowRange>;

  // Keeps references to all. `streams`: hidden states [T_stream, hidden_size] behind the layer's
  // attention; they are left alone until Finish. `stretches`: of each stream. Waits for the device
  // once per stretch. With `ranks` there is one stream, of this rank's tokens, with all stretches
  // of the run, and all ranks make the same calls.
  ExpertsPass(const LayerSpec& layer, const LayerWeights& weights, double eps, int64_t token_chunk,
              std::span<at::Tensor> streams, std::vector<std::vector<Stretch>> stretches,
              RankGroup* ranks = nullptr);

  // A run, of which `experts` are this rank's slice.
  void Add(const ExpertRun& run, const ExpertWeights& experts);

  // What stands behind the experts, then x += that; `per_layer_input` gives rows [n, dim] of a
  // stream, undefined where the layer has none.
  void Finish(const std::function<at::Tensor(size_t stream, int64_t first_row, int64_t num_rows)>&
                  per_layer_input);

  // Tokens of the first stream, on all ranks, that chose each expert.  // [num_experts]
  std::vector<int64_t> TokensPerExpert() const;

  // Bytes that a pass holds for `tokens` tokens of one stream.
  static int64_t HeldBytes(const ExpertsSpec& experts, int64_t tokens, int64_t element);

 private:
  at::Tensor Input(const at::Tensor& hidden) const;  // what experts see of rows of hidden states
  TokensByExpert Route(const at::Tensor& stream, const Stretch& stretch) const;
  void AddOfAllRanks(const ExpertRun& run, const ExpertWeights& experts, size_t stretch);

  const LayerSpec& layer_;
  const LayerWeights& weights_;
  double eps_;
  int64_t token_chunk_;
  std::span<at::Tensor> streams_;
  bool beside_mlp_;  // the layer has both
  std::vector<std::vector<Stretch>> stretches_;
  RankGroup* ranks_;
  std::vector<std::vector<TokensByExpert>> orders_;  // of each stream's stretches
  // Tokens of the first stream: [stretches][ranks, num_experts].
  std::vector<std::vector<std::vector<int64_t>>> counts_;
  std::vector<at::Tensor> sums_;  // [T_stream, hidden_size]
};

}  // namespace oscar
