// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that a running model and the dump it writes give an observer the same tensors, bit for bit.
#include "capture/model/run/attention_source.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "capture/dump/dump_reader.h"
#include "capture/dump/hdf5_file.h"
#include "capture/model/run/dump_observer.h"
#include "linalg/base/error.h"
#include "tests/capture/model/run_model.h"
#include "tests/support/said.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

const auto kAll = [](size_t) { return true; };

Sequences TestSequences() { return SomeSequences({40, 7, 90}); }

ModelSource Source(const Model& model, at::ScalarType dtype, const LoopOptions& options = {}) {
  return {model.checkpoint, model.spec, TestSequences(), at::kCPU, dtype, options};
}

std::map<std::string, at::Tensor> Kept(AttentionSource& source, size_t first_layer = 0) {
  KeepingObserver observer;
  source.Run(first_layer, observer, kAll);
  return observer.kept;
}

void ExpectSame(const std::map<std::string, at::Tensor>& found,
                const std::map<std::string, at::Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected)
    EXPECT_TRUE(SameBytes(found.at(name), tensor)) << name;
}

// Writes the model's dump, with the last three score rows of each sequence.
std::shared_ptr<const DumpReader> Dump(ModelSource& source, const fs::path& path, bool logits) {
  std::vector<int64_t> rows;
  int64_t end = 0;
  for (const int64_t length : source.sequence_lengths()) {
    end += length;
    rows.insert(rows.end(), {end - 3, end - 2, end - 1});
  }
  DumpWriter writer(path, source.sequences(),
                    {.deflate_level = 0,
                     .score_rows = rows,
                     .logits_width = logits ? source.loop().spec().vocab_size : 0});
  DumpObserver observer(writer, &writer, source.loop().dtype());
  source.Run(0, observer, kAll);
  if (logits) DumpLogits(source, writer);
  writer.Commit({});
  return std::make_shared<const DumpReader>(path);
}

TEST(ModelSource, IsTheLayerLoop) {
  const Model model("tiny-qwen3");
  ModelSource source = Source(model, at::kFloat);
  const Result expected = RunAll(model, TestSequences());
  ExpectSame(Kept(source), expected.kept);
  EXPECT_TRUE(SameBytes(source.hidden(), expected.hidden));
}

TEST(ModelSource, ContinuesFromRestoredHiddenStates) {
  const Model model("tiny-qwen3");
  ModelSource whole = Source(model, at::kFloat), parts = Source(model, at::kFloat);
  const auto expected = Kept(whole);
  KeepingObserver first;
  parts.Run(0, first, [](size_t layer) { return layer < 1; });
  ModelSource rest = Source(model, at::kFloat);
  rest.Restore(parts.hidden());
  auto found = Kept(rest, 2);
  for (const auto& [name, tensor] : first.kept) found.emplace(name, tensor);
  ExpectSame(found, expected);
}

TEST(DumpSource, ShowsWhatTheModelShowed) {
  for (const char* name : {"tiny-qwen3", "arch/qwen2-swa"}) {
    const Model model(name);
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
      ModelSource source = Source(model, dtype);
      const auto expected = Kept(source);
      const auto dump = Dump(source, TestScratch("dump-source") / "d.h5", false);
      DumpSource from_dump(dump, at::kCPU, dtype);
      ExpectSame(Kept(from_dump), expected);
      ASSERT_EQ(from_dump.layers().size(), model.spec.layers.size());
      for (size_t i = 0; i < model.spec.layers.size(); ++i) {
        const AttentionSpec &a = from_dump.layers()[i].attention,
                            &b = model.spec.layers[i].attention;
        EXPECT_EQ(from_dump.layers()[i].layer_id, model.spec.layers[i].layer_id);
        EXPECT_EQ(a.num_q_heads, b.num_q_heads);
        EXPECT_EQ(a.num_kv_heads, b.num_kv_heads);
        EXPECT_EQ(a.head_dim, b.head_dim);
        EXPECT_EQ(a.v_head_dim, b.v_head_dim);
        EXPECT_EQ(a.scale, b.scale);
        EXPECT_EQ(a.window, b.window);
      }
    }
  }
}

TEST(DumpSource, StartsAndStopsAtAnyLayer) {
  const Model model("tiny-qwen3");
  ModelSource source = Source(model, at::kFloat);
  DumpSource dump(Dump(source, TestScratch("dump-source-part") / "d.h5", false), at::kCPU,
                  at::kFloat);
  std::vector<size_t> layers;
  KeepingObserver observer;
  dump.Run(1, observer, [&](size_t layer) {
    layers.push_back(layer);
    return layer < 2;
  });
  EXPECT_EQ(layers, (std::vector<size_t>{1, 2}));
}

// A dump without attention output, like upstream's dumps.
class WithoutOutput : public AttentionDump {
 public:
  explicit WithoutOutput(std::shared_ptr<const AttentionDump> dump) : dump_(std::move(dump)) {}
  const DumpOrigin& origin() const override { return dump_->origin(); }
  const std::string& name() const override { return dump_->name(); }
  const std::vector<DumpLayer>& layers() const override { return dump_->layers(); }
  const std::vector<int64_t>& sequence_lengths() const override {
    return dump_->sequence_lengths();
  }
  bool has(DumpTensor tensor) const override { return tensor != DumpTensor::kAttnOut; }
  void ReadRows(size_t layer, DumpTensor tensor, int64_t first_token,
                std::span<std::byte> out) const override {
    ASSERT_NE(tensor, DumpTensor::kAttnOut);
    dump_->ReadRows(layer, tensor, first_token, out);
  }

 private:
  std::shared_ptr<const AttentionDump> dump_;
};

TEST(DumpSource, ComputesTheOutputThatADumpLacks) {
  const Model model("arch/qwen2-swa");
  ModelSource source = Source(model, at::kFloat);
  const auto expected = Kept(source);
  const auto dump = Dump(source, TestScratch("dump-source-out") / "d.h5", false);
  DumpSource without(std::make_shared<WithoutOutput>(dump), at::kCPU, at::kFloat);
  ExpectSame(Kept(without), expected);
}

TEST(DumpObserver, WritesScoresAndLogitsOfTheModel) {
  const Model model("arch/qwen2-swa");
  ModelSource source = Source(model, at::kFloat);
  const fs::path path = TestScratch("dump-scores") / "d.h5";
  const auto dump = Dump(source, path, true);
  const Hdf5Reader file(path);
  const auto read = [&](const std::string& dataset, at::Tensor&& into) {
    file.ReadRows<float>(dataset, into.sizes().vec(), 0,
                         {into.mutable_data_ptr<float>(), static_cast<size_t>(into.numel())});
    return into;
  };
  const at::Tensor expected = source.loop().Logits(source.hidden());
  const at::Tensor found = read("/logits", at::empty(expected.sizes()));
  EXPECT_LT((found - expected).abs().max().item<float>(), 1e-4);

  // A softmax row must sum to 1, and its product with v must be the captured output.
  const auto kept = Kept(source);
  for (size_t i = 0; i < dump->layers().size(); ++i) {
    const DumpLayer& layer = dump->layers()[i];
    const at::Tensor scores = read(fmt::format("/layer/{}/scores", layer.layer_id),
                                   at::empty({9, layer.num_q_heads, dump->longest_sequence()}));
    EXPECT_LT((scores.sum(-1) - 1).abs().max().item<float>(), 1e-5);
    const auto all = [&](DumpTensor tensor) {
      at::Tensor x = at::empty({137, layer.heads(tensor), layer.dim(tensor)});
      dump->ReadRows(i, tensor, 0, {static_cast<std::byte*>(x.mutable_data_ptr()), x.nbytes()});
      return x;
    };
    const at::Tensor v = all(DumpTensor::kV), out = all(DumpTensor::kAttnOut);
    int64_t first = 0, row = 0;
    for (const int64_t length : dump->sequence_lengths()) {
      for (int64_t t = first + length - 3; t < first + length; ++t, ++row) {
        EXPECT_EQ(dump->score_rows()[static_cast<size_t>(row)], t);
        EXPECT_EQ(scores[row]
                      .narrow(1, length, dump->longest_sequence() - length)
                      .abs()
                      .sum()
                      .item<float>(),
                  0);
        for (int64_t h = 0; h < layer.num_q_heads; ++h) {
          const at::Tensor values =
              v.narrow(0, first, length).select(1, h * layer.num_kv_heads / layer.num_q_heads);
          const at::Tensor output = scores[row][h].narrow(0, 0, length).matmul(values);
          EXPECT_LT((output - out[t][h]).abs().max().item<float>(), 1e-5);
        }
      }
      first += length;
    }
  }
}

TEST(DumpObserver, ANanIsRefusedByName) {
  const Model model("tiny-qwen3");
  ModelSource source = Source(model, at::kFloat);
  DumpWriter writer(TestScratch("dump-nan") / "d.h5", source.sequences(), {});
  DumpObserver observer(writer, nullptr, at::kFloat);
  const LayerSpec& layer = model.spec.layers[1];
  const AttentionSpec& a = layer.attention;
  const at::Tensor q = at::empty({40, a.num_q_heads, a.head_dim}).fill_(1);
  const at::Tensor k = at::empty({40, a.num_kv_heads, a.head_dim}).fill_(1), v = k.clone();
  k[3][1][5] = std::nanf("");
  observer.OnLayerBegin(layer);
  EXPECT_TRUE(Says(ErrorOf<NumericalError>([&] {
                     observer.OnAttention({layer, 1, 0, 0, q, k, v, q});
                   }),
                   "layer 1: k of sequence 0, token 3, head 1"));
}

}  // namespace
}  // namespace oscar
