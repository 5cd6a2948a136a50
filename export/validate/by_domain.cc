// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/by_domain.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "export/evaluate/bootstrap.h"
#include "export/validate/piece_sums.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// Members of an arm that store pieces. The first two are measured on texts, which have domains.
constexpr const char* kMembers[] = {"local", "text", "own_words"};
constexpr size_t kOfTexts = 2;

using Sequences = std::map<int64_t, std::vector<RatioUnit>>;  // the pieces of each sequence

Sequences TakePieces(Json& holder) {
  Sequences sequences;
  for (const Json& piece : holder.at(kPieces))
    sequences[piece.at(0)].push_back({piece.at(2), piece.at(3)});
  holder.erase(kPieces);
  return sequences;
}

// Subtracts the sum of the same piece in `headline` from each piece of `arm`.
Sequences Less(Sequences arm, const Sequences& headline) {
  for (auto& [sequence, pieces] : arm) {
    const std::vector<RatioUnit>& others = headline.at(sequence);
    OSCAR_CHECK_EQ(pieces.size(), others.size());
    for (size_t i = 0; i < pieces.size(); ++i) {
      OSCAR_CHECK(pieces[i].weight == others[i].weight);
      pieces[i].sum -= others[i].sum;
    }
  }
  return arm;
}

struct Domain {
  std::string name;
  std::vector<int64_t> sequences;
};

Sequences In(const Domain& domain, const Sequences& all) {
  Sequences in_domain;
  for (const int64_t sequence : domain.sequences)
    if (const auto found = all.find(sequence); found != all.end()) in_domain.insert(*found);
  return in_domain;
}

// Returns the mean and its interval, or nothing if there are no rows.
std::optional<measures::KlEstimate> EstimateOf(const Sequences& sequences,
                                               const BootstrapOptions& options) {
  RatioUnit total;
  std::vector<std::vector<RatioUnit>> groups;
  for (const auto& [sequence, pieces] : sequences) {
    groups.push_back(pieces);
    for (const RatioUnit& piece : pieces) {
      total.sum += piece.sum;
      total.weight += piece.weight;
    }
  }
  if (total.weight == 0) return std::nullopt;
  return measures::KlEstimate{static_cast<int64_t>(total.weight), total.sum / total.weight,
                              BootstrapGroups(groups, options)};
}

std::vector<Domain> DomainsOf(const Json& names) {
  std::vector<Domain> domains;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = names[i];
    auto found = std::ranges::find(domains, name, &Domain::name);
    if (found == domains.end()) found = domains.insert(found, {name, {}});
    found->sequences.push_back(static_cast<int64_t>(i));
  }
  if (domains.size() < 2) domains.clear();
  return domains;
}

}  // namespace

void FinishArms(Json& validation) {
  const Json& settings = validation.at("settings");
  const BootstrapOptions bootstrap{.resamples = settings.at("bootstrap"),
                                   .seed = settings.at("seed")};
  const std::vector<Domain> domains = DomainsOf(validation.value(kTextDomains, Json::array()));
  validation.erase(kTextDomains);
  Json& arms = validation.at("arms");
  std::vector<std::map<std::string, Sequences>> pieces(arms.size());  // by member
  size_t headline = 0;
  for (size_t i = 0; i < arms.size(); ++i) {
    if (arms[i].at("name") == validation.at("headline_arm")) headline = i;
    if (arms[i].contains("end_to_end")) arms[i]["end_to_end"].erase(kPieces);
    for (const char* member : kMembers)
      if (arms[i].contains(member)) pieces[i][member] = TakePieces(arms[i][member]);
  }
  const auto add = [&](Json& json, const Json::json_pointer& at, const Sequences& sequences) {
    if (const auto estimate = EstimateOf(sequences, bootstrap)) json[at] = *estimate;
  };
  const Json::json_pointer own, to_headline("/behind");
  for (size_t i = 0; i < arms.size(); ++i) {
    std::map<std::string, Sequences> behind;
    for (const auto& [member, sequences] : pieces[i]) {
      if (i == headline || !pieces[headline].contains(member)) continue;
      behind[member] = Less(sequences, pieces[headline].at(member));
      add(arms[i], to_headline / member, behind[member]);
    }
    for (const Domain& domain : domains) {
      Json row = {{"domain", domain.name}};
      for (size_t m = 0; m < kOfTexts; ++m) {
        const char* member = kMembers[m];
        if (pieces[i].contains(member)) add(row, own / member, In(domain, pieces[i].at(member)));
        if (behind.contains(member)) add(row, to_headline / member, In(domain, behind.at(member)));
      }
      arms[i]["by_domain"].push_back(std::move(row));
    }
  }
}

}  // namespace oscar
