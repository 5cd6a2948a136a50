// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Which validation may stand in an artifact: the one of record, whose headline is the artifact's
// own choice, measured as the artifact says that it is to be served. Everything else is a
// comparison, which says something about methods and nothing about what ships. oscar-validate goes
// by this rule before it measures, a zoo when it is handed a report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

// Clip ratios of methods that bring none of their own: upstream's recipe.
inline constexpr double kOthersKClip = 0.96, kOthersVClip = 0.92;

// Tokens that a validation of record scores at least.
inline constexpr int64_t kLeastScoredTokens = 1024;

// The arms that a verdict on this artifact may be about, best first: the choice that it ships for
// its consumer, as that runtime computes and as it stands; of an artifact without choices OSCAR
// itself. `report` is its report.json, with a validation or without.
std::vector<std::string> OwnArms(const Json& report);

// The facts of a validation that decide; they are known before anything is measured.
struct ValidationFacts {
  std::string source;  // "model" or "dump"
  std::string headline_arm;
  int64_t sink_tokens = 0, recent_tokens = 0;
  int64_t quant_group_size = 0;  // values; 0: the head
  double others_k = kOthersKClip, others_v = kOthersVClip;
  std::string cache_dtype = "bf16";
  bool own_model = true;        // the artifact was calibrated on it
  bool predictions = true;      // of tokens, not attention alone
  int64_t scored_tokens = 0;    // 0 where there are no predictions
  int64_t longest_context = 0;  // tokens
};
// Returns those of a finished validation. Throws InputError naming `what` where a member is
// missing.
ValidationFacts FactsOf(const Json& validation, std::string_view what);

// Tokens that the artifact recommends to keep exact, and the size of its groups: "serving".
struct ServingSettings {
  int64_t sink_tokens = 64, recent_tokens = 256, quant_group_size = 0;
};
ServingSettings ServingOf(const Json& report, std::string_view what);

// Why a validation of the artifact of `report` is none of record, a phrase for each reason; empty
// if it is.
std::vector<std::string> WhyNotOfRecord(const ValidationFacts& facts, const Json& report,
                                        std::string_view what);

}  // namespace oscar
