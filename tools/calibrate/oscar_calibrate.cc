// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// oscar-calibrate: turns a model, or a dump of one, into a verified rotation artifact.
#include <algorithm>
#include <memory>
#include <string>

#include "calib/run/plan.h"
#include "linalg/base/error.h"
#include "tools/calibrate/calibrate_options.h"
#include "tools/calibrate/calibrate_rank.h"
#include "tools/calibrate/calibrate_run.h"
#include "tools/calibrate/calibrate_shard.h"
#include "tools/calibrate/calibrate_subject.h"
#include "tools/calibrate/zoo_hint.h"
#include "tools/cli/command.h"
#include "tools/doctor/doctor.h"
#include "tools/input/job_options.h"

namespace oscar {
namespace {

CommandResult Calibrate(const CalibrateOptions& options, CommandContext& context) {
  if (MergesArtifacts(options)) return MergeMoments(options, context);
  CheckArguments(options);
  if (options.ranks.nodes > 1 && !context.dry_run)
    throw UsageError("--nodes only affects a plan; also give --dry-run");
  const bool makes = !context.dry_run && (options.show_samples == 0 || options.self.tokens > 0);
  const std::unique_ptr<RankGroup> group =
      makes ? JoinRanks(options.ranks, options.model.device, context)
            : std::make_unique<RankGroup>();
  try {
    CheckRanks(options, group->size());
    if (group->rank() != 0) return RunRank(options, *group, context);
    const Places places = makes ? PlacesOf(options) : Places();
    if (options.dump.from.empty()) {
      if (const std::string hint = ZooHint(options.model.model); !hint.empty())
        context.log.Info("zoo", hint);
    }
    try {
      if (!options.shard.empty()) return RunShard(options, places, context);
      return RunToArtifact(options, places, *group, context);
    } catch (const OtherRun& error) {
      RefuseOtherRun(places.job, context.config, error);
    }
  } catch (const std::exception&) {
    EndJob(*group);
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
