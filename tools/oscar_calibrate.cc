// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-calibrate: a model, or a dump of one, in; verified rotation artifact out.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "calib/job/layer_file.h"
#include "calib/observe/text_loss.h"
#include "calib/run/calibrate.h"
#include "calib/run/provenance.h"
#include "capture/model/device.h"
#include "capture/text/samples.h"
#include "export/artifact/artifact_reader.h"
#include "export/artifact/artifact_writer.h"
#include "export/artifact/merge_artifacts.h"
#include "export/artifact/report.h"
#include "linalg/error.h"
#include "tools/calibrate_options.h"
#include "tools/calibrate_plan.h"
#include "tools/calibrate_subject.h"
#include "tools/cli/build_info.h"
#include "tools/cli/command.h"
#include "tools/cli/output_path.h"
#include "tools/cli/text_table.h"
#include "tools/doctor.h"
#include "tools/job_options.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

using Clock = std::chrono::steady_clock;
double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string Rendered(const ReportTable& table, const std::vector<std::string_view>& words) {
  std::vector<std::string> headings;
  for (const std::string& heading : table.header) {
    const bool is_word = std::ranges::find(words, heading) != words.end();
    headings.push_back(is_word ? heading : ">" + heading);
  }
  TextTable text(headings);
  for (const auto& row : table.rows) text.AddRow(row);
  return text.ToString();
}

// What was measured of each layer, and what each runtime gets.
std::string RenderTables(const Json& report, const fs::path& artifact) {
  std::string text = Rendered(SummaryTable(report), {"layer"});
  const ReportTable runtimes = RuntimesTable(report.at("serving"), artifact.string());
  if (runtimes.rows.empty()) return text;
  return text +
         "\nwhat each runtime gets (* is what oscar-validate judges; KL on held-out rows that "
         "did not choose):\n" +
         Rendered(runtimes, {"runtime", "checkpoint", "written by"});
}

Json ProgramAndCompiler() {
  Json program = ProgramJson();
  program["compiler"] = ThisBuild().compiler;
  return program;
}

CommandResult Merge(const CalibrateOptions& options, CommandContext& context) {
  if (options.output.empty()) throw UsageError("--merge needs an output: -o DIRECTORY");
  CheckNewOutput(options.output);
  std::vector<fs::path> artifacts(options.merge.begin(), options.merge.end());
  const Json report =
      MergeArtifacts(artifacts, options.calibration, ProgramAndCompiler(), options.output);
  context.out << RenderTables(report, options.output);
  if (report.at("calibration").contains("choices")) {
    for (const Json& line : report.at("calibration").at("choices").at("not_made_again"))
      context.log.Info("not_made_again", line.get<std::string>());
  }
  return {ExitCode::kDone,
          options.output,
          {{"summary", report.at("summary")}, {"serving", report.at("serving")}}};
}

// What was chosen for a layer, at the end of its line.
std::string ChoiceText(const AutoChoice& choice) {
  std::string text = fmt::format(" ({}; clip {:.2f}; values {})", choice.keys.Name(),
                                 fmt::join(choice.k_option().clip, "/"), choice.values.Name());
  if (!choice.k_fallback.empty() || !choice.v_fallback.empty())
    text += ", no better than Hadamard + clip on judging rows";
  if (choice.stability.unstable) {
    text += fmt::format(
        ", unstable: fits to half of the tokens cost {:.0f} % more KL and {:.0f} % more output "
        "error than to all of them{}",
        100 * choice.stability.k_cost, 100 * choice.stability.v_cost,
        choice.stability.few_tokens ? ", and there are few" : "");
  }
  return text;
}

// A run that was killed between publishing and clearing up: the artifact is there, and so is its
// finished job.
bool AlreadyPublished(const fs::path& output, const JobDirectory& job, size_t num_layers) {
  return fs::exists(output) && job.finished_layers() == num_layers;
}

void RemoveStaging(const fs::path& output) {
  const fs::path parent = output.has_parent_path() ? output.parent_path() : fs::path(".");
  const std::string prefix = output.filename().string() + ".tmp-";
  if (!fs::exists(parent)) return;
  for (const auto& entry : fs::directory_iterator(parent)) {
    if (entry.path().filename().string().starts_with(prefix)) fs::remove_all(entry.path());
  }
}

CommandResult Run(const CalibrateOptions& options, const Places& places, CommandContext& context) {
  const auto& [output, job_path] = places;
  const auto started = Clock::now();
  PhaseTimes times;
  // Beside the opening of the model; what fails here fails again where it is used.
  const auto warming = std::async(std::launch::async, [&] {
    const auto time = times.Measure("GPU started");
    try {
      WarmUp(ParseDevice(options.model.device));
    } catch (const std::exception&) {
    }
  });
  Subject subject;
  OwnText own_text;
  if (options.dump.from.empty()) {
    const auto time = times.Measure("model and data opened");
    const auto opened =
        std::make_shared<ModelInput>(OpenForCalibration(options, context.log, context.dry_run));
    own_text =
        context.dry_run ? PlanOwnText(options, *opened) : WriteOwnText(options, context, *opened);
    if (options.show_samples > 0) {
      context.out << ShowSamples(opened->data, opened->tokenizer_or_null(), options.show_samples);
      return {};
    }
    subject = OfModel(options, opened);
  } else {
    subject = OfDump(options, context.log);
  }
  const CalibrationInput& input = subject.input;
  const at::Device device = input.device;
  times.Add("before fingerprint", SecondsSince(started));
  const at::ScalarType dtype = input.dtype;
  const HeldOutSplit split = CheckCalibration(input);
  context.log.Info("device",
                   fmt::format("device: {}, {}", DescribeDevice(device), ComputeDTypeName(dtype)),
                   DescribeMachine(input));
  const CalibrationPlan plan = PlanCalibration(input);
  if (context.dry_run) {
    context.log.Info("plan", "nothing is made: --dry-run", PlanJson(input, plan));
    context.out << PlanText(input, plan) << own_text.plan;
    return {.json = PlanJson(input, plan)};
  }

  CheckSpace(output, plan.disk_while_running, "the run");
  JobDirectory job(
      own_text.lock ? std::move(*own_text.lock) : JobLock(job_path),
      Fingerprint(subject.fingerprint(), subject.data, input, split, ThisBuild().version),
      options.restart && !own_text.lock);
  RememberOptions(job_path, context.config);
  times.Add("before loop", SecondsSince(started));
  const size_t num_layers = input.source->layers().size();
  if (AlreadyPublished(output, job, num_layers)) {
    const Json report = Artifact::Open(output).report();
    context.out << RenderTables(report, output);
    job.Remove();
    return {ExitCode::kDone,
            output.string(),
            {{"summary", report.at("summary")}, {"serving", report.at("serving")}}};
  }
  RemoveStaging(output);
  if (fs::exists(output))
    throw InputError(
        fmt::format("{}: exists already; give another -o, or remove it", output.string()));
  if (job.finished_layers() > 0) {
    context.log.Info("resume", fmt::format("resuming: {} of {} layers are done",
                                           job.finished_layers(), num_layers));
  }

  // The digests for the manifest are taken beside the work: while weights come through the page
  // cache of the same bytes, else in what time the loop leaves the disk.
  auto model_json = std::async(std::launch::async, subject.describe);
  const ReadTurns::Closing closing(*subject.turns);
  ResetPeakMemory(device);
  context.progress.Begin("calibrating", static_cast<int64_t>(num_layers),
                         static_cast<int64_t>(job.finished_layers()));
  CalibrationHooks hooks;
  hooks.times = &times;
  hooks.stop_requested = [&] { return context.stop.requested(); };
  hooks.on_layer = [&](const LayerProgress& layer) {
    const Json report = LayerReport(layer.result);
    std::string kl;
    for (const ArmResult& arm : layer.result.arms) {
      if (arm.name == "hadamard" || arm.name == "oscar_per_head" || arm.name == "auto")
        kl += fmt::format(", KL {} {:.5f}", arm.name, arm.kl_mean);
    }
    if (const AutoChoice& choice = layer.result.automatic; choice.made) kl += ChoiceText(choice);
    const double orthogonality =
        std::max(layer.result.k.orthogonality, layer.result.v.orthogonality);
    context.progress.StepDone(
        fmt::format("layer {}: {} tokens, {:.2f} s, {:.2f} GB/s, orthogonality {:.1e}, clip K "
                    "{:.2f} V {:.2f}{}",
                    layer.result.moments.layer_id, layer.tokens, layer.seconds,
                    static_cast<double>(layer.bytes_read) / layer.seconds / 1e9, orthogonality,
                    layer.result.k.clip_ratio, layer.result.v.clip_ratio, kl),
        {{"layer_id", layer.result.moments.layer_id},
         {"tokens", layer.tokens},
         {"seconds", layer.seconds},
         {"bytes_read", layer.bytes_read},
         {"report", report}});
  };
  hooks.on_experts = [&](const LayerSpec& layer, const std::vector<int64_t>& tokens) {
    std::vector<int64_t> sorted = tokens;
    std::ranges::sort(sorted);
    context.log.Info(
        "experts",
        fmt::format("layer {}: {} experts, tokens per expert {} to {}, median {}; {} of them got "
                    "none",
                    layer.layer_id, tokens.size(), sorted.front(), sorted.back(),
                    sorted[sorted.size() / 2], std::ranges::count(sorted, 0)),
        {{"layer_id", layer.layer_id}, {"tokens_per_expert", tokens}});
  };
  const auto loop_started = Clock::now();
  const size_t resumed_at = job.finished_layers();
  RunCalibration(input, job, hooks);
  context.progress.End();
  const double loop_seconds = SecondsSince(loop_started);
  if (const ModelSource* model = input.model()) {
    const auto time = times.Measure("loss of the text");
    if (const std::optional<TextLoss> loss = MeasureTextLoss(*model)) {
      context.log.Info(
          "text_loss", loss->Text(),
          {{"mean", loss->mean}, {"tokens", loss->tokens}, {"implausible", loss->implausible()}});
    }
  }

  ArtifactInfo info;
  {
    const auto time = times.Measure("digests awaited");
    if (model_json.wait_for(std::chrono::seconds(1)) != std::future_status::ready) {
      context.log.Info("digests",
                       "the layers are done; the digests of the files, which have waited for them, "
                       "are being taken");
    }
    info.model = model_json.get();
  }
  info.data = subject.data;
  info.calibration = DescribeOptions(options.calibration, split, input.source->layers());
  info.calibration["configuration"] = context.config;
  info.program = ProgramAndCompiler();
  info.program["machine"] = DescribeMachine(input);
  info.serving = {{"quant_group_size", options.calibration.clip.quant_group_size},
                  {"sink_tokens", options.calibration.sink_tokens},
                  {"recent_tokens", options.calibration.recent_tokens},
                  {"windows_chosen", "as given (defaults of the paper: 64 and 256)"}};
  const auto tokens = static_cast<double>(input.num_tokens());
  const DeviceMemory memory = QueryMemory(device);
  const double layers_run =
      static_cast<double>(num_layers - resumed_at) / static_cast<double>(num_layers);
  info.automatic = options.calibration.automatic;
  info.timings = {{"layers", job.timings()},
                  {"loop_seconds", loop_seconds},
                  {"total_seconds", SecondsSince(started)},
                  {"peak_memory_bytes", memory.peak},
                  {"resumed_at_layer", resumed_at},
                  {"phases", times.seconds()},
                  {"finished_at_unix", std::chrono::duration_cast<std::chrono::seconds>(
                                           std::chrono::system_clock::now().time_since_epoch())
                                           .count()}};
  const auto publishing = Clock::now();
  const Json report = WriteArtifact(output, info, {num_layers, [&](size_t index) {
                                                     return ReadLayerFile(job.LayerPath(index));
                                                   }});
  job.Remove();
  times.Add("artifact", SecondsSince(publishing));
  info.timings["phases"] = times.seconds();

  context.log.Info(
      "done",
      fmt::format("{:.1f} s, {:.0f} tokens/s through the layers, peak memory {:.2f} GB ({})",
                  SecondsSince(started), tokens * layers_run / loop_seconds,
                  static_cast<double>(memory.peak) / 1e9,
                  device.is_cpu() ? "resident" : "on the GPU"),
      info.timings);
  const Json& arms = report.at("summary").at("arms");
  if (arms.contains("naive") && arms.at("naive").at("rows_beyond") == 0) {
    context.log.Info("inside_windows",
                     "no held-out row reaches beyond the sink and recent windows, so every KL "
                     "below is 0 by construction; give longer documents, or see "
                     "kl_mean_no_windows in report.json");
  }
  context.out << RenderTables(report, output);
  return {ExitCode::kDone,
          output.string(),
          {{"summary", report.at("summary")},
           {"serving", report.at("serving")},
           {"seconds", SecondsSince(started)}}};
}

CommandResult Calibrate(const CalibrateOptions& options, CommandContext& context) {
  if (!options.merge.empty()) return Merge(options, context);
  CheckArguments(options);
  const bool makes = !context.dry_run && (options.show_samples == 0 || options.self.tokens > 0);
  const Places places = makes ? PlacesOf(options) : Places();
  try {
    return Run(options, places, context);
  } catch (const OtherRun& error) {
    RefuseOtherRun(places.job, context.config, error);
  }
}

PlannedRun PlanOfModel(const CalibrateOptions& options, Log& log) {
  const auto opened =
      std::make_shared<ModelInput>(OpenForCalibration(options, log, /*planning=*/true));
  const std::string own_text = PrognosisOfOwnText(options, *opened);
  const CalibrationInput input = OfModel(options, opened).input;
  CheckCalibration(input);
  return {input, PlanCalibration(input), own_text};
}

}  // namespace
}  // namespace oscar

int main(int argc, char** argv) {
  oscar::CalibrateOptions options;
  oscar::DoctorOptions doctor;
  const oscar::OptionTable table = oscar::CalibrateTable(&options);
  const int verb = std::min(argc, 2);
  return oscar::RunVerbs(
      argc, argv,
      {.command = table.command(),
       .summary = table.summary(),
       .verbs = {oscar::DoctorVerb(&doctor, {argv + verb, argv + argc}, oscar::PlanOfModel)},
       .notes = "",
       .without_verb = oscar::Verb{table, [&](oscar::CommandContext& context) {
                                     return oscar::Calibrate(options, context);
                                   }}});
}
