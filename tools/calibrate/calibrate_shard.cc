// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/calibrate/calibrate_shard.h"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <optional>

#include "capture/model/run/device.h"
#include "tools/calibrate/calibrate_plan.h"
#include "tools/calibrate/calibrate_steps.h"
#include "tools/input/job_options.h"

namespace oscar {
namespace {

CommandResult Made(const Places& places, const RankShare& share) {
  return {ExitCode::kDone,
          places.output.string(),
          {{"documents", share.num_sequences}, {"tokens", share.num_tokens}}};
}

}  // namespace

CommandResult RunShard(const CalibrateOptions& options, const Places& places,
                       CommandContext& context) {
  const auto started = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  };
  PhaseTimes times;
  const ShardPlace place = ShardOf(options).value();
  Opened opened = Open(options, OneRank(), context, times).value();
  const CalibrationInput& input = opened.input();
  const RankShare& share = input.ranks.own();
  const CalibrationPlan plan = Plan(opened, context);
  context.log.Info("shard", fmt::format("{}: {} of {} documents, {} of {} tokens", place.Name(),
                                        share.num_sequences, input.lengths().size(),
                                        share.num_tokens, input.num_tokens()));
  if (context.dry_run) return ShowPlan(options, opened, plan, context);
  const Json run = FingerprintOf(opened);
  if (IsShardOf(places.output, place, run)) {
    context.log.Info("published", fmt::format("{} exists already", place.Name()));
    return Made(places, share);
  }
  CheckRoom(places.output, plan, "the shard");
  Json fingerprint = run;
  fingerprint["shard"] = place.Name();
  JobDirectory job = JobOf(options, opened, places, fingerprint);
  RememberOptions(places.job, context.config);
  SayResumed(job, opened.num_layers(), context);

  auto model_json = std::async(std::launch::async, opened.subject.describe);
  const ReadTurns::Closing closing(*opened.subject.turns);
  ResetPeakMemory(input.device);
  uint64_t weights_read = 0;
  CalibrationHooks hooks = HooksOf(context, times, &weights_read);
  hooks.on_layer = [&](const LayerProgress& layer) {
    const int id = layer.result.moments.layer_id;
    context.progress.StepDone(fmt::format("layer {}: {:.1f} s", id, layer.seconds),
                              {{"layer_id", id},
                               {"tokens", layer.tokens},
                               {"seconds", layer.seconds},
                               {"bytes_read", layer.bytes_read}});
  };
  context.progress.Begin("observing", static_cast<int64_t>(opened.num_layers()),
                         static_cast<int64_t>(job.finished_layers()));
  {
    const auto time = times.Measure("loop");
    RunCalibration(input, job, hooks);
  }
  context.progress.End();
  const Json weights = DigestsOf(model_json, opened, context, times).at("weights");
  const DeviceMemory memory = QueryMemory(input.device);
  const Json timings = {{"total_seconds", seconds()},
                        {"peak_memory_bytes", memory.peak},
                        {"weight_bytes_read", weights_read},
                        {"phases", times.seconds()}};
  PublishShard(job, place, share, run, weights, timings, places.output);
  context.log.Info("done",
                   fmt::format("{:.1f} s, peak memory {:.2f} GB ({})", seconds(),
                               static_cast<double>(memory.peak) / 1e9,
                               input.device.is_cpu() ? "resident" : "on the GPU"),
                   timings);
  return Made(places, share);
}

}  // namespace oscar
