// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a mixture of experts (experts_spec.h). First, every token of a layer is routed. Then the
// experts are processed in runs (ExpertRun). Each run is read once and applied to the tokens that
// chose its experts. Trap: the experts' sum has its own tensor, because the layer's hidden states
// must not change before the last run is done. Order of operations and casts: transformers 5,
// *TopkRouter and *Experts.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "capture/model/run/linear_weights.h"
#include "capture/model/run/weight_loader.h"
#include "capture/model/spec/experts_spec.h"

namespace oscar {

// Router and shared expert of a layer. Members that the layer does not use are undefined.
struct RouterWeights {
  LinearWeights logits;         // [num_experts, hidden_size]
  at::Tensor choice_bias;       // [num_experts] float32
  at::Tensor input_scale;       // [hidden_size]
  at::Tensor per_expert_scale;  // [num_experts]
  LinearWeights shared_gate_proj, shared_up_proj, shared_down_proj, shared_gate;
};

// Weights of some experts in a layer.
struct ExpertWeights {
  ExpertRun run;
  // One entry per expert of the run. If gate and up are stored as one tensor, `gate` holds the rows
  // of both, in the order that `interleaved` says, and `up` is undefined.
  std::vector<LinearWeights> gate, up, down;
};

// Both request tensors from `loader`; do not use the results before loader.Finish().
RouterWeights LoadRouter(WeightLoader& loader, const ExpertsSpec& experts);
ExpertWeights LoadExperts(WeightLoader& loader, const ExpertsSpec& experts, const ExpertRun& run);

// The experts that each token chose.
struct Choices {
  at::Tensor experts;  // [n, top_k] int64, unordered
  at::Tensor weights;  // [n, top_k] float32
};

// Chooses experts for x [n, hidden_size]. x is the experts' input or, if the router normalizes its
// own input (normed_input), the layer's hidden states.
Choices ChooseExperts(const ExpertsSpec& experts, const RouterWeights& weights, double eps,
                      const at::Tensor& x);

// The choices of all tokens of a layer, sorted by expert.
struct TokensByExpert {
  at::Tensor tokens;            // [T top_k] int64; ascending within each expert
  at::Tensor weights;           // [T top_k] float32, in the same order
  std::vector<int64_t> begins;  // [num_experts + 1]: expert e has tokens begins[e] .. begins[e + 1]

  int64_t count(int64_t expert) const {
    const auto e = static_cast<size_t>(expert);
    return begins[e + 1] - begins[e];
  }
};
// Sorts choices by expert. Waits for the device once.
TokensByExpert SortByExpert(const Choices& choices, int64_t num_experts);

// Adds each expert's weighted output for token t to sum[t], for every token t that chose the
// expert. The experts of the run are processed in ascending order. `input` returns the rows [n,
// hidden_size] that experts get for tokens [n] int64; n is at most token_chunk.
void AddExperts(const ExpertsSpec& experts, const ExpertWeights& weights,
                const TokensByExpert& order, int64_t token_chunk,
                const std::function<at::Tensor(const at::Tensor& tokens)>& input, at::Tensor& sum);

// Returns the shared expert's result for rows x [n, hidden_size].
at::Tensor SharedExpert(const ExpertsSpec& experts, const RouterWeights& weights,
                        const at::Tensor& x);

}  // namespace oscar
