// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/experts/experts.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "capture/model/run/decoder_layer.h"
#include "capture/model/run/elementwise.h"
#include "capture/model/run/product.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

at::Tensor LoadIfNamed(WeightLoader& loader, const std::string& name) {
  return name.empty() ? at::Tensor() : loader.Load(name);
}

// Returns the input of an expert's down projection.  // [n, intermediate_size]
at::Tensor Gated(const ExpertsSpec& experts, at::Tensor gate, const at::Tensor& up) {
  if (experts.clamped_gate) return ClampedProduct(*experts.clamped_gate, gate, up);
  if (!gate.is_contiguous()) gate = gate.contiguous();
  ActivateInPlace(experts.activation, gate);
  return gate.mul_(up);
}

at::Tensor RunExpert(const ExpertsSpec& experts, const ExpertWeights& weights, size_t expert,
                     const at::Tensor& x) {
  at::Tensor gate = ApplyLinear(weights.gate[expert], x), up;
  if (weights.up.empty()) {
    const at::Tensor both = gate;
    const int64_t size = experts.intermediate_size;
    gate = experts.interleaved ? both.slice(1, 0, {}, 2) : both.narrow(1, 0, size);
    up = experts.interleaved ? both.slice(1, 1, {}, 2) : both.narrow(1, size, size);
  } else {
    up = ApplyLinear(weights.up[expert], x);
  }
  return ApplyLinear(weights.down[expert], Gated(experts, gate, up));
}

// Sets the scores of experts outside the best sets to -inf (DeepSeek-V3, section 2.1.2).
void LimitToBestSets(const RouterSpec& router, at::Tensor& scores) {
  if (router.num_expert_sets == 1) return;
  const at::Tensor sets = scores.view({scores.size(0), router.num_expert_sets, -1});
  const at::Tensor set_scores = std::get<0>(sets.topk(router.set_terms, -1)).sum(-1);
  const at::Tensor best = std::get<1>(set_scores.topk(router.top_expert_sets, -1));
  const at::Tensor outside = at::zeros_like(set_scores).scatter_(1, best, 1).eq(0);
  sets.masked_fill_(outside.unsqueeze(-1), -std::numeric_limits<double>::infinity());
}

// Chooses the best expert and then the second best. The weight of each is its softmax among the
// experts with similar logits; for the second one, the first is excluded (transformers 5,
// sparsemixer).
Choices MixSparsely(const at::Tensor& logits, double distance) {
  const double minus_infinity = -std::numeric_limits<double>::infinity();
  at::Tensor left = logits;
  std::vector<at::Tensor> experts, weights;
  for (int i = 0; i < 2; ++i) {
    const auto [best, expert] = left.max(-1, /*keepdim=*/true);
    const at::Tensor magnitude = at::maximum(logits.abs(), best);
    const at::Tensor far = best.sub(logits).div(magnitude).gt(distance);
    const at::Tensor near = at::softmax(left.masked_fill(far, minus_infinity), -1);
    experts.push_back(expert);
    weights.push_back(near.gather(-1, expert));
    left = left.scatter(-1, expert, minus_infinity);
  }
  return {at::cat(experts, -1), at::cat(weights, -1)};
}

}  // namespace

RouterWeights LoadRouter(WeightLoader& loader, const ExpertsSpec& experts) {
  const RouterSpec& router = experts.router;
  RouterWeights weights;
  weights.logits = LoadLinear(loader, router.logits);
  if (!router.choice_bias.empty())
    weights.choice_bias =
        loader.LoadAs(router.choice_bias, at::kFloat).view({-1}).narrow(0, 0, experts.num_experts);
  weights.input_scale = LoadIfNamed(loader, router.input_scale);
  weights.per_expert_scale = LoadIfNamed(loader, router.per_expert_scale);
  if (experts.shared_size == 0) return weights;
  weights.shared_gate_proj = LoadLinear(loader, experts.shared_gate_proj);
  weights.shared_up_proj = LoadLinear(loader, experts.shared_up_proj);
  weights.shared_down_proj = LoadLinear(loader, experts.shared_down_proj);
  weights.shared_gate = LoadLinear(loader, experts.shared_gate);
  return weights;
}

ExpertWeights LoadExperts(WeightLoader& loader, const ExpertsSpec& experts, const ExpertRun& run) {
  ExpertWeights weights{run, {}, {}, {}};
  if (!experts.fused) {
    for (int64_t e = run.first; e < run.first + run.count; ++e) {
      weights.gate.push_back({loader.Load(ExpertTensor(experts, e, experts.gate_name)), {}});
      weights.up.push_back({loader.Load(ExpertTensor(experts, e, experts.up_name)), {}});
      weights.down.push_back({loader.Load(ExpertTensor(experts, e, experts.down_name)), {}});
    }
    return weights;
  }
  if (experts.rows_below) {
    const int64_t size = experts.intermediate_size;
    const auto split = [&](const std::string& name, std::vector<LinearWeights>& parts) {
      const at::Tensor all = loader.Load(name, run.first * size, run.count * size);
      for (int64_t e = 0; e < run.count; ++e) {
        const at::Tensor rows = all.narrow(0, e * size, size);
        parts.push_back({&parts == &weights.down ? rows.t() : rows, {}});
      }
    };
    split(experts.gate_up, weights.gate);
    split(experts.up, weights.up);
    split(experts.down, weights.down);
    return weights;
  }
  const auto split = [&](const std::string& name, const std::string& bias_name,
                         std::vector<LinearWeights>& parts) {
    at::Tensor all = loader.Load(name, run.first, run.count), biases;
    if (experts.transposed) all = all.transpose(1, 2);
    if (!bias_name.empty()) biases = loader.Load(bias_name, run.first, run.count);
    for (int64_t e = 0; e < run.count; ++e)
      parts.push_back({all[e], biases.defined() ? biases[e] : at::Tensor()});
  };
  split(experts.gate_up, experts.gate_up_bias, weights.gate);
  split(experts.down, experts.down_bias, weights.down);
  return weights;
}

Choices ChooseExperts(const ExpertsSpec& experts, const RouterWeights& weights, double eps,
                      const at::Tensor& x) {
  const RouterSpec& router = experts.router;
  at::Tensor input = x;
  if (router.normed_input) {
    const at::Tensor wide = x.to(at::kFloat);
    const at::Tensor inverse_rms = wide.square().mean(-1, /*keepdim=*/true).add_(eps).rsqrt_();
    input = wide.mul(inverse_rms).to(x.scalar_type()).mul_(weights.input_scale);
    input.mul_(1 / std::sqrt(static_cast<double>(experts.hidden_size)));
  }
  const at::Tensor logits =
      router.float32_logits
          ? LinearProduct(input.to(at::kFloat), weights.logits.weight.to(at::kFloat),
                          weights.logits.bias.defined() ? weights.logits.bias.to(at::kFloat)
                                                        : weights.logits.bias)
          : ApplyLinear(weights.logits, input).to(at::kFloat);
  at::Tensor scores;  // [n, num_experts] float32
  switch (router.score) {
    case RouterScore::kSoftmax:
      scores = at::softmax(logits, -1);
      break;
    case RouterScore::kSigmoid:
      scores = Sigmoid(logits);
      break;
    case RouterScore::kChosenSoftmax:
      scores = logits;
      break;
    case RouterScore::kSparseMixer:
      return MixSparsely(logits, router.mixer_distance);
  }
  at::Tensor for_choice =
      weights.choice_bias.defined() ? scores.add(weights.choice_bias) : scores.clone();
  LimitToBestSets(router, for_choice);
  Choices choices;
  choices.experts = std::get<1>(for_choice.topk(router.top_k, -1));
  choices.weights = scores.gather(1, choices.experts);
  if (router.score == RouterScore::kChosenSoftmax)
    choices.weights = at::softmax(choices.weights, -1);
  if (router.normalize) {
    at::Tensor sum = choices.weights.sum(-1, /*keepdim=*/true);
    if (router.smallest_weight_sum > 0) sum.clamp_min_(router.smallest_weight_sum);
    choices.weights.div_(sum);
  }
  if (router.scale != 1) choices.weights.mul_(router.scale);
  if (weights.per_expert_scale.defined()) {
    choices.weights.mul_(weights.per_expert_scale.to(at::kFloat)
                             .index_select(0, choices.experts.view({-1}))
                             .view(choices.experts.sizes()));
  }
  return choices;
}

TokensByExpert SortByExpert(const Choices& choices, int64_t num_experts) {
  const auto [experts, order] = at::sort(choices.experts.reshape({-1}), /*stable=*/true, 0,
                                         /*descending=*/false);
  TokensByExpert sorted;
  sorted.tokens = order.div(choices.experts.size(1), "floor");
  sorted.weights = choices.weights.reshape({-1}).index_select(0, order);
  const at::Tensor begins =
      at::searchsorted(experts, at::arange(num_experts + 1, experts.options())).cpu();
  const int64_t* begin = begins.const_data_ptr<int64_t>();
  sorted.begins.assign(begin, begin + begins.numel());
  OSCAR_CHECK_EQ(sorted.begins.back(), order.size(0));
  return sorted;
}

void AddExperts(const ExpertsSpec& experts, const ExpertWeights& weights,
                const TokensByExpert& order, int64_t token_chunk,
                const std::function<at::Tensor(const at::Tensor& tokens)>& input, at::Tensor& sum) {
  for (int64_t i = 0; i < weights.run.count; ++i) {
    const auto expert = static_cast<size_t>(weights.run.first + i);
    for (int64_t begin = order.begins[expert]; begin < order.begins[expert + 1];
         begin += token_chunk) {
      const int64_t count = std::min(token_chunk, order.begins[expert + 1] - begin);
      const at::Tensor tokens = order.tokens.narrow(0, begin, count);
      const at::Tensor weight = order.weights.narrow(0, begin, count).unsqueeze(1);
      const bool before = experts.router.weigh_input;
      const at::Tensor rows = input(tokens);
      const at::Tensor out = RunExpert(experts, weights, static_cast<size_t>(i),
                                       before ? rows.mul(weight.to(rows.scalar_type())) : rows);
      const at::Tensor weighted = before ? out : out.mul(weight);
      // `tokens` has each token at most once, so the order of additions is fixed on a GPU too.
      sum.index_add_(0, tokens, weighted.to(sum.scalar_type()));
    }
  }
}

at::Tensor SharedExpert(const ExpertsSpec& experts, const RouterWeights& weights,
                        const at::Tensor& x) {
  const at::Tensor out =
      ApplyLinear(weights.shared_down_proj, Gated(experts, ApplyLinear(weights.shared_gate_proj, x),
                                                  ApplyLinear(weights.shared_up_proj, x)));
  if (!weights.shared_gate.weight.defined()) return out;
  return Sigmoid(ApplyLinear(weights.shared_gate, x)).mul(out);
}

}  // namespace oscar
