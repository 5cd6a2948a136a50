// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/of_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "capture/files/quote.h"

namespace oscar {

std::vector<std::string> OwnArms(const Json& report) {
  const auto consumer = "/serving/auto/for"_json_pointer;
  if (report.contains(consumer) && report.at(consumer).is_string()) {
    std::string runtime = report.at(consumer);
    std::ranges::replace(runtime, '-', '_');
    return {"runtime_" + runtime + "_auto", "auto+windows"};
  }
  // An artifact imported from shared rotations has one for all heads and none per head.
  const auto count = "/layers/0/sides/k/num_rotations"_json_pointer;
  const bool shared_alone = !report.contains("/layers/0/sides/k_shared"_json_pointer) &&
                            report.contains(count) && report.at(count) == 1;
  return {shared_alone ? "oscar_shared+clip+windows" : "oscar_per_head+clip+windows"};
}

ServingSettings ServingOf(const Json& report, std::string_view what) {
  const Json& serving = JsonMember(report, "serving", what);
  const ServingSettings usual;
  return {JsonInt(serving, "sink_tokens", usual.sink_tokens, what),
          JsonInt(serving, "recent_tokens", usual.recent_tokens, what),
          JsonInt(serving, "quant_group_size", usual.quant_group_size, what)};
}

ValidationFacts FactsOf(const Json& validation, std::string_view what) {
  ValidationFacts facts;
  facts.source = JsonString(validation, "source", what);
  facts.headline_arm = JsonString(validation, "headline_arm", what);
  const Json& settings = JsonMember(validation, "settings", what);
  facts.sink_tokens = JsonInt(settings, "sink_tokens", what);
  facts.recent_tokens = JsonInt(settings, "recent_tokens", what);
  facts.quant_group_size = JsonInt(settings, "quant_group_size", 0, what);
  facts.cache_dtype = JsonString(settings, "cache_dtype", facts.cache_dtype, what);
  if (settings.contains("clip")) {
    facts.others_k = JsonDouble(settings.at("clip"), "others_k", kOthersKClip, what);
    facts.others_v = JsonDouble(settings.at("clip"), "others_v", kOthersVClip, what);
  }
  facts.own_model = validation.contains("model") &&
                    JsonBool(validation.at("model"), "calibrated_on_it", true, what);
  facts.predictions = false;
  for (const Json& arm : JsonMember(validation, "arms", what)) {
    if (JsonString(arm, "name", what) != facts.headline_arm || !arm.contains("text")) continue;
    facts.predictions = true;
    facts.scored_tokens = JsonInt(arm.at("text"), "scored_tokens", what);
  }
  for (const Json& text : JsonMember(JsonMember(validation, "data", what), "texts", what))
    facts.longest_context = std::max(facts.longest_context, JsonInt(text, "length", what));
  return facts;
}

std::vector<std::string> WhyNotOfRecord(const ValidationFacts& facts, const Json& report,
                                        std::string_view what) {
  std::vector<std::string> reasons;
  const auto unless = [&](bool holds, const std::string& reason) {
    if (!holds) reasons.push_back(reason);
  };
  const std::vector<std::string> own = OwnArms(report);
  const ServingSettings serving = ServingOf(report, what);
  unless(
      std::ranges::find(own, facts.headline_arm) != own.end(),
      fmt::format("its headline is {}, but the artifact's own choice is {}",
                  Escaped(facts.headline_arm), Escaped(fmt::format("{}", fmt::join(own, " or ")))));
  unless(facts.source == "model", "it was measured on a dump, without predictions of the model");
  unless(facts.source != "model" || facts.predictions,
         "it measures only attention and no predictions");
  unless(facts.source != "model" || facts.own_model,
         "it ran on a model other than the one that the artifact was made from");
  unless(facts.sink_tokens == serving.sink_tokens && facts.recent_tokens == serving.recent_tokens,
         fmt::format(
             "it keeps {} first and {} recent tokens exact, but the artifact recommends {} and {}",
             facts.sink_tokens, facts.recent_tokens, serving.sink_tokens, serving.recent_tokens));
  unless(
      facts.quant_group_size == serving.quant_group_size,
      fmt::format(
          "its quantization groups have {} values, but the artifact's have {} (0: the whole head)",
          facts.quant_group_size, serving.quant_group_size));
  unless(facts.others_k == kOthersKClip && facts.others_v == kOthersVClip,
         fmt::format("it clips other methods at {} and {}, not at {} and {}", facts.others_k,
                     facts.others_v, kOthersKClip, kOthersVClip));
  unless(facts.cache_dtype == "bf16",
         "its keys and values are not rounded to bf16 before they are stored");
  unless(!facts.predictions || facts.scored_tokens >= kLeastScoredTokens,
         fmt::format("it scores {} tokens, but at least {} are needed", facts.scored_tokens,
                     kLeastScoredTokens));
  unless(facts.longest_context > facts.sink_tokens + facts.recent_tokens,
         fmt::format("its longest text has {} tokens and fits into the {} that are kept exact, so "
                     "nothing is quantized",
                     facts.longest_context, facts.sink_tokens + facts.recent_tokens));
  return reasons;
}

}  // namespace oscar
