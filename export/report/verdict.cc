// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "export/report/capacity.h"
#include "export/report/verdict_text.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

constexpr int kFewRows = 1000;  // with fewer rows or tokens, the verdict calls its numbers rough

struct Measured {
  double mean = 0;
  std::optional<std::pair<double, double>> interval;
};

// Reads an object with "mean" and an optional "interval".
Measured EstimateOf(const Record& estimate) {
  Measured measured{estimate["mean"].Number(), std::nullopt};
  if (estimate.Has("interval"))
    measured.interval = {estimate["interval"][0].Number(), estimate["interval"][1].Number()};
  return measured;
}

// Returns the KL by which arms are compared. `text`: the arm's member whose next-token KL decides
// the verdict; empty: attention-KL decides.
Measured KlOf(const Record& arm, std::string_view text) {
  return EstimateOf(text.empty() ? arm["local"]["kl"] : arm[text]["token_kl"]);
}

std::string Text(const Measured& kl) {
  if (!kl.interval) return fmt::format("{:.4f}", kl.mean);
  return fmt::format("{:.4f} ({:.4f} to {:.4f})", kl.mean, kl.interval->first, kl.interval->second);
}

// Returns the KL of `of` (an arm, or one domain of an arm) minus the headline's on the same text,
// with the interval of this paired difference. Returns nothing if it was not measured.
std::optional<Measured> BehindOf(const Record& of, std::string_view member) {
  if (!of.Has("behind") || !of["behind"].Has(member) || !of["behind"][member].Has("interval"))
    return {};
  return EstimateOf(of["behind"][member]);
}

enum class Order { kBetter, kWorse, kAlike };  // the headline arm, compared with another
Order OrderOf(const Measured& behind) {
  if (behind.interval->first > 0) return Order::kBetter;
  return behind.interval->second < 0 ? Order::kWorse : Order::kAlike;
}

// Returns the arm with the lowest KL among the `wanted` ones. If some of these have windows,
// considers only these, because the headline has windows.
std::optional<Record> Least(const std::vector<Record>& arms, std::string_view text,
                            const auto& wanted) {
  std::optional<Record> least;
  for (const bool windows : {true, false}) {
    for (const Record& arm : arms) {
      if (!wanted(arm) || arm["windows"].True() != windows || (!text.empty() && !arm.Has(text)))
        continue;
      if (!least || KlOf(arm, text).mean < KlOf(*least, text).mean) least.emplace(arm);
    }
    if (least) return least;
  }
  return least;
}

std::string Against(const std::optional<Measured>& behind, std::string_view what) {
  if (!behind)
    return fmt::format("not compared with {}, because there is no paired interval", what);
  const auto& [low, high] = *behind->interval;
  switch (OrderOf(*behind)) {
    case Order::kBetter:
      return fmt::format("better than {} by {}", what, Text(*behind));
    case Order::kWorse:
      return fmt::format("worse than {} by {}", what, Text({-behind->mean, {{-high, -low}}}));
    case Order::kAlike:
      return fmt::format("no better than {}: the difference is {}", what, Text(*behind));
  }
  return {};
}

// An arm with which the headline arm is compared.
struct Rival {
  Record arm;
  std::string what;
};

std::string Joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

// Says on which domains the headline is better than, no better than or worse than a rival. Empty if
// it is neither better nor worse on any domain.
std::string DomainsAgainst(const Rival& rival, const char* member) {
  std::vector<std::string> better, alike, worse;
  for (const Record& domain : rival.arm["by_domain"].Items()) {
    const std::optional<Measured> behind = BehindOf(domain, member);
    if (!behind) continue;
    const Order order = OrderOf(*behind);
    (order == Order::kBetter  ? better
     : order == Order::kWorse ? worse
                              : alike)
        .push_back(domain["domain"].Text());
  }
  const size_t all = better.size() + alike.size() + worse.size();
  if (better.empty() && worse.empty()) return {};
  if (better.size() == all) return fmt::format(" Better than {} on each of them.", rival.what);
  std::string text =
      better.empty() ? fmt::format(" Not better than {} on any", rival.what)
                     : fmt::format(" Better than {} on {} of {}", rival.what, better.size(), all);
  if (!better.empty() && 2 * better.size() <= all)
    text += fmt::format(" only ({})", Joined(better));
  if (!alike.empty() && !better.empty()) text += fmt::format("; no better on {}", Joined(alike));
  if (!worse.empty()) text += fmt::format("; worse on {}", Joined(worse));
  return text + ".";
}

std::string DomainsText(const Record& headline, const std::vector<Rival>& rivals) {
  if (!headline.Has("by_domain")) return {};
  const char* member = headline.Has("text") ? "text" : "local";
  std::optional<Record> worst;
  size_t domains = 0;
  for (const Record& domain : headline["by_domain"].Items()) {
    if (!domain.Has(member)) continue;
    ++domains;
    if (!worst || domain[member]["mean"].Number() > (*worst)[member]["mean"].Number())
      worst.emplace(domain);
  }
  if (!worst) return {};
  std::string text =
      fmt::format("Among {} domains of the text, it is worst on {}: {} KL {}.", domains,
                  (*worst)["domain"].Text(), headline.Has("text") ? "next-token" : "attention",
                  Text(EstimateOf((*worst)[member])));
  for (const Rival& rival : rivals)
    if (rival.arm.Has("by_domain")) text += DomainsAgainst(rival, member);
  return text;
}

// Warns if few rows see a quantized key.
std::string CautionText(const Record& headline) {
  const double rows = headline["local"]["rows"].Number();
  std::string few;
  if (rows < kFewRows) few = fmt::format("{:.0f} query rows of attention", rows);
  for (const auto& [member, name] :
       {std::pair("text", "of the text"), std::pair("own_words", "of its own words")}) {
    if (!headline.Has(member)) continue;
    const double tokens = headline[member]["scored_tokens"].Number();
    if (tokens < kFewRows)
      few += fmt::format("{}{:.0f} next tokens {}", few.empty() ? "" : ", ", tokens, name);
  }
  if (few.empty()) return {};
  return fmt::format(
      "Only few rows see a quantized key: {}; with fewer than {}, the results are only rough.", few,
      kFewRows);
}

}  // namespace

std::string VerdictMember(const Record& validation) {
  return validation.Has("verdict_text") ? validation["verdict_text"]["member"].Text() : "text";
}

Verdict VerdictOf(const Record& validation) {
  const std::vector<Record> arms = validation["arms"].Items();
  const std::string name = validation["headline_arm"].Text();
  const auto headline =
      std::ranges::find_if(arms, [&](const Record& arm) { return arm["name"].Text() == name; });
  OSCAR_CHECK(headline != arms.end());  // CheckReport has checked this
  std::string member = VerdictMember(validation);
  if (!headline->Has(member)) member.clear();
  const Measured ours = KlOf(*headline, member);
  const auto method_is = [](const Record& arm, std::string_view method) {
    return arm["method"].Text() == method;
  };
  std::vector<Rival> rivals;
  const auto add = [&](const std::optional<Record>& arm, const std::string& what) {
    if (arm && (*arm)["name"].Text() != name) rivals.push_back({*arm, what});
  };
  add(Least(arms, member, [&](const Record& arm) { return method_is(arm, "hadamard"); }),
      "a Hadamard rotation");
  add(Least(arms, member, [&](const Record& arm) { return method_is(arm, "oscar_shared"); }),
      "OSCAR as published");
  // The identity is also a null control, but rotates nothing.
  const auto control = Least(arms, member, [&](const Record& arm) {
    return arm["null_control"].True() && !method_is(arm, "identity");
  });
  add(control, !control || method_is(*control, "random_rotation")
                   ? "a random rotation"
                   : fmt::format("the null control {}", (*control)["method"].Text()));

  Verdict verdict;
  verdict.fit =
      fmt::format("{}: {} KL {}", name, member.empty() ? "attention" : "next-token", Text(ours));
  for (size_t i = 0; i < rivals.size(); ++i) {
    verdict.fit +=
        (i == 0 ? "; here " : "; ") +
        Against(BehindOf(rivals[i].arm, member.empty() ? "local" : member), rivals[i].what);
  }
  verdict.fit += ".";
  verdict.domains = DomainsText(*headline, rivals);
  verdict.caution = CautionText(*headline);
  verdict.remedy = WhatWouldPass(validation);
  if (validation.Has("settings") && validation["settings"].Has("left_out"))
    verdict.left_out = validation["settings"]["left_out"].Text();

  if (member.empty()) return verdict;
  const Record text = (*headline)[member];
  verdict.notice = fmt::format(
      "Effects that users notice: perplexity x {:.4f}, the same most likely next token in {:.1f} % "
      "of cases",
      text["ppl_ratio"].Number(), 100 * text["top1_agreement"].Number());
  const auto exact =
      std::ranges::find_if(arms, [&](const Record& arm) { return method_is(arm, "bf16"); });
  if (headline->Has("needle") && exact != arms.end() && exact->Has("needle")) {
    verdict.notice += fmt::format(", {:.0f} % recall instead of {:.0f} % with an exact cache",
                                  100 * (*headline)["needle"]["accuracy"].Number(),
                                  100 * (*exact)["needle"]["accuracy"].Number());
  }
  verdict.notice += ".";
  return verdict;
}

Verdict VerdictOf(const Json& validation) {
  const JsonText text(validation, "validation");
  return VerdictOf(Record(text.root()));
}

}  // namespace oscar
