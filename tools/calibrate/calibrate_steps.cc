// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/calibrate/calibrate_steps.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "calib/run/provenance.h"
#include "capture/model/run/device.h"
#include "capture/text/data/samples.h"
#include "tools/calibrate/calibrate_text.h"
#include "tools/calibrate/next_token_plan.h"
#include "tools/cli/build_info.h"

namespace oscar {

std::optional<Opened> Open(const CalibrateOptions& options, RankGroup& group,
                           CommandContext& context, PhaseTimes& times) {
  const auto time = times.Measure("model and data opened");
  const std::future<void> starting = StartGpu(options.model.device);
  Opened opened;
  if (!options.dump.from.empty()) {
    opened.subject = OfDump(options, context.log);
  } else {
    const auto model =
        std::make_shared<ModelInput>(OpenForCalibration(options, context.log, context.dry_run));
    if (!context.dry_run && options.show_samples == 0 && group.rank() == 0)
      CheckCalibrationOfOwnText(options, model);
    opened.own_text = context.dry_run ? PlanOwnText(options, *model)
                                      : WriteOwnText(options, group, context, *model);
    if (options.show_samples > 0) {
      context.out << ShowSamples(model->data, model->tokenizer.get(), options.show_samples);
      return std::nullopt;
    }
    opened.subject = OfModel(options, model, group, ShardsToMerge(options));
    opened.model = model;
  }
  opened.split = CheckCalibration(opened.input());
  CheckBitPrice(opened.input());
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

CommandResult ShowPlan(const CalibrateOptions& options, const Opened& opened,
                       const CalibrationPlan& plan, CommandContext& context) {
  const CalibrationInput& input = opened.input();
  context.log.Info("plan", "--dry-run: nothing is written", PlanJson(input, plan));
  context.out << PlanText(input, plan) << opened.own_text.plan;
  Json json = PlanJson(input, plan);
  const std::vector<RankPlan> ranks = PlanAllRanks(options, opened.model, input, plan);
  if (!ranks.empty()) {
    context.out << RankPlanText(ranks);
    json["ranks"] = RankPlanJson(ranks);
  }
  return {.json = json};
}

Json FingerprintOf(const Opened& opened) {
  return Fingerprint(opened.subject.fingerprint(), opened.subject.data, opened.input(),
                     opened.split, ThisBuild().version);
}

JobDirectory JobOf(const CalibrateOptions& options, Opened& opened, const Places& places,
                   const Json& fingerprint) {
  std::optional<JobLock>& lock = opened.own_text.lock;
  const bool restart = options.restart && !lock;
  // All layers of a run must come from the same files.
  Json own = fingerprint;
  own["model"]["files"] = opened.subject.identities();
  return JobDirectory(lock ? std::move(*lock) : JobLock(places.job), own, restart);
}

void SayResumed(const JobDirectory& job, size_t num_layers, CommandContext& context) {
  if (job.finished_layers() == 0) return;
  context.log.Info("resume", fmt::format("resuming: {} of {} layers are done",
                                         job.finished_layers(), num_layers));
}

CalibrationHooks HooksOf(CommandContext& context, PhaseTimes& times, uint64_t* weights_read) {
  return {.on_layer = {},
          .on_experts =
              [&context](const LayerSpec& layer, const std::vector<int64_t>& tokens) {
                context.log.Info("experts", ExpertsLine(layer, tokens),
                                 {{"layer_id", layer.layer_id}, {"tokens_per_expert", tokens}});
              },
          .stop_requested = [&context] { return context.stop.requested(); },
          .on_weights_read = [weights_read](uint64_t bytes) { *weights_read = bytes; },
          .times = &times};
}

Json DigestsOf(std::future<Json>& model_json, const Opened& opened, CommandContext& context,
               PhaseTimes& times) {
  opened.subject.turns->Reach(1);
  const auto time = times.Measure("digests awaited");
  if (model_json.wait_for(std::chrono::seconds(1)) != std::future_status::ready) {
    context.log.Info("digests", "the layers are done; computing the digests of the model's files");
  }
  return model_json.get();
}

}  // namespace oscar
