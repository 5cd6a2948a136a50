// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients against finite differences: the loop itself, with one number of a cache moved.
#include "capture/model/loss_gradients.h"

#include <gtest/gtest.h>

#include <cmath>

#include "capture/model/attention.h"
#include "linalg/error.h"
#include "tests/capture/model/run_model.h"

namespace oscar {
namespace {

// Attends to a cache of which one number was moved.
class MovesOneNumber : public LayerObserver {
 public:
  struct Place {
    size_t layer = 0;
    int64_t sequence = 0, token = 0, head = 0, dim = 0;
    bool keys = true;
  };
  MovesOneNumber(const Place& place, double by) : place_(place), by_(by) {}

  bool Attend(const AttentionView& view) override {
    if (view.layer_index != place_.layer || view.sequence != place_.sequence) return false;
    at::Tensor k = view.k.clone(), v = view.v.clone(), out = view.attn_out;
    (place_.keys ? k : v)[place_.token][place_.head][place_.dim].add_(by_);
    CausalAttention(view.layer.attention, view.q, k, v, {512, 4096}, out);
    return true;
  }
  void OnAttention(const AttentionView&) override {}

 private:
  Place place_;
  double by_;
};

// Of all sequences, summed in float64.
double Loss(const Model& model, const Sequences& sequences, LayerObserver& observer) {
  const LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat);
  at::Tensor hidden = loop.Embed(sequences);
  loop.Run(hidden, Lengths(sequences), 0, observer, [](size_t) { return true; });
  const at::Tensor log_p = loop.Logits(hidden).to(at::kDouble).log_softmax(-1);
  double loss = 0;
  int64_t row = 0;
  for (const auto& sequence : sequences) {
    for (size_t i = 0; i + 1 < sequence.size(); ++i, ++row)
      loss -= log_p[row][sequence[i + 1]].item<double>();
    ++row;
  }
  return loss;
}

void ExpectFiniteDifferences(const char* name) {
  const Model model(name);
  Sequences sequences = SomeSequences({24, 9});
  for (auto& sequence : sequences) {
    for (int32_t& id : sequence) id %= static_cast<int32_t>(model.spec.vocab_size);
  }
  const std::vector<CacheGradients> layers =
      LossGradients(model.checkpoint, model.spec, at::kCPU, sequences);
  ASSERT_EQ(layers.size(), model.spec.layers.size());
  int compared = 0;
  for (const size_t layer : {size_t{0}, layers.size() - 1}) {
    for (const bool keys : {true, false}) {
      const std::vector<at::Tensor>& of_sequences = keys ? layers[layer].k : layers[layer].v;
      ASSERT_EQ(of_sequences.size(), 2U);
      for (int64_t sequence = 0; sequence < 2; ++sequence) {
        const at::Tensor& gradient = of_sequences[static_cast<size_t>(sequence)];
        EXPECT_EQ(gradient.size(0), sequence == 0 ? 24 : 9);
        // The largest of a token in the middle: where float32 has digits to spare.
        const int64_t token = gradient.size(0) / 2;
        const int64_t at = gradient[token].abs().argmax().item<int64_t>();
        const int64_t dim = at % gradient.size(2), head = at / gradient.size(2);
        const auto loss = [&](double by) {
          MovesOneNumber moves({layer, sequence, token, head, dim, keys}, by);
          return Loss(model, sequences, moves);
        };
        constexpr double kStep = 0.02;
        const double expected = (loss(kStep) - loss(-kStep)) / (2 * kStep);
        const double found = gradient[token][head][dim].item<double>();
        EXPECT_NEAR(found, expected, 0.02 * std::abs(expected) + 1e-4)
            << name << ", layer " << layer << (keys ? " key" : " value") << ", sequence "
            << sequence;
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 8);
}

TEST(LossGradients, AreFiniteDifferencesOfTheLoss) { ExpectFiniteDifferences("tiny-qwen3"); }

// Soft caps, norms on both sides, halves side by side, multipliers.
TEST(LossGradients, AreFiniteDifferencesInEveryKindOfLayer) {
  for (const char* name : {"families/gemma2", "families/cohere2", "families/granite",
                           "families/starcoder2", "families/olmo2"})
    ExpectFiniteDifferences(name);
}

TEST(LossGradients, RefuseLayersTheyDoNotKnow) {
  for (const char* name : {"families/gemma4_text-ple", "families/gemma4_text"}) {
    const Model model(name);
    EXPECT_THROW(LossGradients(model.checkpoint, model.spec, at::kCPU, {{1, 2, 3}}), InputError);
  }
}

// Nobody reads the last token's keys and values to predict anything.
TEST(LossGradients, TheLastTokenOfASequenceHasNone) {
  const Model model("tiny-qwen3");
  for (const CacheGradients& layer :
       LossGradients(model.checkpoint, model.spec, at::kCPU, SomeSequences({7, 1}))) {
    for (const auto* side : {&layer.k, &layer.v}) {
      EXPECT_EQ((*side)[0][6].abs().max().item<double>(), 0);
      EXPECT_GT((*side)[0][5].abs().max().item<double>(), 0);
      EXPECT_EQ((*side)[1].abs().max().item<double>(), 0);
    }
  }
}

}  // namespace
}  // namespace oscar
