// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares a decoding model with a run over the finished text: transformers' logits, token by
// token, and every choice. If the rotary embedding depends on the sequence length, golden logits
// exist only for the whole length.
#include "capture/model/generate/decode_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "capture/model/generate/generate.h"
#include "capture/model/run/device.h"
#include "tests/capture/model/run_model.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> FamiliesAndPacks() {
  std::vector<fs::path> folders;
  std::vector<fs::path> roots = {TestData("families"), TestData("arch")};
  if (const auto packs = TestPack("arch")) roots.push_back(*packs);
  for (const fs::path& root : roots) {
    for (const auto& entry : fs::directory_iterator(root)) {
      if (entry.is_directory() && exists(entry.path() / "golden.safetensors"))
        folders.push_back(entry.path());
    }
  }
  std::ranges::sort(folders);
  return folders;
}

struct Opened {
  explicit Opened(const fs::path& folder)
      : checkpoint(Checkpoint::Open(folder)), spec(ReadModelSpec(folder)) {}
  Checkpoint checkpoint;
  ModelSpec spec;
};

bool DependsOnLength(const ModelSpec& spec, int64_t length) {
  for (int64_t n = 1; n <= length; ++n)
    if (TurnsEarlierTokens(spec, n)) return true;
  return false;
}

// Returns the logits of a run over the whole sequences. [T_total, vocab_size] float32
at::Tensor WholeLogits(const Opened& model, const Sequences& sequences) {
  LoopOptions options;
  options.token_ids = &sequences;
  const LayerLoop loop(model.checkpoint, model.spec, at::kCPU, at::kFloat, options);
  at::Tensor hidden = loop.Embed(sequences);
  KeepingObserver ignored;
  loop.Run(hidden, Lengths(sequences), 0, ignored, [](size_t) { return true; });
  return loop.Logits(hidden);
}

std::vector<int32_t> GoldenIds(const SafetensorsFile& golden, int64_t most) {
  const TensorView stored = golden.tensor("input_ids");
  std::vector<int32_t> ids(static_cast<size_t>(stored.shape.at(0)));
  std::memcpy(ids.data(), stored.data.data(), stored.data.size());
  ids.resize(std::min(ids.size(), static_cast<size_t>(most)));
  return ids;
}

// Starts three sequences with prefixes of `ids` and appends the other ids one by one. Returns the
// largest relative error of a row of logits, where `expected(length)` gives the row for a prefix.
double WorstStep(DecodeLoop& decoder, const std::vector<int32_t>& ids,
                 const std::function<at::Tensor(int64_t length)>& expected) {
  const auto length = std::ssize(ids);
  Sequences sequences;
  for (const int64_t part : {length / 3, int64_t{1}, length / 2})
    sequences.emplace_back(ids.begin(), ids.begin() + part);
  double worst = 0;
  at::Tensor logits = decoder.Begin(sequences, length);
  while (true) {
    std::vector<size_t> kept;
    std::vector<int32_t> next;
    for (size_t s = 0; s < decoder.sequences().size(); ++s) {
      const int64_t now = std::ssize(decoder.sequences()[s]);
      worst = std::max(worst, RelativeError(logits[static_cast<int64_t>(s)].cpu(), expected(now)));
      if (now == length) continue;
      kept.push_back(s);
      next.push_back(ids[static_cast<size_t>(now)]);
    }
    if (kept.empty()) return worst;
    if (kept.size() < decoder.sequences().size()) decoder.Keep(kept);
    logits = decoder.Append(next);
  }
}

// The families have windows, soft caps, sinks, gates, linear and latent attention, experts, shared
// keys and per-layer embeddings. With a cache, each must give what transformers gives without one.
TEST(DecodeLoop, AgreesWithTransformersTokenByToken) {
  size_t compared = 0;
  for (const fs::path& folder : FamiliesAndPacks()) {
    SCOPED_TRACE(folder.filename().string());
    const Opened model(folder);
    const SafetensorsFile golden = SafetensorsFile::Open(folder / "golden.safetensors");
    if (!golden.tensors().contains("logits")) continue;
    constexpr int64_t kMost = 40;
    const std::vector<int32_t> ids = GoldenIds(golden, kMost);
    if (DependsOnLength(model.spec, golden.tensor("input_ids").shape.at(0))) continue;
    const at::Tensor logits = StoredTensor(golden, "logits");
    LoopOptions options;
    options.token_chunk = 7;
    DecodeLoop decoder(model.checkpoint, model.spec, at::kCPU, at::kFloat, /*resident=*/true,
                       options);
    EXPECT_LT(WorstStep(decoder, ids, [&](int64_t now) { return logits[now - 1]; }), 1e-4);
    ++compared;
  }
  EXPECT_GE(compared, 36u);
}

// In these models a longer sequence changes the rotary embedding of its earlier tokens.
TEST(DecodeLoop, SequencesThatGrowIntoAnotherEmbeddingAreRunAgain) {
  for (const char* name : {"families/llama-dynamic", "families/llama-longrope", "families/phi3"}) {
    SCOPED_TRACE(name);
    const Opened model(TestData(name));
    const SafetensorsFile golden = SafetensorsFile::Open(TestData(name) / "golden.safetensors");
    const std::vector<int32_t> ids = GoldenIds(golden, 40);
    ASSERT_TRUE(DependsOnLength(model.spec, std::ssize(ids)));
    DecodeLoop decoder(model.checkpoint, model.spec, at::kCPU, at::kFloat, /*resident=*/true);
    const auto expected = [&](int64_t now) {
      return WholeLogits(model, {{ids.begin(), ids.begin() + now}})[now - 1];
    };
    EXPECT_LT(WorstStep(decoder, ids, expected), 1e-4);
  }
}

std::vector<PromptToContinue> SomePrompts(const ModelSpec& spec, int64_t longest) {
  std::vector<PromptToContinue> prompts;
  for (const auto& ids : SomeSequences({5, 1, 9}, static_cast<int32_t>(spec.vocab_size)))
    prompts.push_back({ids, longest - 2 * std::ssize(prompts), prompts.size()});
  return prompts;
}

std::vector<Continuation> Write(const Opened& model, const std::vector<PromptToContinue>& prompts,
                                const SamplingOptions& sampling = {}, bool resident = true,
                                const std::vector<int32_t>& stop_ids = {}) {
  LoopOptions options;
  options.expert_bytes = resident ? options.expert_bytes : 1;
  DecodeLoop decoder(model.checkpoint, model.spec, at::kCPU, at::kFloat, resident, options);
  return Generate(decoder, prompts, stop_ids, sampling, [](int64_t) { return true; }).value();
}

TEST(Generate, GreedyTokensAreTheLikeliestOfTheFinishedText) {
  int64_t tokens = 0;
  for (const fs::path& folder : FamiliesAndPacks()) {
    SCOPED_TRACE(folder.filename().string());
    const Opened model(folder);
    constexpr int64_t kLongest = 14;
    if (DependsOnLength(model.spec, 9 + kLongest)) continue;
    const std::vector<PromptToContinue> prompts = SomePrompts(model.spec, kLongest);
    const std::vector<Continuation> written = Write(model, prompts);
    Sequences whole;
    for (size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_EQ(std::ssize(written[i].ids), prompts[i].longest);
      EXPECT_FALSE(written[i].ended);
      whole.push_back(prompts[i].ids);
      whole.back().insert(whole.back().end(), written[i].ids.begin(), written[i].ids.end());
    }
    const at::Tensor logits = WholeLogits(model, whole);
    int64_t row = 0;
    for (size_t i = 0; i < prompts.size(); ++i) {
      int64_t at = row + std::ssize(prompts[i].ids) - 1;
      for (const int32_t id : written[i].ids) {
        const at::Tensor of_token = logits[at++];
        const double short_of_best = of_token.max().item<double>() - of_token[id].item<double>();
        EXPECT_LE(short_of_best, 1e-4 * of_token.abs().max().item<double>());
        ++tokens;
      }
      row += std::ssize(whole[i]);
    }
  }
  EXPECT_GT(tokens, 36 * 30);
}

TEST(Generate, WeightsReadAgainForEveryTokenWriteTheSame) {
  for (const char* name : {"families/qwen3_moe", "families/gpt_oss", "families/gemma4_text-ple",
                           "families/qwen3_next", "arch/qwen2-swa"}) {
    const Opened model(TestData(name));
    const auto prompts = SomePrompts(model.spec, 8);
    const auto resident = Write(model, prompts), streamed = Write(model, prompts, {}, false);
    for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(resident[i].ids, streamed[i].ids) << name;
  }
}

TEST(Generate, ADrawDoesNotDependOnWhoStandsBeside) {
  const Opened model(TestData("tiny-qwen3"));
  const SamplingOptions sampling{.temperature = 0.9, .top_p = 0.95, .seed = 7};
  const auto prompts = SomePrompts(model.spec, 24);
  const auto together = Write(model, prompts, sampling);
  for (size_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ(Write(model, {prompts[i]}, sampling)[0].ids, together[i].ids);
  EXPECT_NE(Write(model, prompts, {.temperature = 0.9, .top_p = 0.95, .seed = 8})[0].ids,
            together[0].ids);
  EXPECT_NE(Write(model, prompts)[0].ids, together[0].ids);
}

TEST(Generate, AStopTokenEndsAContinuationAndIsNoPartOfIt) {
  const Opened model(TestData("tiny-qwen3"));
  const auto prompts = SomePrompts(model.spec, 24);
  const auto whole = Write(model, prompts);
  const int32_t stop = whole[1].ids[6];
  const auto stopped = Write(model, prompts, {}, true, {stop});
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto end = std::ranges::find(whole[i].ids, stop);
    EXPECT_EQ(stopped[i].ids, std::vector<int32_t>(whole[i].ids.begin(), end));
    EXPECT_EQ(stopped[i].ended, end != whole[i].ids.end());
  }
  EXPECT_TRUE(stopped[1].ended);
}

TEST(Generate, IsStoppedBetweenSteps) {
  const Opened model(TestData("tiny-qwen3"));
  DecodeLoop decoder(model.checkpoint, model.spec, at::kCPU, at::kFloat, true);
  int64_t tokens = 0;
  const auto none = Generate(decoder, SomePrompts(model.spec, 24), {}, {}, [&](int64_t n) {
    tokens += n;
    return tokens < 9;
  });
  EXPECT_FALSE(none.has_value());
  EXPECT_EQ(tokens, 9);
}

TEST(TokenSampler, DrawsWithTheProbabilitiesOfTheNucleus) {
  const std::vector<float> logits = {1.0f, 3.0f, -2.0f, 2.0f, 0.0f};
  const double temperature = 1.5;
  std::vector<double> p;
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) / temperature);
  for (const float x : logits) p.push_back(std::exp(static_cast<double>(x) / temperature) / sum);
  constexpr int64_t kDraws = 20000;
  const at::Tensor rows =
      at::from_blob(const_cast<float*>(logits.data()), {1, 5}, at::kFloat).expand({kDraws, 5});
  std::vector<DrawKey> keys;
  for (uint64_t i = 0; i < kDraws; ++i) keys.push_back({i / 100, i % 100});
  const auto shares = [&](double top_p) {
    std::vector<double> counts(5, 0.0);
    for (const int32_t id : ChooseTokens(rows, {temperature, top_p, 3}, keys))
      counts[static_cast<size_t>(id)] += 1.0 / kDraws;
    return counts;
  };
  const std::vector<double> all = shares(1);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(all[i], p[i], 0.015) << i;
  // The two likeliest tokens have 0.52 and 0.27, so the second of them reaches 0.7.
  ASSERT_LT(p[1], 0.7);
  ASSERT_GT(p[1] + p[3], 0.7);
  const std::vector<double> nucleus = shares(0.7);
  EXPECT_NEAR(nucleus[1], p[1] / (p[1] + p[3]), 0.015);
  EXPECT_NEAR(nucleus[3], p[3] / (p[1] + p[3]), 0.015);
  EXPECT_EQ(nucleus[0] + nucleus[2] + nucleus[4], 0);
}

TEST(DecodeLoop, CountsItsBytes) {
  const Opened model(TestData("families/gemma4_text-ple"));
  uint64_t values = 0;
  const auto file = SafetensorsFile::Open(TestData("families/gemma4_text-ple/model.safetensors"));
  for (const auto& [name, info] : file.tensors()) {
    if (name.find("embed_tokens_per_layer") == name.npos)
      values += static_cast<uint64_t>(StoredTensor(file, name).numel());
  }
  EXPECT_EQ(DecodeLoop::WeightBytes(model.spec, at::kBFloat16), 2 * values);
}

TEST(DecodeLoop, WritesOnAGpu) {
  if (ParseDevice("auto").is_cpu()) GTEST_SKIP() << "no GPU";
  for (const fs::path& folder : FamiliesAndPacks()) {
    SCOPED_TRACE(folder.filename().string());
    const Opened model(folder);
    const SafetensorsFile golden = SafetensorsFile::Open(folder / "golden.safetensors");
    if (!golden.tensors().contains("logits") ||
        DependsOnLength(model.spec, golden.tensor("input_ids").shape.at(0)))
      continue;
    const at::Tensor logits = StoredTensor(golden, "logits");
    DecodeLoop decoder(model.checkpoint, model.spec, ParseDevice("cuda"), at::kFloat, true);
    const double worst =
        WorstStep(decoder, GoldenIds(golden, 40), [&](int64_t now) { return logits[now - 1]; });
    EXPECT_LT(worst, 1e-4);
    std::cout << "[   gpu    ] " << folder.filename().string() << ": worst step " << worst << "\n";
  }
}

}  // namespace
}  // namespace oscar
