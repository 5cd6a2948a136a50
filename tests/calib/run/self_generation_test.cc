// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/run/self_generation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

struct WritingModel {
  explicit WritingModel(const char* name = "tiny-qwen3") : directory(TestData(name)) {}

  SelfGeneration Asked(int64_t tokens, int64_t longest, int64_t prompts = 6) const {
    SelfGeneration asked{.checkpoint = checkpoint,
                         .spec = spec,
                         .options = {.tokens = tokens, .longest = longest},
                         .prompts = {},
                         .chat_format = "none",
                         .stop_ids = {},
                         .max_sequence = 200};
    for (int32_t i = 0; i < prompts; ++i)
      asked.prompts.push_back({"self:" + std::to_string(i), {5 + i, 40, 41 + 3 * i}});
    return asked;
  }

  fs::path directory;
  Checkpoint checkpoint = Checkpoint::Open(directory);
  ModelSpec spec = ReadModelSpec(directory);
};

constexpr uint64_t kPlenty = uint64_t{64} << 30;

SelfGenerated Generate(const SelfGeneration& asked, const fs::path& job, int64_t batch = 0,
                       const SelfGenerationHooks& hooks = {}) {
  const auto plan = [&] {
    SelfGenerationPlan way = PlanSelfGeneration(asked, kPlenty);
    if (batch > 0) way.batch = batch;
    return way;
  };
  return GenerateDocuments(asked, plan, job, {{"asked", DescribeSelfGeneration(asked)}}, hooks);
}

std::vector<std::vector<int32_t>> IdsOf(const SelfGenerated& generated) {
  std::vector<std::vector<int32_t>> ids;
  for (const Document& document : generated.documents) ids.push_back(document.ids);
  return ids;
}

TEST(SelfGeneration, WritesTheTokensThatWereAskedFor) {
  const WritingModel model;
  const SelfGeneration asked = model.Asked(50, 20);
  const SelfGenerated generated = Generate(asked, TestScratch("self-all"));
  EXPECT_EQ(generated.tokens, 50);
  EXPECT_EQ(generated.prompts, 3);
  ASSERT_EQ(generated.documents.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {  // 17 + 17 + 16
    const std::vector<int32_t>& ids = generated.documents[i].ids;
    EXPECT_EQ(ids.size(), 3 + (i < 2 ? 17u : 16u));
    EXPECT_TRUE(std::equal(asked.prompts[i].ids.begin(), asked.prompts[i].ids.end(), ids.begin()));
  }
  DataSet data;
  data.documents = {{"text", {1, 2}}};
  data.counts = {.documents_sent = 1, .documents_used = 1, .tokens_sent = 2, .tokens_used = 2};
  AddSelfGenerated(asked, generated, data);
  EXPECT_EQ(data.counts.tokens_used, 2 + 50 + 3 * 3);
  EXPECT_EQ(data.counts.documents_sent, 4);
  EXPECT_EQ(data.digest, DataDigest(data.documents));
  EXPECT_EQ(data.self_generated.at("tokens"), 50);
}

TEST(SelfGeneration, AnInterruptedOneGoesOnWithTheNextBatch) {
  const WritingModel model;
  const SelfGeneration asked = model.Asked(80, 20);
  const SelfGenerated whole = Generate(asked, TestScratch("self-whole"), 2);
  const fs::path job = TestScratch("self-parts");
  int steps = 0;
  SelfGenerationHooks hooks;
  hooks.stop_requested = [&] { return ++steps > 30; };  // in the second batch of 20 steps
  EXPECT_THROW(Generate(asked, job, 2, hooks), Interrupted);
  steps = 0;
  hooks.stop_requested = [&] { return ++steps > 20; };
  const SelfGenerated rest = Generate(asked, job, 2, hooks);  // does not start over
  EXPECT_EQ(IdsOf(rest), IdsOf(whole));
  EXPECT_FALSE(rest.from_job);
  const SelfGenerated read = Generate(asked, job);
  EXPECT_TRUE(read.from_job);
  EXPECT_EQ(IdsOf(read), IdsOf(whole));
}

TEST(SelfGeneration, PromptsFollowWhereContinuationsEndEarly) {
  const WritingModel model;
  SelfGeneration asked = model.Asked(60, 20);
  const SelfGenerated whole = Generate(asked, TestScratch("self-free"));
  const int32_t stop = whole.documents[0].ids[3 + 5];  // sixth token of the first answer
  asked.stop_ids = {stop};
  const SelfGenerated stopped = Generate(asked, TestScratch("self-stopped"));
  EXPECT_GT(stopped.prompts, 3);
  int64_t tokens = 0;
  for (const Document& document : stopped.documents) {
    EXPECT_EQ(std::find(document.ids.begin() + 3, document.ids.end(), stop), document.ids.end());
    tokens += std::ssize(document.ids) - 3;
    for (const Document& free : whole.documents) {
      if (free.origin != document.origin) continue;
      EXPECT_TRUE(std::equal(document.ids.begin(), document.ids.end(), free.ids.begin()));
      EXPECT_TRUE(document.ids.size() == free.ids.size() || free.ids[document.ids.size()] == stop);
    }
  }
  EXPECT_EQ(stopped.tokens, tokens);
  // It is an error if every answer ends at once.
  SelfGeneration silent = model.Asked(20, 20, 1);
  silent.stop_ids = {whole.documents[0].ids[3]};
  EXPECT_TRUE(Says(ErrorOf<InputError>([&] { Generate(silent, TestScratch("self-nothing")); }),
                   "ends each of 1 answers"));
}

TEST(SelfGeneration, PlansAsManyAtOnceAsFit) {
  const WritingModel model;
  SelfGeneration asked = model.Asked(6 * 100, 100);
  const SelfGenerationPlan all = PlanSelfGeneration(asked, kPlenty);
  EXPECT_TRUE(all.resident);
  EXPECT_EQ(all.batch, 6);
  EXPECT_EQ(all.steps, 100);
  EXPECT_LT(all.bytes_read, 2 * all.weight_bytes);
  EXPECT_GT(all.memory_bytes, all.weight_bytes + all.cache_bytes);
  // A plan uses nine tenths of the memory, which here is slightly too little for all six prompts.
  const SelfGenerationPlan fewer = PlanSelfGeneration(asked, all.memory_bytes * 10 / 9 - 100);
  EXPECT_TRUE(fewer.resident);
  EXPECT_EQ(fewer.batch, 3);
  EXPECT_EQ(fewer.steps, 200);

  const std::string refusal =
      ErrorOf<ResourceError>([&] { PlanSelfGeneration(asked, all.weight_bytes); });
  EXPECT_TRUE(Says(refusal, "self-stream"));
  asked.options.stream = true;
  const SelfGenerationPlan streamed = PlanSelfGeneration(asked, all.weight_bytes);
  EXPECT_FALSE(streamed.resident);
  EXPECT_LE(streamed.memory_bytes, all.weight_bytes);
  EXPECT_EQ(streamed.bytes_read % static_cast<uint64_t>(streamed.steps), 0u);
  EXPECT_GE(streamed.bytes_read, static_cast<uint64_t>(streamed.steps) * all.weight_bytes / 4);
  EXPECT_THROW(PlanSelfGeneration(asked, all.weight_bytes / 100), ResourceError);

  asked.options.tokens = 601;
  const std::string too_many = ErrorOf<UsageError>([&] { PlanSelfGeneration(asked, kPlenty); });
  EXPECT_TRUE(Says(too_many, "6 prompts, whose continuations have at most 600 tokens"));
}

TEST(SelfGeneration, APlanHasDocumentsAsLong) {
  const WritingModel model;
  const SelfGeneration asked = model.Asked(130, 50);
  const SelfGenerated planned = PlannedDocuments(asked),
                      written = Generate(asked, TestScratch("self-planned"));
  ASSERT_EQ(planned.documents.size(), written.documents.size());
  for (size_t i = 0; i < planned.documents.size(); ++i)
    EXPECT_EQ(planned.documents[i].ids.size(), written.documents[i].ids.size());
}

}  // namespace
}  // namespace oscar
