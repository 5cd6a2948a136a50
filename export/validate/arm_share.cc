// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/arm_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "export/validate/by_domain.h"
#include "linalg/base/error.h"

namespace oscar {

std::vector<size_t> ShareOfArms(const ArmsOfRank& share, size_t arms,
                                const std::vector<size_t>& recall) {
  const auto ranks = static_cast<size_t>(share.ranks);
  if (ranks > 1 && arms < ranks + 1) {
    throw UsageError(
        fmt::format("{} ranks were requested, but there are only {} configurations besides the "
                    "exact model to divide among them; use at most one rank for each",
                    ranks, arms - 1));
  }
  std::vector<size_t> order = recall;  // in the order in which they are assigned
  for (size_t arm = 0; arm < arms; ++arm)
    if (std::ranges::find(recall, arm) == recall.end()) order.push_back(arm);
  std::erase(order, size_t{0});
  std::vector<size_t> own = {0};
  for (size_t i = static_cast<size_t>(share.rank); i < order.size(); i += ranks)
    own.push_back(order[i]);
  std::ranges::sort(own);
  return own;
}

Json MergeArms(std::vector<Json> validations) {
  Json merged = validations.at(0);
  std::map<size_t, Json> arms;
  for (size_t rank = 0; rank < validations.size(); ++rank) {
    Json& of_rank = validations[rank];
    const Json places = of_rank.at(kArmPlaces);
    for (size_t i = 0; i < places.size(); ++i) {
      Json& own = of_rank.at("arms")[i];
      const auto [arm, is_new] = arms.try_emplace(places[i].get<size_t>(), own);
      if (!is_new && arm->second != own) {
        throw InputError(
            fmt::format("rank {} measured different numbers for the exact model than rank 0; its "
                        "memory or GPU is damaged, or computes differently",
                        rank));
      }
    }
    if (of_rank.contains("by_distance")) merged["by_distance"] = of_rank.at("by_distance");
    merged.at("settings").at("clip").update(of_rank.at("settings").at("clip"));
  }
  merged.erase(kArmPlaces);
  merged["arms"] = merged["settings"]["arms"] = Json::array();
  for (auto& [place, arm] : arms) {
    merged["settings"]["arms"].push_back(arm.at("name"));
    merged["arms"].push_back(std::move(arm));
  }
  FinishArms(merged);
  return merged;
}

}  // namespace oscar
