// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-validate: reads an artifact and a model, and writes the report.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "calib/run/provenance.h"
#include "capture/model/run/device.h"
#include "export/artifact/artifact_format.h"
#include "export/artifact/attach_validation.h"
#include "export/artifact/moment_check.h"
#include "export/evaluate/gate.h"
#include "export/report/of_record.h"
#include "export/report/verdict_text.h"
#include "export/validate/validate.h"
#include "linalg/base/error.h"
#include "linalg/base/error_context.h"
#include "tools/cli/build_info.h"
#include "tools/cli/command.h"
#include "tools/cli/output_path.h"
#include "tools/input/own_words.h"
#include "tools/input/rank_job.h"
#include "tools/validate/combine_reports.h"
#include "tools/validate/report_files.h"
#include "tools/validate/runtime_arms.h"
#include "tools/validate/served_check.h"
#include "tools/validate/validate_checks.h"
#include "tools/validate/validate_input.h"
#include "tools/validate/validate_scope.h"
#include "tools/validate/validate_subject.h"
#include "tools/validate/validation_table.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// Decides where the report goes. Logs the reason if that is not the artifact.
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
           kept ? fmt::format("the artifact keeps its validation of record (--replace replaces "
                              "it); this report was written next to it, to {}",
                              beside.string())
                : fmt::format("this is a comparison and not a validation of record: {}; its report "
                              "was written next to the artifact, to {}",
                              fmt::join(reasons, "; "), beside.string()),
           {{"reasons", reasons}, {"path", beside.string()}});
  return beside;
}

const Json& HeadlineArmOf(const Json& validation) {
  for (const Json& arm : validation.at("arms")) {
    if (arm.at("name") == validation.at("headline_arm")) return arm;
  }
  throw UsageError("the headline configuration is not among the configurations");
}

constexpr std::chrono::milliseconds kPatience{1200};  // for layers that go on after a stop

constexpr int kReportTag = 1;  // tag of reports sent to rank 0

CommandResult ValidateAsRank(ValidateOptions options, RankGroup& group, CommandContext& context) {
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
  if (group.size() == 1) context.stop_within(kPatience);
  const auto started = std::chrono::steady_clock::now();
  const Artifact artifact = Artifact::Open(options.artifact);
  if (options.output.empty()) CheckNewOutput(ComparisonDirectory(artifact.directory()));
  if (!scope.left_out.empty()) context.log.Info("scope", scope.left_out, {{"scope", scope.name}});
  std::shared_ptr<const AttentionDump> dump;  // null if a model is validated
  if (!options.dump.from.empty()) dump = OpenDump(options.dump, context.log);
  const GivenArms own =
      ReadGivenArms(options.own, artifact, options.validation.headline_arm, dump.get());
  for (const std::string& line : own.found) context.log.Info("own_arm", line);
  options.validation.methods.guests = own.methods;
  CheckArms(options.validation, &artifact);
  options.validation.arms.insert(options.validation.arms.end(), own.arms.begin(), own.arms.end());
  options.others = own.others;
  AddRuntimeArms(options.runtimes, artifact, options.validation.arms);
  // Runs while the model is opened.
  std::future<MomentCheck> checked =
      std::async(std::launch::async, [&artifact] { return CheckRotationsFitMoments(artifact); });
  TakeServing(artifact, options);
  if (dump) checked.get();
  std::optional<Json> made = WithErrorContext("validating", [&] {
    return dump ? OnDump(options, dump, artifact, context)
                : OnModel(options, artifact, std::move(checked), group, context);
  });
  context.progress.End();
  if (!made) return {};
  if (group.rank() != 0) {
    group.SendBytes(made->dump(), 0, kReportTag);
    return {};
  }
  if (group.size() > 1) {
    std::vector<Json> reports = {std::move(*made)};
    for (int rank = 1; rank < group.size(); ++rank)
      reports.push_back(Json::parse(group.ReceiveBytes(rank, kReportTag)));
    made = MergeArms(std::move(reports));
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
  if (!makes) return ValidateAsRank(std::move(options), OneRank(), context);
  const std::unique_ptr<RankGroup> group =
      JoinRanks(options.ranks, options.model.device, context, /*tensors=*/false);
  try {
    if (options.kernels && group->size() > 1) throw UsageError("--kernels runs on one rank");
    options.validation.share = {group->rank(), group->size()};
    return ValidateAsRank(std::move(options), *group, context);
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
