// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-calibrate: model in, verified rotation artifact out.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <numeric>
#include <optional>

#include "calib/calibrate.h"
#include "calib/layer_file.h"
#include "calib/provenance.h"
#include "capture/checkpoint/model_location.h"
#include "capture/model/device.h"
#include "capture/text/data_source.h"
#include "capture/text/samples.h"
#include "capture/text/tokenizer.h"
#include "export/artifact/artifact_reader.h"
#include "export/artifact/artifact_writer.h"
#include "export/artifact/merge_artifacts.h"
#include "export/artifact/report.h"
#include "linalg/error.h"
#include "tools/calibrate_options.h"
#include "tools/calibrate_plan.h"
#include "tools/cli/build_info.h"
#include "tools/cli/command.h"
#include "tools/cli/text_table.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

using Clock = std::chrono::steady_clock;
double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string RenderTable(const Json& report) {
  const ReportTable table = SummaryTable(report);
  std::vector<std::string> headings;
  for (const std::string& heading : table.header)
    headings.push_back(heading == "layer" ? heading : ">" + heading);
  TextTable text(headings);
  for (const auto& row : table.rows) text.AddRow(row);
  return text.ToString();
}

Json ProgramJson() {
  const BuildInfo build = ThisBuild();
  Json program = {{"name", "oscar"},
                  {"version", build.version},
                  {"git_commit", build.git_commit},
                  {"compiler", build.compiler}};
  return program;
}

CommandResult Merge(const CalibrateOptions& options, CommandContext& context) {
  if (!options.model.empty()) throw UsageError("--merge works from artifacts alone: give no MODEL");
  if (options.output.empty()) throw UsageError("--merge needs an output: -o DIRECTORY");
  std::vector<fs::path> artifacts(options.merge.begin(), options.merge.end());
  const Json report = MergeArtifacts(artifacts, options.calibration, ProgramJson(), options.output);
  context.out << RenderTable(report);
  return {ExitCode::kDone, options.output};
}

// Everything that is known before a weight is read.
struct Prepared {
  ModelLocation location;
  Checkpoint checkpoint;
  ModelSpec spec;
  std::optional<Tokenizer> tokenizer;
  DataSet data;
};

void LogData(const DataSet& data, Log& log) {
  const DataCounts& c = data.counts;
  log.Info(
      "data",
      fmt::format("data: {}: {} of {} documents, {} of {} tokens used; {} documents truncated ({} "
                  "tokens cut), {} dropped ({} tokens)",
                  data.name, c.documents_used, c.documents_sent, c.tokens_used, c.tokens_sent,
                  c.documents_truncated, c.tokens_truncated, c.documents_dropped, c.tokens_dropped),
      DescribeData(data));
}

Prepared Prepare(const CalibrateOptions& options, Log& log) {
  Prepared p;
  p.location = ResolveModel(options.model);
  p.spec =
      ReadModelSpec(p.location.directory, {.allow_unknown_config = options.allow_unknown_config});
  p.checkpoint = Checkpoint::Open(p.location.directory);
  CheckTensors(p.spec, p.checkpoint);
  log.Info("model",
           fmt::format("model: {}{} ({}, {} layers, {})", p.location.id,
                       p.location.revision.empty() ? "" : "@" + p.location.revision,
                       p.spec.model_type, p.spec.layers.size(), p.spec.rope_description),
           {{"id", p.location.id},
            {"revision", p.location.revision},
            {"directory", p.location.directory.string()}});
  for (const std::string& field : p.spec.ignored_config) {
    log.Info(
        "ignored_config",
        fmt::format("config.json: '{}' is not known and was let pass by --allow-unknown-config",
                    field));
  }
  if (const fs::path file = p.location.directory / "tokenizer.json"; fs::exists(file))
    p.tokenizer = Tokenizer::Load(file);
  DataOptions data_options;
  data_options.files.assign(options.data.begin(), options.data.end());
  data_options.token_budget = options.tokens;
  const int64_t longest = std::min(p.spec.max_positions, options.tokens);
  if (options.max_sequence > p.spec.max_positions) {
    throw UsageError(fmt::format("--max-sequence {}: the model supports {} positions",
                                 options.max_sequence, p.spec.max_positions));
  }
  data_options.max_sequence = options.max_sequence > 0 ? options.max_sequence : longest;
  p.data = LoadData(data_options, p.tokenizer ? &*p.tokenizer : nullptr, p.spec.vocab_size);
  LogData(p.data, log);
  return p;
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

CommandResult Calibrate(const CalibrateOptions& options, CommandContext& context) {
  if (!options.merge.empty()) return Merge(options, context);
  if (options.model.empty())
    throw UsageError("no MODEL given: a directory, or ORG/NAME in the local Hugging Face cache");
  const auto started = Clock::now();
  const Prepared prepared = Prepare(options, context.log);
  if (options.show_samples > 0) {
    context.out << ShowSamples(prepared.data, prepared.tokenizer ? &*prepared.tokenizer : nullptr,
                               options.show_samples);
    return {};
  }

  const at::Device device = ParseDevice(options.device);
  const at::ScalarType dtype =
      ParseComputeDType(options.dtype, StoredDType(prepared.spec, prepared.checkpoint), device);
  CalibrationInput input{.checkpoint = prepared.checkpoint,
                         .spec = prepared.spec,
                         .sequences = {},
                         .device = device,
                         .dtype = dtype,
                         .options = options.calibration};
  for (const Document& document : prepared.data.documents) input.sequences.push_back(document.ids);
  const HeldOutSplit split = CheckCalibration(input);
  context.log.Info("device",
                   fmt::format("device: {}, {}", DescribeDevice(device), ComputeDTypeName(dtype)),
                   DescribeMachine(device, dtype));
  if (context.dry_run) {
    const CalibrationPlan plan = PlanCalibration(input);
    context.log.Info("plan", "nothing is made: --dry-run", PlanJson(input, plan));
    context.out << PlanText(input, plan);
    return {};
  }

  const fs::path output =
      options.output.empty()
          ? fs::path(fs::path(prepared.location.id).filename().string() + "-oscar")
          : fs::path(options.output);
  const fs::path job_path = output.string() + ".job";
  if (fs::exists(output) && !fs::exists(job_path)) {
    throw InputError(
        fmt::format("{}: exists already; give another -o, or remove it", output.string()));
  }
  JobDirectory job(job_path,
                   Fingerprint(prepared.location, input, split, prepared.data, ThisBuild().version),
                   options.restart);
  const size_t num_layers = prepared.spec.layers.size();
  if (AlreadyPublished(output, job, num_layers)) {
    context.out << RenderTable(Artifact::Open(output).report());
    job.Remove();
    return {ExitCode::kDone, output.string()};
  }
  RemoveStaging(output);
  if (fs::exists(output))
    throw InputError(
        fmt::format("{}: exists already; give another -o, or remove it", output.string()));
  if (job.finished_layers() > 0) {
    context.log.Info("resume", fmt::format("resuming: {} of {} layers are done",
                                           job.finished_layers(), num_layers));
  }

  // The weight digests for the manifest are taken beside the work: the files are read anyway.
  auto model_json = std::async(std::launch::async, [&] {
    return DescribeModel(prepared.location, prepared.spec, prepared.checkpoint);
  });
  ResetPeakMemory(device);
  context.progress.Begin("calibrating", static_cast<int64_t>(num_layers),
                         static_cast<int64_t>(job.finished_layers()));
  CalibrationHooks hooks;
  hooks.stop_requested = [&] { return context.stop.requested(); };
  hooks.on_layer = [&](const LayerProgress& layer) {
    const Json report = LayerReport(layer.result);
    std::string kl;
    for (const ArmResult& arm : layer.result.arms) {
      if (arm.name == "hadamard" || arm.name == "oscar_per_head")
        kl += fmt::format(", KL {} {:.5f}", arm.name, arm.kl_mean);
    }
    const double orthogonality =
        std::max(layer.result.k.orthogonality, layer.result.v.orthogonality);
    context.progress.StepDone(
        fmt::format("layer {}: {} tokens, {:.2f} s, {:.2f} GB/s, orthogonality {:.1e}, clip K "
                    "{:.2f} V {:.2f}{}",
                    layer.result.moments.layer_id, layer.tokens, layer.seconds,
                    static_cast<double>(layer.weight_bytes) / layer.seconds / 1e9, orthogonality,
                    layer.result.k.clip_ratio, layer.result.v.clip_ratio, kl),
        {{"layer_id", layer.result.moments.layer_id},
         {"tokens", layer.tokens},
         {"seconds", layer.seconds},
         {"weight_bytes", layer.weight_bytes},
         {"report", report}});
  };
  const auto loop_started = Clock::now();
  const size_t resumed_at = job.finished_layers();
  RunCalibration(input, job, hooks);
  context.progress.End();
  const double loop_seconds = SecondsSince(loop_started);

  ArtifactInfo info;
  info.model = model_json.get();
  info.data = DescribeData(prepared.data);
  info.calibration = DescribeOptions(options.calibration, split, prepared.spec);
  info.calibration["configuration"] = context.config;
  info.program = ProgramJson();
  info.program["machine"] = DescribeMachine(device, dtype);
  info.serving = {{"quant_group_size", options.calibration.clip.quant_group_size},
                  {"sink_tokens", options.calibration.sink_tokens},
                  {"recent_tokens", options.calibration.recent_tokens},
                  {"windows_chosen", "as given (defaults of the paper: 64 and 256)"}};
  const auto tokens = static_cast<double>(prepared.data.counts.tokens_used);
  const DeviceMemory memory = QueryMemory(device);
  const double layers_run =
      static_cast<double>(num_layers - resumed_at) / static_cast<double>(num_layers);
  info.timings = {{"layers", job.timings()},
                  {"loop_seconds", loop_seconds},
                  {"total_seconds", SecondsSince(started)},
                  {"peak_memory_bytes", memory.peak},
                  {"resumed_at_layer", resumed_at},
                  {"finished_at_unix", std::chrono::duration_cast<std::chrono::seconds>(
                                           std::chrono::system_clock::now().time_since_epoch())
                                           .count()}};
  const Json report = WriteArtifact(output, info, {num_layers, [&](size_t index) {
                                                     return ReadLayerFile(job.LayerPath(index));
                                                   }});
  job.Remove();

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
  context.out << RenderTable(report);
  return {ExitCode::kDone, output.string()};
}

}  // namespace
}  // namespace oscar

int main(int argc, char** argv) {
  oscar::CalibrateOptions options;
  return oscar::RunCommand(
      argc, argv, oscar::CalibrateTable(&options),
      [&](oscar::CommandContext& context) { return oscar::Calibrate(options, context); });
}
