// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/validate/validate_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "calib/job/job_directory.h"
#include "calib/run/provenance.h"
#include "capture/model/run/device.h"
#include "capture/text/data/samples.h"
#include "export/evaluate/passages.h"
#include "export/validate/token_errors.h"
#include "export/validate/validate.h"
#include "linalg/base/error.h"
#include "linalg/base/error_context.h"
#include "tools/cli/build_info.h"
#include "tools/input/forward_proof.h"
#include "tools/input/job_options.h"
#include "tools/input/own_words.h"
#include "tools/validate/kernel_check.h"
#include "tools/validate/validate_checks.h"
#include "tools/validate/validate_plan.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr double kWorthSaying = 5;  // the log names arms that take longer than this many seconds

// `scores`: whether next tokens are scored in a separate step after the layers.
ValidationHooks Hooks(CommandContext& context, size_t num_layers, bool scores,
                      KernelCheck* kernels) {
  context.progress.Begin("validating", static_cast<int64_t>(num_layers) + (scores ? 1 : 0));
  return {.on_layer =
              [&context, said = false](size_t done, size_t all, double seconds) mutable {
                context.progress.StepDone(fmt::format("layer {}: {:.2f} s", done - 1, seconds),
                                          {{"done", done}, {"layers", all}, {"seconds", seconds}});
                if (std::exchange(said, true) || done == all) return;
                const double left = seconds * static_cast<double>(all - done);
                context.log.Info("expected",
                                 fmt::format("about {} for the other {} layer{}", Duration(left),
                                             all - done, all - done == 1 ? "" : "s"),
                                 {{"seconds", left}});
              },
          .on_part = [&context](double part,
                                const std::string& doing) { context.progress.Update(part, doing); },
          .on_scored =
              [&context](double part, const std::string& what) {
                context.progress.Update(part, "next tokens of the " + what);
              },
          .stop_requested = [&context] { return context.stop.requested(); },
          .on_arm =
              [&context](const std::string& arm, double seconds) {
                if (seconds < kWorthSaying) return;
                context.log.Info("arm_seconds",
                                 fmt::format("{}: its caches took {:.1f} s", arm, seconds),
                                 {{"arm", arm}, {"seconds", seconds}});
              },
          .beside = kernels == nullptr ? nullptr : &kernels->observer()};
}

// Returns null unless --kernels is given.
std::unique_ptr<KernelCheck> Kernels(const ValidateOptions& options, const Artifact& artifact,
                                     at::Device device, size_t num_texts) {
  return options.kernels ? MakeKernelCheck(artifact, device, options, num_texts) : nullptr;
}

// Returns the folder of an unfinished validation, beside its output. Each rank has its own.
fs::path JobOf(const ValidateOptions& options) {
  const fs::path output = options.output.empty() ? options.artifact : options.output;
  const auto [rank, ranks] = options.validation.share;
  return fs::path((output / "").parent_path().string() + ".validation" +
                  (rank == 0 ? std::string() : fmt::format(".rank{}", rank)) + ".job");
}

OwnWordsRequest OwnWordsOf(const ValidateOptions& options, at::Device device,
                           at::ScalarType dtype) {
  const CacheWindows& windows = options.validation.methods.windows;
  OwnWordsRequest request{.arguments = options.own_words,
                          .exact_tokens = windows.sink + windows.recent,
                          .seed = options.validation.seed,
                          .device = device,
                          .dtype = dtype};
  if (options.validation.local_only) request.arguments.sequences = 0;
  return request;
}

// Returns half of the longest text's length. Simulated runtimes get that much as a prompt, because
// they use different kernels for a prompt and for the tokens after it.
int64_t HalfOfLongest(const std::vector<std::vector<int32_t>>& texts) {
  size_t longest = 0;
  for (const auto& text : texts) longest = std::max(longest, text.size());
  return static_cast<int64_t>(longest) / 2;
}

}  // namespace

std::optional<Json> OnDump(const ValidateOptions& options,
                           const std::shared_ptr<const AttentionDump>& dump,
                           const Artifact& artifact, CommandContext& context) {
  const DataSet data = DumpData(*dump);
  const OverlapResult overlap = OverlapOf(artifact, data);
  CheckOverlap(overlap, data);
  for (const auto& other : options.others) CheckOverlap(OverlapOf(*other, data), data);
  const at::Device device = ParseDevice(options.model.device);
  const at::ScalarType dtype =
      ParseComputeDType(options.model.dtype, dump->layers().front().dtype, device);
  DumpSource source(dump, device, dtype,
                    options.validation.round_to_bf16 ? std::optional(at::kBFloat16) : std::nullopt);
  if (context.dry_run) {
    context.out << DumpPlanText(source, artifact, options.validation);
    return std::nullopt;
  }
  const auto kernels = Kernels(options, artifact, device, source.sequence_lengths().size());
  std::vector<std::string> domains;  // a dump only numbers its domains
  for (const int32_t number : dump->domains()) domains.push_back(fmt::format("{}", number + 1));
  Json validation =
      ValidateDump(source, data.counted(), artifact, options.validation,
                   Hooks(context, source.layers().size(), false, kernels.get()), domains);
  if (kernels) validation["kernels"] = kernels->Report();
  validation["data"] = ValidationDataJson(data, overlap);
  validation["machine"] = DescribeMachine(device, dtype);
  return validation;
}

std::optional<Json> OnModel(const ValidateOptions& options, const Artifact& artifact,
                            std::future<MomentCheck> checked, const RankGroup& group,
                            CommandContext& context) {
  const std::future<void> starting = StartGpu(options.model.device);
  const ValidationInput input = OpenValidationInput(options, artifact, context.log);
  checked.get();
  const ModelInput& model = input.model;
  if (options.show_samples > 0) {
    context.out << ShowSamples(model.data, model.tokenizer.get(),
                               static_cast<int>(options.show_samples))
                << ShowNeedles("needle", input.needles, options.show_samples)
                << ShowNeedles("tool call", input.tool_calls, options.show_samples);
    return std::nullopt;
  }
  const at::Device device = ParseDevice(options.model.device);
  const at::ScalarType dtype =
      ParseComputeDType(options.model.dtype, StoredDType(model.spec, model.checkpoint), device);
  const OwnWordsRequest request = OwnWordsOf(options, device, dtype);
  const int64_t score_from = options.validation.score_from;
  const std::vector<std::vector<int32_t>> texts = model.Sequences();
  if (!options.validation.local_only &&
      ScoredTokens(texts, 0, score_from, request.exact_tokens, model.data.counted()).empty()) {
    throw InputError(fmt::format(
        "no token can be scored: the texts are too short for --score-from {} and for the {} tokens "
        "that the windows keep exact (--sink-tokens, --recent-tokens){}",
        score_from, request.exact_tokens,
        model.data.masked() ? ", or no query beyond them counts (loss_mask, labels)" : ""));
  }
  const bool resumes = fs::exists(JobOf(options));  // a resumed run has less work
  const OwnWordsPlan own_words_plan =
      context.dry_run || !resumes ? PlanOwnWords(request, model) : OwnWordsPlan{};
  std::optional<Forecast> forecast;
  if (group.size() == 1 && !resumes)
    forecast = ForecastOf(options, artifact, input, own_words_plan, device, dtype);
  if (context.dry_run) {
    context.out << PlanText(options, artifact, input, own_words_plan, forecast);
    return std::nullopt;
  }
  if (forecast) context.log.Info("forecast", "expected " + forecast->Text(), forecast->ToJson());
  if (options.replace) CheckReplace(options, artifact, input);
  CheckSameOnAllRanks(group, {{"artifact", artifact.identity()},
                              {"model", FingerprintModel(model.location, model.checkpoint)},
                              {"data", model.data.digest},
                              {"options", context.config},
                              {"version", ThisBuild().version}});
  context.log.Info("device",
                   fmt::format("device: {}, {}", DescribeDevice(device), ComputeDTypeName(dtype)),
                   DescribeMachine(device, dtype));
  if (group.rank() == 0) ProveForwardPass(options.model, model, context.log);
  const auto kernels = Kernels(options, artifact, device, texts.size());
  if (!kernels) {
    CheckSpace(JobOf(options), HiddenBytes(options, artifact, input),
               "the state for resuming a stopped validation");
  }
  JobLock lock(JobOf(options));
  if (options.restart) lock.DiscardJob();
  ForgetOptions(lock);
  OwnWords own_words;
  std::vector<std::vector<int32_t>> continuations;
  std::optional<JobDirectory> job;
  try {
    WithErrorContext("writing text", [&] {
      continuations = Continue(options.continuations, model, device, dtype, lock.path(), context);
      own_words = DrawOwnWords(request, model, lock.path(), context);
    });
    RememberOptions(lock.path(), context.config);
    job.emplace(
        std::move(lock),
        Json{{"artifact", artifact.identity()},
             {"model", FingerprintModel(model.location, model.checkpoint)},
             {"files", FileIdentities(model.checkpoint.directory(), model.checkpoint.files())},
             {"data", {{"digest", model.data.digest}, {"self_generated", own_words.description}}},
             {"options", context.config},
             {"device", DescribeDevice(device)},
             {"ranks", options.validation.share.ranks},
             {"version", ThisBuild().version}},
        /*restart=*/false, "h5");
  } catch (const OtherRun& other) {
    RefuseOtherRun(JobOf(options), context.config, other);
  }
  if (const size_t done = job->finished_layers(); done > 0) {
    context.log.Info(
        "resume", fmt::format("resuming: {} of {} layers are done", done, model.spec.layers.size()),
        {{"done", done}});
  }
  CheckPassages(options, own_words);
  ValidationData data{.texts = texts,
                      .own_words = own_words.texts,
                      .counted = model.data.counted(),
                      .domains = {},
                      .builtin = options.data.empty(),
                      .needles = input.needles,
                      .tool_calls = input.tool_calls,
                      .continuations = std::move(continuations),
                      .prefix_tokens = options.continuations.prefix};
  for (const Document& text : model.data.documents) data.domains.push_back(text.domain);
  if (WantsPassages(options)) {
    const auto passages = MakePassageSamples(own_words.texts, options.validation.seed);
    data.needles.insert(data.needles.end(), passages.begin(), passages.end());
  }
  ValidationOptions how = options.validation;
  if (!options.runtimes.empty() && options.prefill_tokens == 0)
    how.methods.prefill_tokens = HalfOfLongest(texts);
  if (input.method_data) data.calibration = TokenIds(*input.method_data);
  ValidationHooks hooks =
      Hooks(context, model.spec.layers.size(), !options.validation.local_only, kernels.get());
  if (!kernels) hooks.job = &*job;  // kernels are checked without interruption
  Json validation = WithErrorContext("comparing configurations", [&] {
    return ValidateModel(model.checkpoint, model.spec, device, dtype, data, artifact, how, hooks);
  });
  if (input.method_data) {
    validation["settings"]["method_data"] = {{"name", input.method_data->name},
                                             {"digest", input.method_data->digest},
                                             {"tokens", input.method_data->counts.tokens_used}};
  }
  if (kernels) validation["kernels"] = kernels->Report();
  validation["data"] = ValidationDataJson(model.data, input.overlap);
  validation["machine"] = DescribeMachine(device, dtype);
  if (!options.validation.local_only) {
    const int64_t exact = request.exact_tokens;
    AddScoredSize(ScoredTokens(texts, 0, score_from, exact, model.data.counted()),
                  model.tokenizer.get(), validation["data"]);
    if (!own_words.texts.empty())
      AddScoredSize(ScoredTokens(own_words.texts, 0, -1, exact), model.tokenizer.get(),
                    own_words.description);
  }
  validation["model"] = ValidationModelJson(input);
  if (!own_words.description.is_null()) validation["own_words"] = own_words.description;
  job->Remove();
  return validation;
}

}  // namespace oscar
