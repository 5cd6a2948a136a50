// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Longer than 400 lines because it is the order of one command, from its arguments to the place of
// its report.
//
// oscar-validate: an artifact and a model in, the report out.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "calib/job/job_directory.h"
#include "calib/run/provenance.h"
#include "capture/checkpoint/weight_storage.h"
#include "capture/model/run/device.h"
#include "capture/text/data/samples.h"
#include "export/artifact/artifact_format.h"
#include "export/artifact/attach_validation.h"
#include "export/artifact/moment_check.h"
#include "export/evaluate/gate.h"
#include "export/evaluate/passages.h"
#include "export/evaluate/tool_calls.h"
#include "export/report/of_record.h"
#include "export/report/verdict_text.h"
#include "export/simulate/guest_methods.h"
#include "export/validate/token_errors.h"
#include "export/validate/validate.h"
#include "linalg/base/error.h"
#include "linalg/base/error_context.h"
#include "tools/cli/build_info.h"
#include "tools/cli/command.h"
#include "tools/cli/output_path.h"
#include "tools/input/forward_proof.h"
#include "tools/input/job_options.h"
#include "tools/input/own_words.h"
#include "tools/input/rank_job.h"
#include "tools/validate/combine_reports.h"
#include "tools/validate/kernel_check.h"
#include "tools/validate/report_files.h"
#include "tools/validate/runtime_arms.h"
#include "tools/validate/served_check.h"
#include "tools/validate/validate_input.h"
#include "tools/validate/validate_scope.h"
#include "tools/validate/validation_forecast.h"
#include "tools/validate/validation_table.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// `artifact`: null where it is not known yet what it has at which budget.
void CheckArms(const ValidationOptions& validation, const Artifact* artifact) {
  GuestMethods guests = validation.methods.guests;
  if (artifact != nullptr) std::ranges::move(BudgetMethods(*artifact), std::back_inserter(guests));
  const auto check = [&](const std::string& arm) {
    if (artifact != nullptr || !arm.starts_with(kBudgetPrefix)) ParseArm(arm, guests);
  };
  for (const std::string& arm : validation.arms)
    if (!IsArmList(arm)) check(arm);
  if (!validation.headline_arm.empty()) check(validation.headline_arm);
}

// What of the options can be wrong without a look at artifact and model; arms may also name what
// the user brings, which is read later.
void CheckNames(const ValidateOptions& options) {
  if (options.own.rotations.empty() && options.own.other_artifacts.empty())
    CheckArms(options.validation, nullptr);
  for (const std::string& method : options.methods)
    if (method != "all") PublishedArm(method);
  for (const std::string& task : options.needle_tasks) {
    if (task != kPassagesTask) CheckNeedleTask(task);
  }
  for (const std::string& task : options.tool_call_tasks) CheckToolCallTask(task);
  for (const auto* files : {&options.data, &options.method_data})
    for (const std::string& file : *files)
      if (!fs::exists(file)) throw InputError(fmt::format("{}: no such file", file));
}

void CheckArguments(const ValidateOptions& options) {
  if (!options.combine.empty()) {
    if (options.output.empty() && options.csv.empty() && options.write.empty())
      throw UsageError("--combine: give -o, a new directory for the page, --csv or --write");
  } else if (options.artifact.empty()) {
    throw UsageError("no ARTIFACT given: a directory written by oscar-calibrate");
  } else if (options.model.model.empty() == options.dump.from.empty()) {
    throw UsageError("give --model MODEL, or --from DUMP");
  } else if (options.replace && !options.dump.from.empty()) {
    throw UsageError("--replace: what is measured on a dump is a comparison; give --model");
  }
  if (options.replace && (!options.output.empty() || !options.combine.empty()))
    throw UsageError("--replace is of the report in the artifact: give it without -o or --combine");
  CheckNames(options);
  ParseDevice(options.model.device);
  if (!options.output.empty()) CheckNewOutput(options.output);
  for (const std::string& file : {options.csv, options.write})
    if (!file.empty()) CheckNewOutput(file);
}

// A comparison must not take the place of the validation of record: said before it is measured.
// For --replace alone.
void CheckReplace(const Artifact& artifact, const ValidationFacts& facts) {
  const std::vector<std::string> reasons =
      WhyNotOfRecord(facts, artifact.report(), (artifact.directory() / kReportFile).string());
  if (!reasons.empty()) {
    throw UsageError(fmt::format(
        "--replace: a comparison does not replace the validation of record: {}; without --replace "
        "its report goes beside the artifact, with -o anywhere",
        fmt::join(reasons, "; ")));
  }
}

// What is known before the run.
ValidationFacts PlannedFacts(const ValidateOptions& options, const Artifact& artifact,
                             const ValidationInput& input) {
  const ValidationOptions& how = options.validation;
  const std::vector<std::vector<int32_t>> texts = input.model.Sequences();
  ValidationFacts facts{
      .source = "model",
      .headline_arm = HeadlineArm(input.arms, OwnArms(artifact.report()), how.headline_arm).name,
      .sink_tokens = how.methods.windows.sink,
      .recent_tokens = how.methods.windows.recent,
      .quant_group_size = how.methods.quant_group_size,
      .others_k = how.methods.k_clip,
      .others_v = how.methods.v_clip,
      .cache_dtype = options.cache_dtype == "bf16" ? "bf16" : "compute",
      .own_model = input.same_model,
      .predictions = !how.local_only};
  if (facts.predictions)
    facts.scored_tokens =
        std::ssize(ScoredTokens(texts, 0, how.score_from, facts.sink_tokens + facts.recent_tokens,
                                input.model.data.counted()));
  for (const auto& text : texts)
    facts.longest_context = std::max(facts.longest_context, static_cast<int64_t>(text.size()));
  return facts;
}

// Where the report goes; says why, if that is not into the artifact.
fs::path PlaceReport(const ValidateOptions& options, const Artifact& artifact, const Json& report,
                     Log& log) {
  if (!options.output.empty()) {
    WriteReportDirectory(options.output, report);
    return options.output;
  }
  const std::string what = "the new report";
  const std::vector<std::string> reasons =
      WhyNotOfRecord(FactsOf(report.at("validation"), what), report, what);
  const bool kept = reasons.empty() && !options.replace && HasValidation(artifact);
  if (reasons.empty() && !kept) {
    AttachReport(artifact, report);
    return artifact.directory();
  }
  const fs::path beside = ComparisonDirectory(artifact.directory());
  WriteReportDirectory(beside, report);
  log.Info("beside",
           kept
               ? fmt::format("the artifact keeps its validation of record (--replace replaces it); "
                             "this report is beside it, in {}",
                             beside.string())
               : fmt::format("a comparison, no validation of record: {}; its report is beside the "
                             "artifact, in {}",
                             fmt::join(reasons, "; "), beside.string()),
           {{"reasons", reasons}, {"path", beside.string()}});
  return beside;
}

constexpr double kWorthSaying = 5;  // seconds of an arm beyond which the log names it

// `scores`: whether next tokens are scored after the layers, a step of its own.
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
                                 fmt::format("{}: {:.1f} s in its caches", arm, seconds),
                                 {{"arm", arm}, {"seconds", seconds}});
              },
          .beside = kernels == nullptr ? nullptr : &kernels->observer()};
}

// Nothing unless --kernels asks for it.
std::unique_ptr<KernelCheck> Kernels(const ValidateOptions& options, const Artifact& artifact,
                                     at::Device device, size_t num_texts) {
  return options.kernels ? MakeKernelCheck(artifact, device, options, num_texts) : nullptr;
}

std::string ArmLines(const std::vector<Arm>& arms) {
  std::string text;
  for (const Arm& arm : arms)
    text += fmt::format("  {:<30} {}\n", arm.name, arm.method->description);
  return text;
}

// What --dry-run prints.
std::string DumpPlanText(const DumpSource& source, const Artifact& artifact,
                         const ValidationOptions& options) {
  const std::vector<Arm> arms =
      ParseArms(options.arms, MethodContext(artifact, source.layers(), options.methods), false);
  uint64_t bytes = 0;
  int64_t tokens = 0;
  for (size_t layer = 0; layer < source.layers().size(); ++layer) bytes += source.BytesRead(layer);
  for (const int64_t length : source.sequence_lengths()) tokens += length;
  return fmt::format(
             "read from the dump, once {:.2f} GB\ntokens through each arm  {}\narms"
             "                     {}\n",
             static_cast<double>(bytes) / 1e9, tokens, arms.size()) +
         ArmLines(arms);
}

// Nothing where the plan was printed.
std::optional<Json> OnDump(const ValidateOptions& options, const Artifact& artifact,
                           CommandContext& context) {
  const std::shared_ptr<const AttentionDump> dump = OpenDump(options.dump, context.log);
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
  std::vector<std::string> domains;  // a dump has numbers of them
  for (const int32_t number : dump->domains()) domains.push_back(fmt::format("{}", number + 1));
  Json validation =
      ValidateDump(source, data.counted(), artifact, options.validation,
                   Hooks(context, source.layers().size(), false, kernels.get()), domains);
  if (kernels) validation["kernels"] = kernels->Report();
  validation["data"] = ValidationDataJson(data, overlap);
  validation["machine"] = DescribeMachine(device, dtype);
  return validation;
}

std::string ShowNeedles(const char* kind, const std::vector<NeedleSample>& needles, int64_t count) {
  std::string text;
  for (size_t i = 0; i < needles.size() && i < static_cast<size_t>(count); ++i) {
    const NeedleSample& needle = needles[i];
    text += fmt::format("{} {} at {} tokens, depth {:.0f} %:\n{}\n-> {}\n", kind, needle.task,
                        needle.ids.size(), needle.depth, MakeControlsVisible(needle.prompt),
                        MakeControlsVisible(needle.answer));
  }
  return text;
}

// Half done work of a validation: beside what it will make. Each rank has its own.
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

void CheckPassages(const ValidateOptions& options, const OwnWords& own_words) {
  if (!own_words.texts.empty() || options.needle_tasks.empty() || !WantsPassages(options)) return;
  throw UsageError(fmt::format(
      "--needle-tasks {}: hides them in the model's own words, and none are drawn: {}",
      kPassagesTask,
      own_words.description.is_null() ? "give --self-generate"
                                      : own_words.description.at("reason").get<std::string>()));
}

struct StreamTokens {
  int64_t text = 0, recall = 0;  // of the data, through one arm each
  size_t recall_arms = 0;
  std::vector<int64_t> recall_lengths = {};  // in tokens, but for passages
};

StreamTokens TokensOf(const ValidateOptions& options, const Artifact& artifact,
                      const ValidationInput& input) {
  const ValidationOptions& validation = options.validation;
  const std::string headline =
      HeadlineArm(input.arms, OwnArms(artifact.report()), validation.headline_arm).name;
  StreamTokens tokens{
      .text = input.model.data.counts.tokens_used,
      .recall_arms =
          RecallArms(input.arms, headline, validation.needle_arms, validation.arms).size()};
  for (const auto* samples : {&input.needles, &input.tool_calls})
    for (const NeedleSample& sample : *samples)
      tokens.recall_lengths.push_back(std::ssize(sample.ids));
  const ContinuationArguments& reasoning = options.continuations;
  tokens.recall_lengths.insert(tokens.recall_lengths.end(), static_cast<size_t>(reasoning.samples),
                               reasoning.prefix + reasoning.length);
  for (const int64_t length : tokens.recall_lengths) tokens.recall += length;
  return tokens;
}

// Of all arms, in float32.
uint64_t HiddenBytes(const StreamTokens& tokens, const ValidationInput& input) {
  return 4 * static_cast<uint64_t>(input.model.spec.hidden_size) *
         (static_cast<uint64_t>(tokens.text) * input.arms.size() +
          static_cast<uint64_t>(tokens.recall) * tokens.recall_arms);
}

// What --dry-run prints.
std::string PlanText(const ValidateOptions& options, const Artifact& artifact,
                     const ValidationInput& input, const OwnWordsPlan& own_words,
                     const std::optional<Forecast>& forecast) {
  uint64_t weights = 0;
  for (const TensorNeed& need : AllTensors(input.model.spec))
    weights += FindWeightStorage(input.model.checkpoint, need.name).bytes();
  const StreamTokens tokens = TokensOf(options, artifact, input);
  const std::string text = fmt::format(
      "weights, read once      {:.2f} GB\ntext, through each arm  {} tokens\n"
      "recall, through {:<8}{} tokens\nhidden states           {:.2f} GB in float32\n"
      "arms                    {}\n",
      static_cast<double>(weights) / 1e9, tokens.text, fmt::format("{} arms", tokens.recall_arms),
      tokens.recall, static_cast<double>(HiddenBytes(tokens, input)) / 1e9, input.arms.size());
  return text + ArmLines(input.arms) + own_words.line +
         (forecast ? fmt::format("expected time           {}\n", forecast->Text()) : "");
}

// Nothing on a GPU, where probes would mostly measure how it starts.
std::optional<Forecast> ForecastOf(const ValidateOptions& options, const Artifact& artifact,
                                   const ValidationInput& input, const OwnWordsPlan& own_words,
                                   at::Device device, at::ScalarType dtype) {
  if (!device.is_cpu() || options.kernels) return std::nullopt;
  StreamTokens tokens = TokensOf(options, artifact, input);
  if (WantsPassages(options)) {
    tokens.recall_lengths.insert(tokens.recall_lengths.end(),
                                 static_cast<size_t>(own_words.sequences), own_words.length);
  }
  Forecast forecast = ForecastValidation(options.validation, artifact, input, own_words,
                                         tokens.recall_lengths, tokens.recall_arms, dtype);
  if (forecast.parts.empty()) return std::nullopt;
  return forecast;
}

// A prompt and as much again: runtimes write the two with different kernels.
int64_t HalfOfLongest(const std::vector<std::vector<int32_t>>& texts) {
  size_t longest = 0;
  for (const auto& text : texts) longest = std::max(longest, text.size());
  return static_cast<int64_t>(longest) / 2;
}

// Nothing where there is nothing to validate: samples or the plan were printed.
std::optional<Json> OnModel(const ValidateOptions& options, const Artifact& artifact,
                            std::future<MomentCheck> checked, const RankGroup* group,
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
        "no token is scored: texts are too short for --score-from {} and for the {} tokens that "
        "windows keep exact (--sink-tokens, --recent-tokens){}",
        score_from, request.exact_tokens,
        model.data.masked() ? ", or no query beyond them counts (loss_mask, labels)" : ""));
  }
  const bool resumes = fs::exists(JobOf(options));  // what is left of it is less
  const OwnWordsPlan own_words_plan =
      context.dry_run || !resumes ? PlanOwnWords(request, model) : OwnWordsPlan{};
  std::optional<Forecast> forecast;
  if (group == nullptr && !resumes)
    forecast = ForecastOf(options, artifact, input, own_words_plan, device, dtype);
  if (context.dry_run) {
    context.out << PlanText(options, artifact, input, own_words_plan, forecast);
    return std::nullopt;
  }
  if (forecast) context.log.Info("forecast", "expected " + forecast->Text(), forecast->ToJson());
  if (options.replace) CheckReplace(artifact, PlannedFacts(options, artifact, input));
  if (group != nullptr) {
    CheckSameOnAllRanks(*group, {{"artifact", artifact.identity()},
                                 {"model", FingerprintModel(model.location, model.checkpoint)},
                                 {"data", model.data.digest},
                                 {"options", context.config},
                                 {"version", ThisBuild().version}});
  }
  context.log.Info("device",
                   fmt::format("device: {}, {}", DescribeDevice(device), ComputeDTypeName(dtype)),
                   DescribeMachine(device, dtype));
  if (group == nullptr || group->rank() == 0) ProveForwardPass(options.model, model, context.log);
  const auto kernels = Kernels(options, artifact, device, texts.size());
  if (!kernels) {
    CheckSpace(JobOf(options), HiddenBytes(TokensOf(options, artifact, input), input),
               "what a stopped validation goes on from");
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
        /*restart=*/false);
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
  if (!kernels) hooks.job = &*job;  // kernels are checked in one go
  Json validation = WithErrorContext("comparing arms", [&] {
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

const Json& HeadlineArmOf(const Json& validation) {
  for (const Json& arm : validation.at("arms")) {
    if (arm.at("name") == validation.at("headline_arm")) return arm;
  }
  throw UsageError("the headline arm is not among the arms");
}

constexpr std::chrono::milliseconds kPatience{1200};  // with layers that do not end, after a stop

constexpr int kReportTag = 1;  // of what ranks send to rank 0

CommandResult ValidateAsRank(ValidateOptions options, RankGroup* group, CommandContext& context) {
  if (std::ranges::count(options.methods, "help") +
      std::ranges::count(options.validation.arms, "help")) {
    context.out << RenderMethods();
    return {};
  }
  CheckArguments(options);
  if (!options.combine.empty()) {
    CommandResult combined;
    combined.made = CombineReportFiles({.sources = options.combine,
                                        .output = options.output,
                                        .csv = options.csv,
                                        .write = options.write,
                                        .table_rows = options.table_rows,
                                        .table_into = options.table_into});
    return combined;
  }
  const bool default_arms =
      options.validation.arms.empty() && options.methods.empty() && options.runtimes.empty();
  const AppliedScope scope = ApplyScope(ParseDevice(options.model.device).is_cpu(), options);
  context.config["scope"] = scope.name;
  std::optional<Gate> gate;
  if (!options.gate.empty()) {
    gate = ParseGate(options.gate);
    const bool predictions = options.dump.from.empty() && !options.validation.local_only;
    CheckMeasured(*gate, {.predictions = predictions,
                          .recall = predictions && options.needle_samples > 0,
                          .tool_calls = predictions && options.tool_calls > 0,
                          .reasoning = predictions && options.continuations.samples > 0});
  }
  options.validation.round_to_bf16 = options.cache_dtype == "bf16";
  options.validation.methods.seed = options.validation.seed;
  if (options.prefill_tokens > 0)
    options.validation.methods.prefill_tokens = options.prefill_tokens;
  for (const std::string& method : options.methods)
    options.validation.arms.push_back(method == "all" ? "published" : PublishedArm(method).name);
  if (group == nullptr) context.stop_within(kPatience);
  const auto started = std::chrono::steady_clock::now();
  const Artifact artifact = Artifact::Open(options.artifact);
  if (options.output.empty()) CheckNewOutput(ComparisonDirectory(artifact.directory()));
  if (!scope.left_out.empty()) context.log.Info("scope", scope.left_out, {{"scope", scope.name}});
  const GivenArms own = ReadGivenArms(options.own, artifact, options.validation.headline_arm);
  for (const std::string& line : own.found) context.log.Info("own_arm", line);
  options.validation.methods.guests = own.methods;
  CheckArms(options.validation, &artifact);
  options.validation.arms.insert(options.validation.arms.end(), own.arms.begin(), own.arms.end());
  options.others = own.others;
  AddRuntimeArms(options.runtimes, artifact, options.validation.arms);
  // Beside the opening of the model.
  std::future<MomentCheck> checked =
      std::async(std::launch::async, [&artifact] { return CheckRotationsFitMoments(artifact); });
  TakeServing(artifact, options);
  if (!options.dump.from.empty()) checked.get();
  std::optional<Json> made = WithErrorContext("validating", [&] {
    return options.dump.from.empty()
               ? OnModel(options, artifact, std::move(checked), group, context)
               : OnDump(options, artifact, context);
  });
  context.progress.End();
  if (!made) return {};
  if (group != nullptr) {
    if (group->rank() != 0) {
      group->SendBytes(made->dump(), 0, kReportTag);
      return {};
    }
    std::vector<Json> of_ranks = {std::move(*made)};
    for (int rank = 1; rank < group->size(); ++rank)
      of_ranks.push_back(Json::parse(group->ReceiveBytes(rank, kReportTag)));
    made = MergeArms(std::move(of_ranks));
  }
  Json& validation = *made;
  validation["rotations"] = artifact.manifest().at("files").at(kRotationsFile);
  validation["program"] = ProgramJson();
  validation["settings"]["configuration"] = context.config;
  validation["settings"]["scope"] = scope.name;
  if (!scope.left_out.empty()) validation["settings"]["left_out"] = scope.left_out;
  validation["settings"].update(own.settings);
  AddRuntimeLosses(artifact, validation);
  CommandResult result;
  if (gate) {
    const Gate verdict = EvaluateGate(*gate, ArmOfVerdict(validation, HeadlineArmOf(validation)));
    validation["gate"] = verdict;
    for (Json& arm : validation.at("arms")) {
      if (arm.contains("capacity"))
        arm["capacity"]["passes_gate"] = EvaluateGate(*gate, ArmOfVerdict(validation, arm)).passed;
    }
    if (!verdict.passed) result.exit_code = ExitCode::kGateFailed;
  }
  if (validation.contains("kernels") && !validation["kernels"]["passed"].get<bool>())
    result.exit_code = ExitCode::kGateFailed;
  const Json report = ReportWithValidation(artifact, validation);
  result.made = PlaceReport(options, artifact, report, context.log) / kReportPageFile;
  if (!options.csv.empty()) WriteReportCsv(options.artifact, report, options.csv);
  if (!options.write.empty()) {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    WriteReportFiles({{options.artifact, report, now.count()}}, options.write);
  }
  context.log.Info(
      "done",
      fmt::format(
          "{:.1f} s",
          std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count()));
  context.out << (default_arms && own.arms.empty() ? RenderSummary(validation)
                                                   : RenderValidation(validation));
  result.json = ValidationSummary(validation);
  return result;
}

CommandResult Validate(ValidateOptions options, CommandContext& context) {
  if (!options.served.empty()) return CheckServed(std::move(options), context);
  const bool makes = !context.dry_run && options.combine.empty() && options.show_samples == 0 &&
                     !options.artifact.empty();
  if (!makes) return ValidateAsRank(std::move(options), nullptr, context);
  const std::unique_ptr<RankGroup> group =
      JoinRanks(options.ranks, options.model.device, context, /*tensors=*/false);
  if (!group) return ValidateAsRank(std::move(options), nullptr, context);
  try {
    if (options.kernels) throw UsageError("--kernels is for one rank");
    options.validation.share = {group->rank(), group->size()};
    return ValidateAsRank(std::move(options), group.get(), context);
  } catch (const std::exception&) {
    EndJob(*group);
    throw;
  }
}

}  // namespace
}  // namespace oscar

int main(int argc, char** argv) {
  const oscar::Console console = oscar::EnterJob();
  oscar::ValidateOptions options;
  return oscar::RunCommand(
      argc, argv, oscar::ValidateTable(&options),
      [&](oscar::CommandContext& context) { return oscar::Validate(options, context); }, console);
}
