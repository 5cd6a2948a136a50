// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/calibrate/calibrate_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "calib/job/layer_file.h"
#include "calib/observe/text_loss.h"
#include "calib/run/provenance.h"
#include "capture/model/run/device.h"
#include "export/artifact/artifact_reader.h"
#include "export/artifact/artifact_writer.h"
#include "export/artifact/merge_artifacts.h"
#include "linalg/base/error.h"
#include "linalg/base/error_context.h"
#include "tools/calibrate/calibrate_plan.h"
#include "tools/calibrate/calibrate_rank.h"
#include "tools/calibrate/calibrate_steps.h"
#include "tools/calibrate/calibrate_text.h"
#include "tools/calibrate/next_token_plan.h"
#include "tools/cli/build_info.h"
#include "tools/cli/output_path.h"
#include "tools/input/forward_proof.h"
#include "tools/input/job_options.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

using Clock = std::chrono::steady_clock;
double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t UnixTime() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Json ProgramAndCompiler() {
  Json program = ProgramJson();
  program["compiler"] = ThisBuild().compiler;
  return program;
}

// Reports the content of the artifact.
CommandResult Published(const Json& report, const fs::path& output, const CalibrateOptions& options,
                        CommandContext& context) {
  const Json arms = report.at("summary").value("arms", Json::object());
  if (arms.contains("naive") && arms.at("naive").at("rows_beyond") == 0) {
    context.log.Info(
        "inside_windows",
        "no held-out row sees tokens outside the sink and recent windows, so no attention-KL is "
        "printed below; give longer documents, or see kl_mean_no_windows in report.json");
  }
  context.out << CalibrationTables(report, options.verbose)
              << NextCommands(report, output, options);
  return {ExitCode::kDone,
          output.string(),
          {{"summary", report.at("summary")}, {"serving", report.at("serving")}}};
}

// Returns the total file size of a directory. Returns 0 if it is missing; opening it then fails.
uint64_t BytesIn(const fs::path& directory) {
  std::error_code error;
  uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(directory, error))
    if (const auto size = entry.file_size(error); !error) bytes += size;
  return bytes;
}

// Returns whether a run was killed after publishing but before it removed its job: the artifact
// exists, and all layers of the job are finished.
bool AlreadyPublished(const fs::path& output, const JobDirectory& job, size_t num_layers) {
  return fs::exists(output) && job.finished_layers() == num_layers;
}

void CheckPlace(const Places& places) {
  RemoveStaging(places.output);
  if (fs::exists(places.output)) {
    throw InputError(
        fmt::format("{}: exists already; give another -o, or remove it", places.output.string()));
  }
}

// Runs the layers that are missing in the job. Returns the reports of all layers.
ArtifactDraft RunLayers(const CalibrateOptions& options, const Opened& opened, const Places& places,
                        JobDirectory& job, CommandContext& context, PhaseTimes& times,
                        uint64_t* weights_read) {
  const CalibrationInput& input = opened.input();
  ArtifactDraft draft(places.output, options.calibration.automatic);
  for (size_t index = 0; index < job.finished_layers(); ++index)
    draft.Add(ReadLayerFile(job.LayerPath(index)));
  context.progress.Begin("calibrating", static_cast<int64_t>(opened.num_layers()),
                         static_cast<int64_t>(job.finished_layers()));
  CalibrationHooks hooks = HooksOf(context, times, weights_read);
  hooks.on_layer = [&](const LayerProgress& layer) {
    draft.Add(layer.result);
    context.progress.StepDone(LayerLine(layer), LayerEvent(layer, draft.last_report()));
  };
  {
    const auto time = times.Measure("loop");
    RunCalibration(input, job, hooks);
  }
  context.progress.End();
  if (input.model() != nullptr) {
    const auto time = times.Measure("loss of the text");
    const std::optional<TextLoss> loss =
        WithErrorContext("measuring the loss of the text", [&] { return LossOfText(input); });
    if (loss) {
      context.log.Info(
          "text_loss", loss->Text(),
          {{"mean", loss->mean}, {"tokens", loss->tokens}, {"implausible", loss->implausible()}});
    }
    ProveForwardPass(options.model, *opened.model, context.log, loss);
  }
  return draft;
}

// Returns the artifact's information without digests and times.
ArtifactInfo InfoOf(const CalibrateOptions& options, const Opened& opened,
                    const CommandContext& context) {
  ArtifactInfo info;
  info.data = opened.subject.data;
  info.calibration =
      DescribeOptions(options.calibration, opened.split, opened.input().source->layers());
  info.calibration["configuration"] = context.config;
  info.program = ProgramAndCompiler();
  info.program["machine"] = DescribeMachine(opened.input());
  info.serving = {{"quant_group_size", options.calibration.clip.quant_group_size},
                  {"sink_tokens", options.calibration.sink_tokens},
                  {"recent_tokens", options.calibration.recent_tokens},
                  {"windows_chosen", "as given (defaults of the paper: 64 and 256)"}};
  info.automatic = options.calibration.automatic;
  return info;
}

// Runs the model over the text of all ranks after the layers are done, and allocates bits by their
// cost to the next token. Sets the bits in the draft and returns the cache types. Runs on rank 0
// alone.
Json PlanBits(const CalibrateOptions& options, const Opened& opened, bool among_ranks,
              const JobDirectory& job, ArtifactDraft& draft, CommandContext& context,
              PhaseTimes& times) {
  const bool typed = !options.types.runtime.empty();
  if (!typed && !PlansByNextToken(opened.input())) return nullptr;
  const auto time = times.Measure("bits by the next token");
  const CalibrationInput all = among_ranks ? OfModel(options, opened.model).input : opened.input();
  if (PlansByNextToken(all)) PlanByNextToken(all, opened.split, job, draft, context);
  if (!typed) return nullptr;
  return PlanCacheTypes(options.types, all, opened.split, job, context);
}

}  // namespace

CommandResult RunToArtifact(const CalibrateOptions& options, const Places& places, RankGroup& group,
                            CommandContext& context) {
  const auto started = Clock::now();
  PhaseTimes times;
  std::optional<Opened> opened =
      WithErrorContext("opening the model", [&] { return Open(options, group, context, times); });
  if (!opened) return {};
  const CalibrationPlan plan = WithErrorContext("planning", [&] { return Plan(*opened, context); });
  if (context.dry_run) return ShowPlan(options, *opened, plan, context);
  const CalibrationInput& input = opened->input();
  CheckRoom(places.output, plan, "the run");
  Json fingerprint = FingerprintOf(*opened);
  CheckSameOnAllRanks(group, fingerprint);
  const std::vector<int> digesting = DigestingRanks(group, *opened);
  const ShardSet& shards = *opened->subject.shards;
  shards.CheckRun(fingerprint, opened->num_layers(), input.lengths());
  // Unlike a job that runs the model, a job that merges shards has no hidden states. Their
  // fingerprints must differ, so that neither resumes the other.
  if (!shards.shares().empty()) fingerprint["shards"] = shards.shares().size();
  JobDirectory job = JobOf(options, *opened, places, fingerprint);
  RememberOptions(places.job, context.config);
  times.Add("before loop", SecondsSince(started));
  if (AlreadyPublished(places.output, job, opened->num_layers())) {
    const Json report = Artifact::Open(places.output).report();
    RunCalibration(input, job, {});  // tells other ranks that no layer is left
    job.Remove();
    return Published(report, places.output, options, context);
  }
  CheckPlace(places);
  SayResumed(job, opened->num_layers(), context);

  // Computes the digests for the manifest in the background. If the loop reads weights through the
  // page cache, hashing reads the same cached bytes. Otherwise it reads the files while the loop
  // does not use the disk.
  auto model_json = std::async(std::launch::async, opened->subject.describe);
  const ReadTurns::Closing closing(*opened->subject.turns);
  ResetPeakMemory(input.device);
  const size_t resumed_at = job.finished_layers();
  uint64_t weights_read = 0;
  ArtifactDraft draft = WithErrorContext("calibrating", [&] {
    return RunLayers(options, *opened, places, job, context, times, &weights_read);
  });
  const Json cache_types = WithErrorContext("choosing bits by the next token", [&] {
    return PlanBits(options, *opened, group.size() > 1, job, draft, context, times);
  });
  ArtifactInfo info = InfoOf(options, *opened, context);
  if (!cache_types.is_null()) info.serving["cache_types"] = cache_types;
  info.model = DigestsOf(model_json, *opened, context, times);
  const Json weights = info.model.value("weights", Json::object());
  CompareDigests(group, digesting, weights);
  shards.CheckWeights(weights);
  const DeviceMemory memory = QueryMemory(input.device);
  info.timings = {{"layers", job.timings()},
                  {"loop_seconds", times.seconds().at("loop")},
                  {"total_seconds", SecondsSince(started)},
                  {"peak_memory_bytes", memory.peak},
                  {"resumed_at_layer", resumed_at},
                  {"weight_bytes_read", weights_read},
                  {"phases", times.seconds()},
                  {"finished_at_unix", UnixTime()}};
  for (const auto& [name, work] :
       {std::pair("other_ranks", WorkOfOthers(group)), std::pair("shards", shards.timings())})
    if (!work.empty()) info.timings[name] = work;
  const auto publishing = Clock::now();
  const LayerSource layers = {opened->num_layers(), [&](size_t index) {
                                return ReadLayerFile(job.LayerPath(index), MomentsPart::kMeans);
                              }};
  const Json report = WriteArtifact(info, layers, std::move(draft));
  job.Remove();
  times.Add("artifact", SecondsSince(publishing));
  info.timings["cpu_threads"] = CpuThreads();
  info.timings["phases"] = times.seconds();
  const auto layers_run = static_cast<double>(opened->num_layers() - resumed_at) /
                          static_cast<double>(opened->num_layers());
  context.log.Info(
      "done",
      fmt::format("{:.1f} s, {:.0f} tokens/s through the layers, peak memory {:.2f} GB ({})",
                  SecondsSince(started),
                  static_cast<double>(input.num_tokens()) * layers_run /
                      info.timings["loop_seconds"].get<double>(),
                  static_cast<double>(memory.peak) / 1e9,
                  input.device.is_cpu() ? "resident" : "on the GPU"),
      info.timings);
  CommandResult result = Published(report, places.output, options, context);
  result.json["seconds"] = SecondsSince(started);
  return result;
}

CommandResult MergeMoments(const CalibrateOptions& options, CommandContext& context) {
  if (options.output.empty()) throw UsageError("--merge needs an output; give -o DIRECTORY");
  CheckNewOutput(options.output);
  std::vector<fs::path> artifacts(options.merge.begin(), options.merge.end());
  uint64_t largest = 0;
  for (const fs::path& artifact : artifacts) largest = std::max(largest, BytesIn(artifact));
  CheckSpace(options.output, largest, "the merged artifact");
  const Json report =
      MergeArtifacts(artifacts, options.calibration, ProgramAndCompiler(), options.output);
  CommandResult merged = Published(report, options.output, options, context);
  if (report.at("calibration").contains("choices")) {
    for (const Json& line : report.at("calibration").at("choices").at("not_made_again"))
      context.log.Info("not_made_again", line.get<std::string>());
  }
  return merged;
}

}  // namespace oscar
