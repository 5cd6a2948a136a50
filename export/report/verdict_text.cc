// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/verdict_text.h"

#include <fmt/format.h>

#include "export/measures/report.h"

namespace oscar {

Json VerdictText(const Json& exact_arm, bool builtin) {
  if (!exact_arm.contains("own_words")) return nullptr;
  const double text = exact_arm.at("text").at("perplexity").get<double>(),
               own = exact_arm.at("own_words").at("perplexity").get<double>();
  const double ratio = text / own;
  if (!builtin) {
    return {{"member", "text"},
            {"perplexity_ratio", ratio},
            {"reason", "the text was given by the user"}};
  }
  const bool foreign = ratio > measures::kForeignText;
  return {
      {"member", foreign ? "own_words" : "text"},
      {"perplexity_ratio", ratio},
      {"reason", fmt::format("the built-in text has {:.2f} times the perplexity of the model's own "
                             "words, {} {}{}",
                             ratio, foreign ? "more than" : "at most", measures::kForeignText,
                             foreign ? ", so it is not typical text for this model" : "")}};
}

Json ArmOfVerdict(const Json& validation, Json arm) {
  const auto found = validation.find("verdict_text");
  const std::string member =
      found == validation.end() ? "text" : JsonString(*found, "member", "verdict_text");
  if (member != "text" && arm.contains(member)) arm["text"] = arm.at(member);
  return arm;
}

}  // namespace oscar
