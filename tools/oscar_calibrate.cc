// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-calibrate: a model, or a dump of one, in; verified rotation artifact out.
// Longer than 400 lines because the order of a run stands here, from opening to publishing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "calib/job/layer_file.h"
#include "calib/observe/text_loss.h"
#include "calib/run/calibrate.h"
#include "calib/run/provenance.h"
#include "capture/checkpoint/weights_sample.h"
#include "capture/model/device.h"
#include "capture/text/samples.h"
#include "export/artifact/artifact_reader.h"
#include "export/artifact/artifact_writer.h"
#include "export/artifact/merge_artifacts.h"
#include "linalg/error.h"
#include "tools/calibrate_options.h"
#include "tools/calibrate_plan.h"
#include "tools/calibrate_subject.h"
#include "tools/calibrate_text.h"
#include "tools/cli/build_info.h"
#include "tools/cli/command.h"
#include "tools/cli/output_path.h"
#include "tools/doctor.h"
#include "tools/job_options.h"
#include "tools/next_token_plan.h"
#include "tools/zoo_hint.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

using Clock = std::chrono::steady_clock;
double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Json ProgramAndCompiler() {
  Json program = ProgramJson();
  program["compiler"] = ThisBuild().compiler;
  return program;
}

// Says what is in the artifact.
CommandResult Published(const Json& report, const fs::path& output, CommandContext& context) {
  const Json arms = report.at("summary").value("arms", Json::object());
  if (arms.contains("naive") && arms.at("naive").at("rows_beyond") == 0) {
    context.log.Info("inside_windows",
                     "no held-out row reaches beyond the sink and recent windows, so every KL "
                     "below is 0 by construction; give longer documents, or see "
                     "kl_mean_no_windows in report.json");
  }
  context.out << CalibrationTables(report, output);
  return {ExitCode::kDone,
          output.string(),
          {{"summary", report.at("summary")}, {"serving", report.at("serving")}}};
}

// Of the files in a directory; 0 where there is none, which its reader will say.
uint64_t BytesIn(const fs::path& directory) {
  std::error_code error;
  uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(directory, error))
    if (const auto size = entry.file_size(error); !error) bytes += size;
  return bytes;
}

CommandResult Merge(const CalibrateOptions& options, CommandContext& context) {
  if (options.output.empty()) throw UsageError("--merge needs an output: -o DIRECTORY");
  CheckNewOutput(options.output);
  std::vector<fs::path> artifacts(options.merge.begin(), options.merge.end());
  uint64_t largest = 0;
  for (const fs::path& artifact : artifacts) largest = std::max(largest, BytesIn(artifact));
  CheckSpace(options.output, largest, "the merged artifact");
  const Json report =
      MergeArtifacts(artifacts, options.calibration, ProgramAndCompiler(), options.output);
  CommandResult merged = Published(report, options.output, context);
  if (report.at("calibration").contains("choices")) {
    for (const Json& line : report.at("calibration").at("choices").at("not_made_again"))
      context.log.Info("not_made_again", line.get<std::string>());
  }
  return merged;
}

// A run that was killed between publishing and clearing up: the artifact is there, and so is its
// finished job.
bool AlreadyPublished(const fs::path& output, const JobDirectory& job, size_t num_layers) {
  return fs::exists(output) && job.finished_layers() == num_layers;
}

// What there is to do, known and checked; nothing has been done.
struct Opened {
  std::shared_ptr<const ModelInput> model;  // null: a dump
  Subject subject;
  OwnText own_text;
  HeldOutSplit split;

  const CalibrationInput& input() const { return subject.input; }
  size_t num_layers() const { return input().source->layers().size(); }
};

// Nothing where all that was asked for are samples, which are shown then.
std::optional<Opened> Open(const CalibrateOptions& options, RankGroup* group,
                           CommandContext& context, PhaseTimes& times) {
  const auto time = times.Measure("model and data opened");
  const std::future<void> starting = StartGpu(options.model.device);
  Opened opened;
  if (!options.dump.from.empty()) {
    opened.subject = OfDump(options, context.log);
  } else {
    const auto model =
        std::make_shared<ModelInput>(OpenForCalibration(options, context.log, context.dry_run));
    const bool has_job = group == nullptr || group->rank() == 0;
    if (!context.dry_run && options.show_samples == 0 && has_job)
      CheckCalibrationOfOwnText(options, model);
    opened.own_text = context.dry_run ? PlanOwnText(options, *model)
                                      : WriteOwnText(options, group, context, *model);
    if (options.show_samples > 0) {
      context.out << ShowSamples(model->data, model->tokenizer_or_null(), options.show_samples);
      return std::nullopt;
    }
    opened.subject = OfModel(options, model, group);
    opened.model = model;
  }
  opened.split = CheckCalibration(opened.input());
  return opened;
}

CalibrationPlan Plan(const Opened& opened, CommandContext& context) {
  const CalibrationInput& input = opened.input();
  context.log.Info(
      "device",
      fmt::format("device: {}, {}", DescribeDevice(input.device), ComputeDTypeName(input.dtype)),
      DescribeMachine(input));
  return PlanCalibration(input);
}

Json FingerprintOf(const Opened& opened) {
  return Fingerprint(opened.subject.fingerprint(), opened.subject.data, opened.input(),
                     opened.split, ThisBuild().version);
}

// The job of this run, new or half done.
JobDirectory JobOf(const CalibrateOptions& options, Opened& opened, const Places& places,
                   const Json& fingerprint) {
  std::optional<JobLock>& lock = opened.own_text.lock;
  const bool restart = options.restart && !lock;
  return JobDirectory(lock ? std::move(*lock) : JobLock(places.job), fingerprint, restart);
}

void CheckPlace(const Places& places, const JobDirectory& job, size_t num_layers,
                CommandContext& context) {
  RemoveStaging(places.output);
  if (fs::exists(places.output)) {
    throw InputError(
        fmt::format("{}: exists already; give another -o, or remove it", places.output.string()));
  }
  if (job.finished_layers() > 0) {
    context.log.Info("resume", fmt::format("resuming: {} of {} layers are done",
                                           job.finished_layers(), num_layers));
  }
}

// All layers that the job lacks. What the artifact will say of each, those from before included.
ArtifactDraft RunLayers(const CalibrateOptions& options, const Opened& opened, const Places& places,
                        JobDirectory& job, CommandContext& context, PhaseTimes& times,
                        uint64_t* weights_read) {
  const CalibrationInput& input = opened.input();
  ArtifactDraft draft(places.output, options.calibration.automatic);
  for (size_t index = 0; index < job.finished_layers(); ++index)
    draft.Add(ReadLayerFile(job.LayerPath(index)));
  context.progress.Begin("calibrating", static_cast<int64_t>(opened.num_layers()),
                         static_cast<int64_t>(job.finished_layers()));
  CalibrationHooks hooks;
  hooks.times = &times;
  hooks.stop_requested = [&] { return context.stop.requested(); };
  hooks.on_layer = [&](const LayerProgress& layer) {
    draft.Add(layer.result);
    context.progress.StepDone(LayerLine(layer), LayerEvent(layer, draft.last_report()));
  };
  hooks.on_weights_read = [&](uint64_t bytes) { *weights_read = bytes; };
  hooks.on_experts = [&](const LayerSpec& layer, const std::vector<int64_t>& tokens) {
    context.log.Info("experts", ExpertsLine(layer, tokens),
                     {{"layer_id", layer.layer_id}, {"tokens_per_expert", tokens}});
  };
  {
    const auto time = times.Measure("loop");
    RunCalibration(input, job, hooks);
  }
  context.progress.End();
  if (input.model() != nullptr) {
    const auto time = times.Measure("loss of the text");
    if (const std::optional<TextLoss> loss = LossOfText(input)) {
      context.log.Info(
          "text_loss", loss->Text(),
          {{"mean", loss->mean}, {"tokens", loss->tokens}, {"implausible", loss->implausible()}});
    }
  }
  return draft;
}

Json DigestsOf(std::future<Json>& model_json, CommandContext& context, PhaseTimes& times) {
  const auto time = times.Measure("digests awaited");
  if (model_json.wait_for(std::chrono::seconds(1)) != std::future_status::ready) {
    context.log.Info("digests",
                     "the layers are done; the digests of the files, which have waited for them, "
                     "are being taken");
  }
  return model_json.get();
}

// Everything but the digests and the times.
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

int64_t UnixTime() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// What one of several ranks did.
Json WorkOfRank(uint64_t weights_read, const PhaseTimes& times) {
  return {{"weight_bytes_read", weights_read}, {"phases", times.seconds()}};
}
std::string WorkKey(int rank) { return fmt::format("work/{}", rank); }

// Experts and embeddings are loaded by one rank alone, so that nothing is compared in passing: who
// reads other files than rank 0 takes their digests too, beside the work.
std::vector<int> DigestingRanks(const RankGroup& group, const ModelInput& model) {
  return FirstReaders(group, OpenedFiles(model.checkpoint.directory(), model.checkpoint.files()));
}
std::string DigestsKey(int rank) { return fmt::format("digests/{}", rank); }

void CompareDigests(const RankGroup& group, const std::vector<int>& ranks, const Json& own) {
  for (const int rank : ranks) {
    if (rank == 0) continue;
    const Json other = Json::parse(group.Get(DigestsKey(rank)));
    for (const auto& [file, digest] : own.items()) {
      if (other.value(file, Json()) == digest) continue;
      throw InputError(fmt::format("rank {} has read another {} than rank 0: SHA-256 {}, here {}",
                                   rank, file, other.value(file, Json()).dump(), digest.dump()));
    }
  }
}

// The part of a rank that is not rank 0, which has the job and makes the artifact.
CommandResult RunRank(const CalibrateOptions& options, RankGroup& group, CommandContext& context) {
  PhaseTimes times;
  const std::optional<Opened> opened = Open(options, &group, context, times);
  CheckSameOnAllRanks(group, FingerprintOf(*opened));
  const std::vector<int> digesting = DigestingRanks(group, *opened->model);
  std::future<Json> model_json;
  if (std::ranges::find(digesting, group.rank()) != digesting.end())
    model_json = std::async(std::launch::async, opened->subject.describe);
  const ReadTurns::Closing closing(*opened->subject.turns);
  uint64_t weights_read = 0;
  CalibrationHooks hooks;
  hooks.times = &times;
  hooks.stop_requested = [&] { return context.stop.requested(); };
  hooks.on_weights_read = [&](uint64_t bytes) { weights_read = bytes; };
  {
    const auto time = times.Measure("loop");
    RunCalibrationOfRank(opened->input(), hooks);
  }
  (void)LossOfText(opened->input());
  if (model_json.valid())
    group.Set(DigestsKey(group.rank()), model_json.get().at("weights").dump());
  group.Set(WorkKey(group.rank()), WorkOfRank(weights_read, times).dump());
  return {};
}

CommandResult Run(const CalibrateOptions& options, const Places& places, RankGroup* group,
                  CommandContext& context) {
  const auto started = Clock::now();
  PhaseTimes times;
  std::optional<Opened> opened = Open(options, group, context, times);
  if (!opened) return {};
  const CalibrationPlan plan = Plan(*opened, context);
  const CalibrationInput& input = opened->input();
  if (context.dry_run) {
    context.log.Info("plan", "nothing is made: --dry-run", PlanJson(input, plan));
    context.out << PlanText(input, plan) << opened->own_text.plan;
    Json json = PlanJson(input, plan);
    const std::vector<RankPlan> ranks = PlanAllRanks(options, opened->model, input, plan);
    if (!ranks.empty()) {
      context.out << RankPlanText(ranks);
      json["ranks"] = RankPlanJson(ranks);
    }
    return {.json = json};
  }
  CheckSpace(places.output, plan.disk_while_running, "the run");
  const Json fingerprint = FingerprintOf(*opened);
  std::vector<int> digesting;
  if (group != nullptr) {
    CheckSameOnAllRanks(*group, fingerprint);
    digesting = DigestingRanks(*group, *opened->model);
  }
  JobDirectory job = JobOf(options, *opened, places, fingerprint);
  RememberOptions(places.job, context.config);
  times.Add("before loop", SecondsSince(started));
  if (AlreadyPublished(places.output, job, opened->num_layers())) {
    const Json report = Artifact::Open(places.output).report();
    if (group != nullptr) RunCalibration(input, job, {});  // the others hear that nothing is left
    job.Remove();
    return Published(report, places.output, context);
  }
  CheckPlace(places, job, opened->num_layers(), context);

  // The digests for the manifest are taken beside the work: while weights come through the page
  // cache of the same bytes, else in what time the loop leaves the disk.
  auto model_json = std::async(std::launch::async, opened->subject.describe);
  const ReadTurns::Closing closing(*opened->subject.turns);
  ResetPeakMemory(input.device);
  const size_t resumed_at = job.finished_layers();
  uint64_t weights_read = 0;
  ArtifactDraft draft = RunLayers(options, *opened, places, job, context, times, &weights_read);
  Json cache_types;
  if (const bool typed = !options.types.runtime.empty(); typed || PlansByNextToken(input)) {
    const auto time = times.Measure("bits by the next token");
    // On this rank alone, with all of the text.
    const CalibrationInput all = group == nullptr ? input : OfModel(options, opened->model).input;
    if (PlansByNextToken(all)) PlanByNextToken(all, opened->split, job, draft, context);
    if (typed) cache_types = PlanCacheTypes(options.types, all, opened->split, job, context);
  }
  ArtifactInfo info = InfoOf(options, *opened, context);
  if (!cache_types.is_null()) info.serving["cache_types"] = cache_types;
  info.model = DigestsOf(model_json, context, times);
  if (group != nullptr) CompareDigests(*group, digesting, info.model.at("weights"));
  const DeviceMemory memory = QueryMemory(input.device);
  info.timings = {{"layers", job.timings()},
                  {"loop_seconds", times.seconds().at("loop")},
                  {"total_seconds", SecondsSince(started)},
                  {"peak_memory_bytes", memory.peak},
                  {"resumed_at_layer", resumed_at},
                  {"weight_bytes_read", weights_read},
                  {"phases", times.seconds()},
                  {"finished_at_unix", UnixTime()}};
  for (int rank = 1; group != nullptr && rank < group->size(); ++rank)
    info.timings["other_ranks"].push_back(Json::parse(group->Get(WorkKey(rank))));
  const auto publishing = Clock::now();
  const LayerSource layers = {opened->num_layers(), [&](size_t index) {
                                return ReadLayerFile(job.LayerPath(index), MomentsPart::kMeans);
                              }};
  const Json report = WriteArtifact(info, layers, std::move(draft));
  job.Remove();
  times.Add("artifact", SecondsSince(publishing));
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
  CommandResult result = Published(report, places.output, context);
  result.json["seconds"] = SecondsSince(started);
  return result;
}

CommandResult Calibrate(const CalibrateOptions& options, CommandContext& context) {
  if (!options.merge.empty()) return Merge(options, context);
  CheckArguments(options);
  if (options.ranks.nodes > 1 && !context.dry_run)
    throw UsageError("--nodes is for a plan: give --dry-run with it");
  const bool makes = !context.dry_run && (options.show_samples == 0 || options.self.tokens > 0);
  const std::unique_ptr<RankGroup> group =
      makes ? JoinRanks(options.ranks, options.model.device, context) : nullptr;
  try {
    if (group) CheckRanks(options, group->size());
    if (group && group->rank() != 0) return RunRank(options, *group, context);
    const Places places = makes ? PlacesOf(options) : Places();
    if (options.dump.from.empty()) {
      if (const std::string hint = ZooHint(options.model.model); !hint.empty())
        context.log.Info("zoo", hint);
    }
    try {
      return Run(options, places, group.get(), context);
    } catch (const OtherRun& error) {
      RefuseOtherRun(places.job, context.config, error);
    }
  } catch (const std::exception&) {
    if (group) EndJob(*group);
    throw;
  }
}

PlannedRun PlanOfModel(const CalibrateOptions& given, Log& log) {
  const CalibrateOptions options = Resolved(given);
  const auto opened =
      std::make_shared<ModelInput>(OpenForCalibration(options, log, /*planning=*/true));
  const std::string own_text = PrognosisOfOwnText(options, *opened);
  const CalibrationInput input = OfModel(options, opened).input;
  CheckCalibration(input);
  const CalibrationPlan plan = PlanCalibration(input);
  return {input, plan, own_text, PlanAllRanks(options, opened, input, plan)};
}

}  // namespace
}  // namespace oscar

int main(int argc, char** argv) {
  const oscar::Console console = oscar::EnterJob();
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
       .without_verb = oscar::Verb{table,
                                   [&](oscar::CommandContext& context) {
                                     return oscar::Calibrate(oscar::Resolved(options), context);
                                   }}},
      console);
}
