// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/calibrate/calibrate_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <optional>
#include <string>

#include "calib/run/provenance.h"

namespace oscar {
namespace {

std::string WorkKey(int rank) { return fmt::format("work/{}", rank); }
std::string DigestsKey(int rank) { return fmt::format("digests/{}", rank); }

}  // namespace

std::vector<int> DigestingRanks(const RankGroup& group, const Opened& opened) {
  return FirstReaders(group, opened.subject.opened_files());
}

void CompareDigests(const RankGroup& group, const std::vector<int>& ranks, const Json& own) {
  for (const int rank : ranks) {
    if (rank == 0) continue;
    CheckSameWeights(fmt::format("rank {}", rank), Json::parse(group.Get(DigestsKey(rank))),
                     " than rank 0", own);
  }
}

Json WorkOfOthers(const RankGroup& group) {
  Json work = Json::array();
  for (int rank = 1; rank < group.size(); ++rank)
    work.push_back(Json::parse(group.Get(WorkKey(rank))));
  return work;
}

CommandResult RunRank(const CalibrateOptions& options, RankGroup& group, CommandContext& context) {
  PhaseTimes times;
  const std::optional<Opened> opened = Open(options, group, context, times);
  CheckSameOnAllRanks(group, FingerprintOf(*opened));
  const std::vector<int> digesting = DigestingRanks(group, *opened);
  std::future<Json> model_json;
  if (std::ranges::find(digesting, group.rank()) != digesting.end())
    model_json = std::async(std::launch::async, opened->subject.describe);
  const ReadTurns::Closing closing(*opened->subject.turns);
  uint64_t weights_read = 0;
  CalibrationHooks hooks = HooksOf(context, times, &weights_read);
  hooks.on_experts = {};  // rank 0 reports the experts of all ranks
  {
    const auto time = times.Measure("loop");
    NoJob none;
    RunCalibration(opened->input(), none, hooks);
  }
  (void)LossOfText(opened->input());
  opened->subject.turns->Reach(1);
  if (model_json.valid())
    group.Set(DigestsKey(group.rank()), model_json.get().at("weights").dump());
  const Json work = {{"weight_bytes_read", weights_read}, {"phases", times.seconds()}};
  group.Set(WorkKey(group.rank()), work.dump());
  return {};
}

}  // namespace oscar
