// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that methods fitted to rows get the rows of the calibration text, layer by layer, and that
// this text affects nothing else in the validation.
#include "export/validate/calibration_rows.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "export/validate/validation_observer.h"
#include "tests/export/validate/tiny_validation.h"

namespace oscar {
namespace {

std::vector<int64_t> LengthsOf(const std::vector<std::vector<int32_t>>& sequences) {
  std::vector<int64_t> lengths;
  for (const auto& sequence : sequences) lengths.push_back(static_cast<int64_t>(sequence.size()));
  return lengths;
}

// Records the keys of stream 0 that a layer observer is shown.
class Keep : public LayerObserver {
 public:
  void OnAttention(const AttentionView& view) override {
    if (view.stream > 0) return;
    EXPECT_EQ(view.sequence, static_cast<int64_t>(sequences++ % 2));
    EXPECT_EQ(view.first_token, view.sequence == 0 ? 0 : 300);
    keys.push_back(view.k);
  }
  size_t sequences = 0;
  std::vector<at::Tensor> keys;
};

struct Outcome {
  Json local, end_to_end;
  std::vector<at::Tensor> keys;    // of stream 0, evaluated texts only
  std::vector<at::Tensor> hidden;  // of both streams
};

// Validates bf16 and `method` on two texts, which follow the calibration text.
Outcome RunWith(const std::vector<std::vector<int32_t>>& calibration, const CacheMethod& method) {
  const TinyModel model;
  const Artifact artifact = Artifact::Open(TinyArtifact());
  MethodContext context(artifact, model.spec.layers, {});
  std::vector<Arm> arms = ParseArms({"naive"}, context);
  arms[1] = {"own", std::make_shared<const CacheMethod>(method), {}};
  MeasuredRows rows;
  for (const int64_t sequence : {0, 1}) {
    for (const int64_t position : {5, 140, 290})
      rows.rows.push_back({sequence, position, 300, position > 150});
  }
  rows.resamples = 10;
  ValidationObserver validation(context, arms, rows, {});
  class Both : public LayerObserver {
   public:
    Both(LayerObserver& first, LayerObserver& second) : first_(first), second_(second) {}
    void OnLayerBegin(const LayerSpec& layer) override { first_.OnLayerBegin(layer); }
    bool Attend(const AttentionView& view) override { return first_.Attend(view); }
    void OnAttention(const AttentionView& view) override {
      first_.OnAttention(view);
      second_.OnAttention(view);
    }
    void OnLayerEnd(const LayerSpec& layer) override { first_.OnLayerEnd(layer); }

   private:
    LayerObserver& first_;
    LayerObserver& second_;
  };
  Keep keep;
  Both both(validation, keep);
  const std::vector<int64_t> lengths = LengthsOf(calibration);
  CalibrationRowsObserver observer(lengths, context, both);

  std::vector<std::vector<int32_t>> sequences = calibration;
  for (const auto& text : TinyTexts(1, 2, 300)) sequences.push_back(text);
  const LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat);
  std::vector<at::Tensor> streams = {loop.Embed(sequences)};
  const int64_t lead = streams[0].size(0) - 600;
  streams.push_back(streams[0].narrow(0, lead, 600).clone());
  loop.Run(streams, LengthsOf(sequences), 0, observer, [](size_t) { return true; });
  streams[0] = streams[0].narrow(0, lead, 600);
  return {validation.LocalMetrics(1), validation.EndToEndMetrics(1), keep.keys, streams};
}

// Returns the naive method, except that it asks for calibration rows.
CacheMethod Asking(std::function<void(const CalibrationRows&, size_t layer_index)> asks) {
  CacheMethod method = CacheMethodNamed("naive");
  method.needs_rows = true;
  method.make = [asks, make = method.make](const MethodContext& context, size_t layer_index,
                                           const ArmOptions& options) {
    asks(context.rows(), layer_index);
    return make(context, layer_index, options);
  };
  return method;
}

TEST(CalibrationRows, AreThoseOfTheTextInEachLayer) {
  const auto calibration = TinyTexts(0, 2, 200);
  std::vector<CalibrationRows> seen;
  const CacheMethod method = Asking([&](const CalibrationRows& rows, size_t layer_index) {
    EXPECT_EQ(layer_index, seen.size());
    seen.push_back(rows);
  });
  RunWith(calibration, method);
  ASSERT_EQ(seen.size(), 4U);

  // The calibration text alone must give the same rows.
  const TinyModel model;
  const LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat);
  class : public LayerObserver {
   public:
    void OnAttention(const AttentionView& view) override {
      const CalibrationRows& rows = seen->at(view.layer_index);
      const auto index = static_cast<size_t>(view.sequence);
      ASSERT_EQ(rows.q.size(), 2U);
      EXPECT_TRUE(rows.q[index].equal(view.q));
      EXPECT_TRUE(rows.k[index].equal(view.k));
      EXPECT_TRUE(rows.v[index].equal(view.v));
    }
    const std::vector<CalibrationRows>* seen = nullptr;
  } compare;
  compare.seen = &seen;
  at::Tensor hidden = loop.Embed(calibration);
  loop.Run(hidden, LengthsOf(calibration), 0, compare, [](size_t) { return true; });
}

TEST(CalibrationRows, ChangeNothingInWhatIsEvaluated) {
  const CacheMethod& naive = CacheMethodNamed("naive");
  const Outcome with = RunWith(TinyTexts(0, 2, 200), naive), without = RunWith({}, naive);
  EXPECT_EQ(with.local, without.local);
  EXPECT_EQ(with.end_to_end, without.end_to_end);
  ASSERT_EQ(with.keys.size(), 2 * 4U);
  for (size_t i = 0; i < with.keys.size(); ++i) EXPECT_TRUE(with.keys[i].equal(without.keys[i]));
  for (const size_t stream : {0, 1}) EXPECT_TRUE(with.hidden[stream].equal(without.hidden[stream]));
  EXPECT_FALSE(with.hidden[0].equal(with.hidden[1]));
}

TEST(CalibrationRows, AreGoneWhenTheLayerIsDone) {
  const Artifact artifact = Artifact::Open(TinyArtifact());
  const TinyModel model;
  MethodContext context(artifact, model.spec.layers, {});
  class : public LayerObserver {
    void OnAttention(const AttentionView&) override {}
  } nothing;
  CalibrationRowsObserver observer({3}, context, nothing);
  const AttentionSpec& spec = model.spec.layers[0].attention;
  const at::Tensor q = at::ones({3, spec.num_q_heads, spec.head_dim}),
                   k = at::ones({3, spec.num_kv_heads, spec.head_dim});
  observer.OnLayerBegin(model.spec.layers[0]);
  EXPECT_FALSE(observer.Attend({model.spec.layers[0], 0, 0, 0, q, k, k, q}));
  observer.OnAttention({model.spec.layers[0], 0, 0, 0, q, k, k, q});
  EXPECT_EQ(context.rows().k.size(), 1U);
  observer.OnLayerEnd(model.spec.layers[0]);
  EXPECT_DEATH(context.rows(), "");
}

}  // namespace
}  // namespace oscar
