// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/input/self_generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "calib/run/provenance.h"
#include "capture/model/generate/decode_loop.h"
#include "capture/model/run/device.h"
#include "capture/text/data/prompts.h"
#include "capture/text/data/stop_tokens.h"
#include "tools/cli/build_info.h"

namespace oscar {
namespace {

using WritingClock = std::chrono::steady_clock;

double WritingSeconds(WritingClock::time_point start) {
  return std::chrono::duration<double>(WritingClock::now() - start).count();
}

std::string WayText(const SelfGenerationPlan& plan) {
  return plan.resident ? std::string("all weights in memory")
                       : std::string("weights read again for every token");
}

Json PlanToJson(const SelfGenerationPlan& plan) {
  return {{"resident", plan.resident},
          {"batch", plan.batch},
          {"steps", plan.steps},
          {"weight_bytes", plan.weight_bytes},
          {"cache_bytes", plan.cache_bytes},
          {"memory_bytes", plan.memory_bytes},
          {"bytes_read", plan.bytes_read},
          {"seconds", plan.seconds}};
}

// Returns placeholders for a model of which only the configuration exists.
PromptSet PlaceholderPrompts(int64_t count, int64_t longest) {
  const auto tokens = static_cast<size_t>(std::min(kPassageTokens, longest));
  PromptSet set;
  set.prompts.assign(static_cast<size_t>(count), {"placeholder", std::vector<int32_t>(tokens)});
  set.chat_format = "none";
  return set;
}

std::string AsGigabytes(uint64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

}  // namespace

void AddSelfGenerateOptions(OptionTable& table, SelfGenerateArguments* self) {
  table.Add(&self->tokens, {.name = "self_generate",
                            .help = "number of tokens that the model generates as continuations of "
                                    "the data, to calibrate on in addition to --tokens; 0: none",
                            .unit = "tokens",
                            .min = 0,
                            .main = true});
  table.Add(&self->length,
            {.name = "self_length",
             .help = "length of the longest continuation; the model may end one earlier",
             .unit = "tokens",
             .min = 1});
  table.Add(&self->temperature,
            {.name = "self_temperature",
             .help = "sampling temperature of the continuations; 0: always the likeliest token",
             .min = 0,
             .max = 10});
  table.Add(&self->top_p,
            {.name = "self_top_p",
             .help = "sample from the likeliest tokens that together have this probability",
             .min = 0.01,
             .max = 1});
  table.Add(&self->seed, {.name = "seed", .help = "seed for sampling tokens", .min = 0});
  table.Add(&self->stream,
            {.name = "self_stream",
             .help = "generate text even if the weights do not fit into memory; they are then read "
                     "again for every token, and --dry-run shows the cost",
             .scope = OptionScope::kRun});
  table.OnlyWith({"self_length", "self_temperature", "self_top_p", "seed", "self_stream"},
                 "self_generate");
  table.OnlyWith({"self_top_p", "seed"}, "self_temperature");
}

SelfGeneration PrepareSelfGeneration(const SelfGenerateArguments& self, const DataArguments& data,
                                     const ModelInput& input, at::Device device,
                                     at::ScalarType dtype) {
  const DataOptions options = MakeDataOptions(data, BuiltinText::kCalibration, input);
  SelfGeneration model{.checkpoint = input.checkpoint,
                       .spec = input.spec,
                       .device = device,
                       .dtype = dtype,
                       .read = ReadMode::kAuto,
                       .options = {.tokens = self.tokens,
                                   .longest = self.length,
                                   .sampling = {.temperature = self.temperature,
                                                .top_p = self.top_p,
                                                .seed = static_cast<uint64_t>(self.seed)},
                                   .stream = self.stream},
                       .prompts = {},
                       .chat_format = {},
                       .stop_ids = {},
                       .max_sequence = options.max_sequence};
  // Loads more prompts than needed, because some answers are short and some prompts are too long.
  const int64_t most = 16 * ((self.tokens + self.length - 1) / self.length) + 64;
  // The model's own text must fill at least half of a document.
  const int64_t longest = options.max_sequence - std::min(self.length, options.max_sequence / 2);
  PromptSet set = input.data.name == kPlaceholderData
                      ? PlaceholderPrompts(most, longest)
                      : LoadPrompts(options, input.tokenizer, input.spec.vocab_size, most, longest);
  model.prompts = std::move(set.prompts);
  model.chat_format = std::move(set.chat_format);
  model.chat_template = std::move(set.chat_template);
  model.stop_ids =
      StopTokens(input.location.directory, input.tokenizer.get(), input.spec.vocab_size);
  return model;
}

uint64_t SelfGenerationLimit(at::Device device, uint64_t device_limit) {
  return device.is_cpu() ? AvailableHostBytes() : device_limit;
}

SelfGenerated WriteDocuments(const SelfGeneration& model, const std::filesystem::path& job,
                             uint64_t limit, const ModelInput& input, CommandContext& context) {
  const auto started = WritingClock::now();
  const Json key = {{"model", FingerprintModel(input.location, input.checkpoint)},
                    {"self_generated", DescribeSelfGeneration(model)},
                    {"machine", DescribeMachine(model.device, model.dtype)},
                    {"program", ThisBuild().version}};
  const int64_t wanted = model.options.tokens;
  int64_t at_start = -1;  // tokens of an earlier run
  const auto plan = [&] {
    const SelfGenerationPlan way = PlanSelfGeneration(model, limit);
    context.log.Info("self_generation",
                     fmt::format("self-generation: up to {} texts at once, {} ({}), up to {} steps",
                                 way.batch, WayText(way), AsGigabytes(way.memory_bytes), way.steps),
                     PlanToJson(way));
    context.progress.Begin("writing", 1);
    return way;
  };
  SelfGenerationHooks hooks;
  hooks.stop_requested = [&] { return context.stop.requested(); };
  hooks.on_step = [&](const SelfGenerationProgress& progress) {
    if (at_start < 0) at_start = progress.tokens;
    const double seconds = WritingSeconds(started);
    context.progress.Update(
        static_cast<double>(progress.tokens) / static_cast<double>(wanted),
        fmt::format("{} of {} tokens, {:.1f} tokens/s", progress.tokens, wanted,
                    static_cast<double>(progress.tokens - at_start) / std::max(seconds, 1e-9)));
  };
  hooks.on_batch = [&](const SelfGenerationProgress& progress) {
    context.log.Info("self_generated_batch",
                     fmt::format("self-generation: {} of {} tokens in {} documents",
                                 progress.tokens, wanted, progress.documents),
                     {{"tokens", progress.tokens}, {"documents", progress.documents}});
  };
  SelfGenerated generated = GenerateDocuments(model, plan, job, key, hooks);
  context.progress.End();
  ReleaseCachedMemory(model.device);
  return generated;
}

void SelfGenerate(const SelfGeneration& model, const std::filesystem::path& job, uint64_t limit,
                  CommandContext& context, ModelInput* input) {
  const SelfGenerated generated = WriteDocuments(model, job, limit, *input, context);
  const int64_t wanted = model.options.tokens;
  AddSelfGenerated(model, generated, input->data);
  std::string text = fmt::format("self-generated: {} tokens from {} prompts{}", generated.tokens,
                                 generated.documents.size(),
                                 generated.from_job ? " in the run that is resumed" : "");
  if (generated.tokens < wanted) {
    text += fmt::format(
        ", fewer than {}: the model ended texts before --self-length, and the data has no more "
        "prompts",
        wanted);
  }
  context.log.Info("self_generated", text, input->data.self_generated);
}

std::string SelfGenerationFact(const ModelSpec& spec, at::ScalarType dtype, uint64_t limit) {
  const uint64_t weights = DecodeLoop::WeightBytes(spec, dtype);
  return fmt::format("self-generation   {}: all weights take {}, and {} of memory may be used\n",
                     weights < limit ? "--self-generate is possible"
                                     : "--self-generate is possible only with --self-stream",
                     AsGigabytes(weights), AsGigabytes(limit));
}

std::string PlanSelfGenerate(const SelfGeneration& model, uint64_t limit, ModelInput* input) {
  const SelfGenerationPlan plan = PlanSelfGeneration(model, limit);
  const SelfGenerated planned = PlannedDocuments(model);
  AddSelfGenerated(model, planned, input->data);
  return fmt::format(
      "self-generation   {} tokens from {} prompts, {} at once: {} steps, {}\n"
      "its memory        {} for weights of {} and keys and values of {}; {} to read; about {}\n",
      planned.tokens, planned.prompts, plan.batch, plan.steps, WayText(plan),
      AsGigabytes(plan.memory_bytes), AsGigabytes(plan.weight_bytes), AsGigabytes(plan.cache_bytes),
      AsGigabytes(plan.bytes_read), Duration(plan.seconds));
}

}  // namespace oscar
