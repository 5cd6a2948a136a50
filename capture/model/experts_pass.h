// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The experts of one layer over all tokens of a run: routes every token, takes the experts as they
// are handed in, run after run, and adds their sum to the hidden states at the end. So each expert
// is read once, and no more of them are in memory than one run. It holds one more tensor of
// the size of the hidden states, for each stream, while it lives.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "capture/model/experts.h"
#include "capture/model/layer_weights.h"
#include "capture/model/model_spec.h"

namespace oscar {

class ExpertsPass {
 public:
  // Keeps references to all. `streams`: hidden states [T_stream, hidden_size] behind the layer's
  // attention; they are left alone until Finish. Waits for the device once per stream.
  ExpertsPass(const LayerSpec& layer, const LayerWeights& weights, double eps, int64_t token_chunk,
              std::span<at::Tensor> streams);

  void Add(const ExpertWeights& experts);

  // What stands behind the experts, then x += that; `per_layer_input` gives rows [n, dim] of a
  // stream, undefined where the layer has none.
  void Finish(const std::function<at::Tensor(size_t stream, int64_t first_row, int64_t num_rows)>&
                  per_layer_input);

  // Tokens of the first stream that chose each expert.  // [num_experts]
  std::vector<int64_t> TokensPerExpert() const;

  // Bytes that a pass holds for `tokens` tokens of one stream.
  static int64_t HeldBytes(const ExpertsSpec& experts, int64_t tokens, int64_t element);

 private:
  at::Tensor Input(const at::Tensor& hidden) const;  // what experts see of rows of hidden states

  const LayerSpec& layer_;
  const LayerWeights& weights_;
  double eps_;
  int64_t token_chunk_;
  std::span<at::Tensor> streams_;
  bool beside_mlp_;                     // the layer has both
  std::vector<TokensByExpert> orders_;  // of each stream
  std::vector<at::Tensor> sums_;        // [T_stream, hidden_size]
};

}  // namespace oscar
