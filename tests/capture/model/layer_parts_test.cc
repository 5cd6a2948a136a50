// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares experts, the gated delta rule and latent attention, as functions on tensors, with their
// definitions. golden_test.cc compares whole models. Random scores never tie, so the tests do not
// check how a router breaks ties.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "capture/model/experts/experts.h"
#include "capture/model/run/attention.h"
#include "capture/model/run/gated_delta_net.h"
#include "capture/model/run/latent_attention.h"
#include "tests/capture/model/golden.h"

namespace oscar {
namespace {

ExpertsSpec SmallExperts(int64_t num_experts, int64_t top_k) {
  ExpertsSpec spec;
  spec.num_experts = num_experts;
  spec.hidden_size = 12;
  spec.intermediate_size = 10;
  spec.router.top_k = top_k;
  return spec;
}

LinearWeights RandomLinear(int64_t out, int64_t in) { return {at::randn({out, in}), {}}; }

ExpertWeights RandomExperts(const ExpertsSpec& spec, const ExpertRun& run) {
  at::manual_seed(3);
  ExpertWeights all{{0, spec.num_experts}, {}, {}, {}};
  for (int64_t e = 0; e < spec.num_experts; ++e) {
    all.gate.push_back(RandomLinear(spec.intermediate_size, spec.hidden_size));
    all.up.push_back(RandomLinear(spec.intermediate_size, spec.hidden_size));
    all.down.push_back(RandomLinear(spec.hidden_size, spec.intermediate_size));
  }
  const auto some = [&](const std::vector<LinearWeights>& from) {
    return std::vector<LinearWeights>(from.begin() + run.first,
                                      from.begin() + run.first + run.count);
  };
  return {run, some(all.gate), some(all.up), some(all.down)};
}

// Returns DeepSeek-V3's choice of experts for one token, computed in plain loops.
std::set<int64_t> ChosenBySets(const std::vector<float>& biased, const RouterSpec& router) {
  const size_t of_set = biased.size() / static_cast<size_t>(router.num_expert_sets);
  std::vector<std::pair<float, size_t>> sets;
  for (size_t s = 0; s < static_cast<size_t>(router.num_expert_sets); ++s) {
    std::vector<float> own(biased.begin() + static_cast<std::ptrdiff_t>(s * of_set),
                           biased.begin() + static_cast<std::ptrdiff_t>((s + 1) * of_set));
    std::ranges::sort(own, std::greater<>());
    sets.emplace_back(own[0] + own[1], s);
  }
  std::ranges::sort(sets, std::greater<>());
  std::vector<std::pair<float, int64_t>> candidates;
  for (int64_t i = 0; i < router.top_expert_sets; ++i) {
    for (size_t e = 0; e < of_set; ++e) {
      const size_t expert = sets[static_cast<size_t>(i)].second * of_set + e;
      candidates.emplace_back(biased[expert], static_cast<int64_t>(expert));
    }
  }
  std::ranges::sort(candidates, std::greater<>());
  std::set<int64_t> chosen;
  for (int64_t i = 0; i < router.top_k; ++i)
    chosen.insert(candidates[static_cast<size_t>(i)].second);
  return chosen;
}

TEST(Router, SigmoidScoresAreBiasedForTheChoiceAlone) {
  at::manual_seed(1);
  ExpertsSpec spec = SmallExperts(12, 3);
  spec.router.score = RouterScore::kSigmoid;
  spec.router.normalize = true;
  spec.router.scale = 2.5;
  spec.router.num_expert_sets = 4;
  spec.router.top_expert_sets = 2;
  RouterWeights weights;
  weights.logits = RandomLinear(12, 12);
  weights.choice_bias = at::randn({12}).mul_(0.5);
  const at::Tensor x = at::randn({40, 12});
  const Choices choices = ChooseExperts(spec, weights, 1e-6, x);
  const at::Tensor scores = x.matmul(weights.logits.weight.t()).sigmoid();
  for (int64_t t = 0; t < 40; ++t) {
    std::vector<float> biased;
    for (int64_t e = 0; e < 12; ++e)
      biased.push_back(scores[t][e].item<float>() + weights.choice_bias[e].item<float>());
    double sum = 0;
    std::set<int64_t> chosen;
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t expert = choices.experts[t][i].item<int64_t>();
      chosen.insert(expert);
      sum += scores[t][expert].item<double>();
    }
    EXPECT_EQ(chosen, ChosenBySets(biased, spec.router)) << "token " << t;
    for (int64_t i = 0; i < 3; ++i) {
      const double score = scores[t][choices.experts[t][i].item<int64_t>()].item<double>();
      EXPECT_NEAR(choices.weights[t][i].item<double>(), 2.5 * score / sum, 1e-6);
    }
  }
}

TEST(Router, SoftmaxOverTheChosenOnly) {
  at::manual_seed(2);
  ExpertsSpec spec = SmallExperts(8, 2);
  spec.router.score = RouterScore::kChosenSoftmax;
  RouterWeights weights;
  weights.logits = {at::randn({8, 12}), at::randn({8})};
  const at::Tensor x = at::randn({20, 12});
  const Choices choices = ChooseExperts(spec, weights, 1e-6, x);
  const at::Tensor logits = x.matmul(weights.logits.weight.t()).add(weights.logits.bias);
  for (int64_t t = 0; t < 20; ++t) {
    const double first = logits[t][choices.experts[t][0].item<int64_t>()].item<double>();
    const double second = logits[t][choices.experts[t][1].item<int64_t>()].item<double>();
    EXPECT_EQ(first, logits[t].max().item<double>());
    EXPECT_NEAR(choices.weights[t][0].item<double>(), 1 / (1 + std::exp(second - first)), 1e-6);
  }
}

// Compares a weighted sum over each token's experts with the sum over tokens sorted by expert.
TEST(Experts, SumDoesNotDependOnHowTheyComeBy) {
  ExpertsSpec spec = SmallExperts(7, 3);
  at::manual_seed(4);
  RouterWeights router;
  router.logits = RandomLinear(7, 12);
  const at::Tensor x = at::randn({33, 12});
  const Choices choices = ChooseExperts(spec, router, 1e-6, x);
  const ExpertWeights all = RandomExperts(spec, {0, 7});
  at::Tensor expected = at::zeros({33, 12});
  for (int64_t t = 0; t < 33; ++t) {
    for (int64_t i = 0; i < 3; ++i) {
      const auto e = static_cast<size_t>(choices.experts[t][i].item<int64_t>());
      const at::Tensor gate = all.gate[e].weight.matmul(x[t]), up = all.up[e].weight.matmul(x[t]);
      const at::Tensor inner = gate.mul(gate.sigmoid()).mul(up);
      expected[t].add_(all.down[e].weight.matmul(inner).mul(choices.weights[t][i]));
    }
  }
  const TokensByExpert order = SortByExpert(choices, 7);
  EXPECT_EQ(order.begins.back(), 33 * 3);
  const auto input = [&](const at::Tensor& tokens) { return x.index_select(0, tokens); };
  for (const int64_t bytes :
       {int64_t{1}, int64_t{2} * 4 * spec.values_per_expert(), int64_t{1} << 20}) {
    at::Tensor sum = at::zeros({33, 12});
    const std::vector<ExpertRun> runs = SplitExperts(spec, 4, bytes);
    EXPECT_EQ(runs.size(), bytes == 1 ? 7u : bytes == 1 << 20 ? 1u : 4u);
    for (const ExpertRun& run : runs)
      AddExperts(spec, RandomExperts(spec, run), order, /*token_chunk=*/5, input, sum);
    EXPECT_LT(RelativeError(sum, expected), 2e-6) << runs.size() << " runs";
  }
}

TEST(Experts, FusedClampedGateAlternates) {
  ExpertsSpec spec = SmallExperts(1, 1);
  spec.clamped_gate = ClampedGate{};
  spec.interleaved = true;
  at::manual_seed(5);
  const at::Tensor gate = at::randn({10, 12}).mul_(3), up = at::randn({10, 12}).mul_(3);
  at::Tensor both = at::zeros({20, 12});
  both.slice(0, 0, {}, 2).copy_(gate);
  both.slice(0, 1, {}, 2).copy_(up);
  const ExpertWeights weights{{0, 1}, {{both, {}}}, {}, {RandomLinear(12, 10)}};
  const at::Tensor x = at::randn({9, 12});
  const Choices choices{at::zeros({9, 1}, at::kLong), at::rand({9, 1})};
  at::Tensor sum = at::zeros({9, 12});
  AddExperts(
      spec, weights, SortByExpert(choices, 1), 100,
      [&](const at::Tensor& tokens) { return x.index_select(0, tokens); }, sum);
  const at::Tensor g = x.matmul(gate.t()).clamp_max(7), u = x.matmul(up.t()).clamp(-7, 7);
  EXPECT_GT(x.matmul(up.t()).abs().max().item<double>(), 7);  // the clamp has an effect
  const at::Tensor inner = u.add(1).mul(g).mul(g.mul(1.702).sigmoid());
  EXPECT_LT(RelativeError(sum, inner.matmul(weights.down[0].weight.t()).mul(choices.weights)),
            2e-6);
}

struct DeltaInput {
  at::Tensor q, k, v, g, beta;
};

DeltaInput RandomDelta(int64_t tokens, double decay) {
  at::manual_seed(6);
  const auto unit = [](const at::Tensor& x) { return x.div(x.norm(2, {-1}, /*keepdim=*/true)); };
  return {unit(at::randn({tokens, 3, 8})), unit(at::randn({tokens, 3, 8})),
          at::randn({tokens, 3, 5}), at::rand({tokens, 3}).mul_(-decay), at::rand({tokens, 3})};
}

// Computes the gated delta rule token by token in float64.
at::Tensor Recurrence(const DeltaInput& in, at::Tensor& state) {
  at::Tensor out = at::zeros(in.v.sizes(), at::kDouble);
  for (int64_t t = 0; t < in.q.size(0); ++t) {
    const at::Tensor k = in.k[t].to(at::kDouble).unsqueeze(-1);  // [H, k, 1]
    state = state.mul(in.g[t].to(at::kDouble).exp().view({-1, 1, 1}));
    const at::Tensor seen = at::matmul(state.transpose(1, 2), k).squeeze(-1);
    const at::Tensor delta = in.v[t].to(at::kDouble).sub(seen).mul(in.beta[t].unsqueeze(-1));
    state = state.add(at::matmul(k, delta.unsqueeze(1)));
    out[t].copy_(at::matmul(state.transpose(1, 2), in.q[t].to(at::kDouble).unsqueeze(-1))
                     .squeeze(-1)
                     .div(std::sqrt(8.0)));
  }
  return out;
}

TEST(GatedDelta, ChunksAreTheRecurrence) {
  for (const double decay : {0.01, 1.0, 30.0}) {  // 30: a chunk's running sum reaches -900
    const DeltaInput in = RandomDelta(150, decay);
    at::Tensor state = at::zeros({3, 8, 5}), exact = at::zeros({3, 8, 5}, at::kDouble);
    const at::Tensor out = GatedDeltaRule(in.q, in.k, in.v, in.g, in.beta, state);
    EXPECT_LT(RelativeError(out, Recurrence(in, exact)), 5e-6) << "decay " << decay;
    EXPECT_LT(RelativeError(state, exact), 5e-6) << "decay " << decay;
  }
}

TEST(GatedDelta, StateCarriesOver) {
  const DeltaInput in = RandomDelta(130, 0.5);
  at::Tensor whole_state = at::zeros({3, 8, 5}), state = at::zeros({3, 8, 5});
  const at::Tensor whole = GatedDeltaRule(in.q, in.k, in.v, in.g, in.beta, whole_state);
  for (const auto& [begin, count] : {std::pair<int64_t, int64_t>{0, 70}, {70, 1}, {71, 59}}) {
    const auto some = [&](const at::Tensor& x) { return x.narrow(0, begin, count); };
    const at::Tensor part =
        GatedDeltaRule(some(in.q), some(in.k), some(in.v), some(in.g), some(in.beta), state);
    EXPECT_LT(RelativeError(part, some(whole)), 5e-6);
  }
  EXPECT_LT(RelativeError(state, whole_state), 5e-6);
}

TEST(LatentAttention, IsTheSameInLatentSpace) {
  at::manual_seed(7);
  constexpr int64_t kTokens = 37, kHeads = 3, kNope = 6, kRope = 4, kRank = 10, kValue = 5;
  AttentionSpec spec;
  spec.num_q_heads = spec.num_kv_heads = kHeads;
  spec.head_dim = kNope + kRope;
  spec.v_head_dim = kValue;
  spec.scale = 0.3;
  spec.rope.layout = RopeLayout::kInterleaved;
  spec.latent = LatentSpec();
  spec.latent->rank = kRank;
  spec.latent->nope_dim = kNope;
  spec.latent->rope_dim = kRope;
  LatentWeights weights;
  weights.q = RandomLinear(kHeads * (kNope + kRope), 16);
  weights.kv_a = RandomLinear(kRank + kRope, 16);
  weights.kv_a_norm = at::rand({kRank});
  weights.kv_b = RandomLinear(kHeads * (kNope + kValue), kRank);
  const at::Tensor angles = at::arange(kTokens).view({-1, 1, 1}).mul(at::rand({1, 1, kRope / 2}));
  at::Tensor q = at::zeros({kTokens, kHeads, spec.head_dim}), k = at::zeros_like(q);
  at::Tensor v = at::zeros({kTokens, kHeads, kValue}), out = at::zeros_like(v);
  Latents latents{at::zeros({kTokens, kRank}), at::zeros({kTokens, kRope})};
  ProjectLatent(spec, weights, at::randn({kTokens, 16}), angles.cos(), angles.sin(), {}, q, k, v,
                latents);
  CausalAttention(spec, q, k, v, {}, out);

  const AttentionSpec absorbed = InLatentSpace(spec);
  EXPECT_EQ(absorbed.rope.kind, RopeKind::kNone);
  EXPECT_EQ(absorbed.rope.rotary_dim, 0);
  const at::Tensor kv_b = ExpansionOf(spec, weights);
  const auto [latent_q, q_pe] = QueriesInLatentSpace(*spec.latent, kv_b, q);
  EXPECT_TRUE(latent_q.is_contiguous() && q_pe.is_contiguous());
  const at::Tensor latent_v = latents.c_kv.unsqueeze(1);
  at::Tensor latent_out = at::zeros({kTokens, kHeads, kRank});
  CausalAttention(absorbed, WithPosition(latent_q, q_pe), WithPosition(latent_v, latents.k_pe),
                  latent_v, {}, latent_out);
  EXPECT_LT(RelativeError(OutputsFromLatentSpace(*spec.latent, kv_b, latent_out), out), 5e-6);
}

}  // namespace
}  // namespace oscar
