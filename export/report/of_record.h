// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Decides which validation an artifact may contain. This is the validation of record: among other
// conditions, its headline is the artifact's own choice, and it was measured with the serving
// settings that the artifact recommends. Any other validation is a comparison, which says something
// about methods but not about the artifact. oscar-validate applies this rule before it measures,
// and a zoo when it receives a report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar {

// Clip ratios for methods without their own: upstream's recipe.
inline constexpr double kOthersKClip = 0.96, kOthersVClip = 0.92;

// The fewest tokens that a validation of record must score.
inline constexpr int64_t kLeastScoredTokens = 1024;

// Returns the arms (configurations) that may represent this artifact in a verdict, best first. If
// the artifact has an automatic choice, these are the choice as computed by the runtime that it is
// for, and the choice as calibrated. Otherwise it is OSCAR with clipping and windows. `report`: the
// artifact's report.json, with or without a validation.
std::vector<std::string> OwnArms(const Json& report);

// The facts that decide whether a validation is of record, known before anything is measured.
struct ValidationFacts {
  std::string source;  // "model" or "dump"
  std::string headline_arm;
  int64_t sink_tokens = 0, recent_tokens = 0;
  int64_t quant_group_size = 0;  // values; 0: the whole head
  double others_k = kOthersKClip, others_v = kOthersVClip;
  std::string cache_dtype = "bf16";
  bool own_model = true;        // the artifact was calibrated on it
  bool predictions = true;      // includes next-token predictions, not only attention
  int64_t scored_tokens = 0;    // 0 without predictions
  int64_t longest_context = 0;  // tokens
};
// Returns the facts of a finished validation. Throws InputError naming `what` if a member is
// missing.
ValidationFacts FactsOf(const Json& validation, std::string_view what);

// The exact tokens and the group size that the artifact recommends in "serving".
struct ServingSettings {
  int64_t sink_tokens = 64, recent_tokens = 256, quant_group_size = 0;
};
ServingSettings ServingOf(const Json& report, std::string_view what);

// Returns the reasons why a validation of the artifact of `report` is not of record, one phrase
// each. Empty if it is of record.
std::vector<std::string> WhyNotOfRecord(const ValidationFacts& facts, const Json& report,
                                        std::string_view what);

}  // namespace oscar
