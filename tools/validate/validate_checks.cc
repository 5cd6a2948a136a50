// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/validate/validate_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "capture/model/run/device.h"
#include "export/artifact/artifact_format.h"
#include "export/evaluate/passages.h"
#include "export/evaluate/tool_calls.h"
#include "export/simulate/guest_methods.h"
#include "export/validate/token_errors.h"
#include "linalg/base/error.h"
#include "tools/cli/output_path.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Checks the names of arms, methods, tasks and files in the options. Arms may use the user's
// methods, which are read later, so they are checked here only if there are none.
void CheckNames(const ValidateOptions& options) {
  const OwnArmArguments& own = options.own;
  if (own.rotations.empty() && own.other_artifacts.empty() && own.quantized.empty())
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

// The facts about a validation that are known before it runs.
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

}  // namespace

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

void CheckArguments(const ValidateOptions& options) {
  if (!options.combine.empty()) {
    if (options.output.empty() && options.csv.empty() && options.write.empty())
      throw UsageError("--combine: give -o (a new directory for the page), --csv or --write");
  } else if (options.artifact.empty()) {
    throw UsageError("no ARTIFACT given; expected a directory written by oscar-calibrate");
  } else if (options.model.model.empty() == options.dump.from.empty()) {
    throw UsageError("give --model MODEL, or --from DUMP");
  } else if (options.replace && !options.dump.from.empty()) {
    throw UsageError("--replace: a measurement on a dump is only a comparison; give --model");
  }
  if (options.replace && (!options.output.empty() || !options.combine.empty()))
    throw UsageError(
        "--replace replaces the report in the artifact; give it without -o or --combine");
  CheckNames(options);
  ParseDevice(options.model.device);
  if (!options.output.empty()) CheckNewOutput(options.output);
  for (const std::string& file : {options.csv, options.write})
    if (!file.empty()) CheckNewOutput(file);
}

void CheckReplace(const ValidateOptions& options, const Artifact& artifact,
                  const ValidationInput& input) {
  const std::vector<std::string> reasons =
      WhyNotOfRecord(PlannedFacts(options, artifact, input), artifact.report(),
                     (artifact.directory() / kReportFile).string());
  if (!reasons.empty()) {
    throw UsageError(
        fmt::format("--replace: this would be a comparison, which cannot replace the validation of "
                    "record: {}; leave out --replace to write the report next to the artifact, or "
                    "to the directory given with -o",
                    fmt::join(reasons, "; ")));
  }
}

void CheckPassages(const ValidateOptions& options, const OwnWords& own_words) {
  if (!own_words.texts.empty() || options.needle_tasks.empty() || !WantsPassages(options)) return;
  throw UsageError(fmt::format(
      "--needle-tasks {}: this task needs the model's own words, but none are generated: {}",
      kPassagesTask,
      own_words.description.is_null() ? "give --self-generate"
                                      : own_words.description.at("reason").get<std::string>()));
}

}  // namespace oscar
