// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/layer_loop.h"

#include <gtest/gtest.h>

#include "linalg/base/error.h"
#include "tests/capture/model/run_model.h"
#include "tests/capture/model/synthetic_model.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

TEST(LayerLoop, TwoRunsGiveTheSameBytes) {
  const Model model("tiny-qwen3");
  const Sequences sequences = SomeSequences({300, 40, 1, 700});
  const LoopOptions options{/*token_chunk=*/256, /*query_chunk=*/64, /*whole_attention=*/300, true};
  const Result first = RunAll(model, sequences, options),
               second = RunAll(model, sequences, options);
  EXPECT_TRUE(SameBytes(first.hidden, second.hidden));
  for (const auto& [name, tensor] : first.kept)
    EXPECT_TRUE(SameBytes(tensor, second.kept.at(name))) << name;
}

TEST(LayerLoop, SequencesDoNotSeeEachOther) {
  for (const char* name : {"arch/qwen2-swa", "arch/llama"}) {
    const Model model(name);
    const Sequences sequences = SomeSequences({50, 3, 96, 1, 20});
    const Result together = RunAll(
        model, sequences, {/*token_chunk=*/64, /*query_chunk=*/16, /*whole_attention=*/40, true});
    int64_t begin = 0;
    for (const auto& sequence : sequences) {
      const int64_t length = static_cast<int64_t>(sequence.size());
      const Result alone = RunAll(model, {sequence});
      EXPECT_LT(RelativeError(together.hidden.narrow(0, begin, length), alone.hidden), 5e-6);
      for (const auto& [tensor_name, tensor] : alone.kept) {
        EXPECT_LT(RelativeError(together.kept.at(tensor_name).narrow(0, begin, length), tensor),
                  5e-6)
            << tensor_name;
      }
      begin += length;
    }
  }
}

TEST(LayerLoop, ContinuesFromAnyLayerWithTheSameBytes) {
  const Model model("tiny-qwen3");
  const Sequences sequences = SomeSequences({80, 33});
  const LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat);
  KeepingObserver whole, part;
  at::Tensor hidden = loop.Embed(sequences), saved;
  loop.Run(hidden, {80, 33}, 0, whole, [&](size_t layer) {
    if (layer == 1) saved = hidden.clone();
    return true;
  });
  loop.Run(saved, {80, 33}, 2, part, [](size_t) { return true; });
  EXPECT_TRUE(SameBytes(saved, hidden));
  EXPECT_TRUE(SameBytes(part.kept.at("layer.2.q"), whole.kept.at("layer.2.q")));
  EXPECT_EQ(part.kept.size(), 8u);
}

// Layers without a cache run together with the cached layer before them. A run that starts at a
// layer expects them to be done, and a run that ends there has done them.
TEST(LayerLoop, ContinuesBehindLayersWithoutACache) {
  for (const char* name : {"families/qwen3_next", "families/qwen3_5_text"}) {
    const Model model(name);
    ASSERT_GT(model.spec.uncached.size(), 0u);
    const size_t last = model.spec.layers.size() - 1;
    const Sequences sequences = SomeSequences({30, 13}, 64);
    const LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat);
    KeepingObserver whole, part;
    at::Tensor hidden = loop.Embed(sequences), saved = hidden.clone();
    size_t calls = 0;
    loop.Run(hidden, {30, 13}, 0, whole, [&](size_t layer) {
      EXPECT_EQ(layer, calls++);
      if (layer + 1 == last) saved = hidden.clone();
      return true;
    });
    EXPECT_EQ(calls, last + 1);
    loop.Run(saved, {30, 13}, last, part, [](size_t) { return true; });
    EXPECT_TRUE(SameBytes(saved, hidden)) << name;
    const std::string q = "layer." + std::to_string(model.spec.layers[last].layer_id) + ".q";
    EXPECT_TRUE(SameBytes(part.kept.at(q), whole.kept.at(q))) << name;
  }
}

// A run that starts after the layers whose keys and values are shared lacks these. A run that stops
// at the last layer with a cache does not need them.
TEST(LayerLoop, LayersThatReadAnothersCacheNeedItInTheSameRun) {
  const Model model("families/gemma4_text-ple");
  const Sequences sequences = SomeSequences({20}, 64);
  const Result whole = RunAll(model, sequences);
  LoopOptions options;
  options.token_ids = &sequences;
  KeepingObserver observer;
  for (const bool to_the_end : {true, false}) {
    options.need_final_hidden = to_the_end;
    const LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat, options);
    at::Tensor hidden = loop.Embed(sequences);
    loop.Run(hidden, {20}, 0, observer, [](size_t) { return false; });
    const auto run = [&] { loop.Run(hidden, {20}, 1, observer, [](size_t) { return true; }); };
    if (to_the_end) {
      EXPECT_THROW(run(), InputError);
    } else {
      run();
      EXPECT_TRUE(
          SameBytes(observer.kept.at("layer.1.attn_out"), whole.kept.at("layer.1.attn_out")));
    }
  }
}

TEST(LayerLoop, ObserverSeesEverySequenceOfEveryLayerInOrder) {
  struct Recorder : LayerObserver {
    void OnLayerBegin(const LayerSpec& layer) override {
      log += "(" + std::to_string(layer.layer_id);
    }
    void OnAttention(const AttentionView& view) override {
      log += " " + std::to_string(view.sequence) + "@" + std::to_string(view.first_token);
      EXPECT_EQ(view.q.size(0), view.attn_out.size(0));
      EXPECT_TRUE(view.q.is_contiguous() && view.k.is_contiguous() && view.v.is_contiguous());
      EXPECT_EQ(view.layer_index, static_cast<size_t>(view.layer.layer_id));
    }
    void OnLayerEnd(const LayerSpec&) override { log += ")"; }
    std::string log;
  } recorder;
  const Model model("arch/llama");
  const LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat,
                       {/*token_chunk=*/32, 512, 4096, true});
  at::Tensor hidden = loop.Embed(SomeSequences({20, 12, 40, 5}));
  loop.Run(hidden, {20, 12, 40, 5}, 0, recorder, [](size_t layer) { return layer < 1; });
  EXPECT_EQ(recorder.log, "(0 0@0 1@20 2@32 3@72)(1 0@0 1@20 2@32 3@72)");
}

TEST(LayerLoop, WithoutFinalHiddenTheLastLayerStopsAfterAttention) {
  const Model model("arch/llama");
  const Sequences sequences = SomeSequences({30});
  LoopOptions options;
  options.need_final_hidden = false;
  const Result full = RunAll(model, sequences), cut = RunAll(model, sequences, options);
  EXPECT_TRUE(SameBytes(full.kept.at("layer.2.attn_out"), cut.kept.at("layer.2.attn_out")));
  EXPECT_FALSE(SameBytes(full.hidden, cut.hidden));
}

TEST(LayerLoop, RefusesTokensThatTheModelDoesNotHave) {
  const Model model("arch/llama");
  const LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat);
  EXPECT_THROW(loop.Embed({{1, 2}, {3, 256}}), InputError);
  EXPECT_THROW(loop.Embed({{1, -2}}), InputError);
  EXPECT_THROW(loop.Embed({{1, 2}, {}}), InputError);
  EXPECT_THROW(loop.Embed({std::vector<int32_t>(513, 1)}), InputError);
  EXPECT_EQ(loop.Embed({std::vector<int32_t>(512, 1)}).size(0), 512);
}

TEST(LayerLoop, AStoredHeadMustAgreeWithATiedOne) {
  for (const bool same : {true, false}) {
    const auto directory = TestScratch("tied");
    CopyWeights(TestData("tiny-qwen3"), directory, [&](TensorMap& tensors) {
      tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
      if (!same) tensors["lm_head.weight"].data.back() ^= std::byte{1};
    });
    const ModelSpec spec = ReadModelSpec(TestData("tiny-qwen3"));
    const Checkpoint checkpoint = Checkpoint::Open(directory);
    const LayerLoop loop(checkpoint, spec, at::kCPU, at::kFloat);
    const at::Tensor hidden = loop.Embed({{1, 2, 3}});
    if (same) {
      EXPECT_EQ(loop.Logits(hidden).size(1), spec.vocab_size);
    } else {
      EXPECT_THROW(loop.Logits(hidden), InputError);
    }
  }
}

TEST(LayerLoop, StreamsShareOneReadAndDifferInWhatTheirObserverSays) {
  class Zeroed : public LayerObserver {
   public:
    void OnLayerBegin(const LayerSpec&) override { ++layers; }
    bool Attend(const AttentionView& view) override {
      if (view.stream != 2) return false;
      at::Tensor out = view.attn_out;
      out.zero_();
      return true;
    }
    void OnAttention(const AttentionView& view) override {
      EXPECT_EQ(view.stream, next % 3);
      ++next;
    }
    size_t layers = 0, next = 0;
  };
  const Model model("arch/llama");
  const LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat);
  const at::Tensor embedded = loop.Embed({std::vector<int32_t>{3, 1, 4, 1, 5}});
  std::vector<at::Tensor> streams = {embedded.clone(), embedded.clone(), embedded.clone()};
  at::Tensor alone = embedded.clone();
  Zeroed observer;
  const auto go_on = [](size_t) { return true; };
  loop.Run(streams, {5}, 0, observer, go_on);
  EXPECT_EQ(observer.layers, model.spec.layers.size());
  EXPECT_EQ(observer.next, 3 * model.spec.layers.size());
  SilentObserver nothing;
  loop.Run(alone, {5}, 0, nothing, go_on);
  EXPECT_TRUE(streams[0].equal(alone));
  EXPECT_TRUE(streams[1].equal(alone));
  EXPECT_FALSE(streams[2].equal(alone));
}

TEST(LayerLoop, LaterStreamsMayLackTheFirstSequences) {
  class Count : public LayerObserver {
   public:
    void OnAttention(const AttentionView& view) override {
      const bool lead = view.sequence < 2;
      EXPECT_TRUE(view.stream == 0 || !lead);
      EXPECT_TRUE(!lead || rest == 0) << "the first sequences come first";
      (lead ? leads : rest) += 1;
    }
    void OnLayerEnd(const LayerSpec&) override {
      EXPECT_EQ(leads, 2);
      EXPECT_EQ(rest, 2 * 3);
      leads = rest = 0;
    }
    int leads = 0, rest = 0;
  } count;
  SilentObserver nothing;
  const Model model("arch/llama");
  const LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat);
  const Sequences lead = SomeSequences({7, 9}), rest = SomeSequences({5, 11, 3});
  Sequences all = lead;
  all.insert(all.end(), rest.begin(), rest.end());
  const auto go_on = [](size_t) { return true; };
  std::vector<at::Tensor> streams = {loop.Embed(all), loop.Embed(rest)};
  loop.Run(streams, {7, 9, 5, 11, 3}, 0, count, go_on);
  at::Tensor alone = loop.Embed(rest);
  loop.Run(alone, {5, 11, 3}, 0, nothing, go_on);
  EXPECT_TRUE(streams[0].narrow(0, 16, 19).equal(alone));
  EXPECT_TRUE(streams[1].equal(alone));
}

// Recall tasks run on few of a validation's arms, so a stream may end before the others do. Its
// values must be those of a run without the other streams.
TEST(LayerLoop, AStreamMayEndBeforeTheOthers) {
  class : public LayerObserver {
   public:
    void OnAttention(const AttentionView& view) override {
      EXPECT_EQ(view.k.size(0), std::vector<int64_t>({7, 5, 11, 3})[view.sequence]);
      seen.emplace_back(view.sequence, view.stream);
    }
    void OnLayerEnd(const LayerSpec&) override {
      using Seen = std::pair<int64_t, size_t>;
      std::ranges::stable_sort(seen, {}, &Seen::first);
      EXPECT_EQ(seen, (std::vector<Seen>{
                          {0, 0}, {1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}, {3, 0}, {3, 2}}));
      seen.clear();
    }
    std::vector<std::pair<int64_t, size_t>> seen;
  } record;
  SilentObserver nothing;
  const Model model("arch/llama");
  const LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat);
  const Sequences all = SomeSequences({7, 5, 11, 3});
  const Sequences rest = {all.begin() + 1, all.end()}, two = {all.begin() + 1, all.begin() + 3};
  const auto go_on = [](size_t) { return true; };
  std::vector<at::Tensor> streams = {loop.Embed(all), loop.Embed(two), loop.Embed(rest)};
  loop.Run(streams, {7, 5, 11, 3}, 0, record, go_on);
  at::Tensor alone = loop.Embed(two);
  loop.Run(alone, {5, 11}, 0, nothing, go_on);
  EXPECT_TRUE(streams[1].equal(alone));
  EXPECT_TRUE(streams[2].narrow(0, 0, 16).equal(alone));
}

TEST(LayerLoop, RoundsWhatEntersAttentionToTheCacheType) {
  class : public LayerObserver {
   public:
    void OnAttention(const AttentionView& view) override {
      for (const at::Tensor* x : {&view.q, &view.k, &view.v}) {
        EXPECT_EQ(x->scalar_type(), at::kFloat);
        EXPECT_TRUE(x->equal(x->to(at::kBFloat16).to(at::kFloat)));
      }
    }
  } observer;
  const Model model("arch/llama");
  const LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat,
                       {.cache_dtype = at::kBFloat16});
  at::Tensor hidden = loop.Embed({std::vector<int32_t>{3, 1, 4, 1, 5}});
  loop.Run(hidden, {5}, 0, observer, [](size_t) { return true; });
}

}  // namespace
}  // namespace oscar
