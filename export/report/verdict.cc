// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "export/report/verdict_text.h"
#include "linalg/check.h"

namespace oscar {
namespace {

struct Measured {
  double mean = 0;
  std::optional<std::pair<double, double>> interval;
};

// `text`: the member of arms that the verdict rests on; empty: none has one, and attention counts.
Measured KlOf(const Record& arm, std::string_view text) {
  const Record kl = text.empty() ? arm["local"]["kl"] : arm[text]["token_kl"];
  Measured measured{kl["mean"].Number(), std::nullopt};
  if (kl.Has("interval"))
    measured.interval = {kl["interval"][0].Number(), kl["interval"][1].Number()};
  return measured;
}

std::string Text(const Measured& kl) {
  if (!kl.interval) return fmt::format("{:.4f}", kl.mean);
  return fmt::format("{:.4f} ({:.4f} to {:.4f})", kl.mean, kl.interval->first, kl.interval->second);
}

enum class Order { kBetter, kWorse, kAlike, kUnknown };
Order Compare(const Measured& ours, const Measured& other) {
  if (!ours.interval || !other.interval) return Order::kUnknown;
  if (ours.interval->second < other.interval->first) return Order::kBetter;
  if (ours.interval->first > other.interval->second) return Order::kWorse;
  return Order::kAlike;
}

// Of arms that are `wanted` the one with the least KL, among those with windows where some have
// them: the headline has.
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

std::string Against(Order order, std::string_view what) {
  switch (order) {
    case Order::kBetter:
      return fmt::format("better than {}", what);
    case Order::kWorse:
      return fmt::format("worse than {}", what);
    case Order::kAlike:
      return fmt::format("no better than {}", what);
    case Order::kUnknown:
      return fmt::format("not told apart from {}, as no intervals were made", what);
  }
  return {};
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
  OSCAR_CHECK(headline != arms.end());  // CheckReport
  std::string member = VerdictMember(validation);
  if (!headline->Has(member)) member.clear();
  const Measured ours = KlOf(*headline, member);
  const auto method_is = [](const Record& arm, std::string_view method) {
    return arm["method"].Text() == method;
  };
  const auto hadamard =
      Least(arms, member, [&](const Record& arm) { return method_is(arm, "hadamard"); });
  // A matrix of ones knows nothing either, and rotates nothing.
  const auto control = Least(arms, member, [&](const Record& arm) {
    return arm["null_control"].True() && !method_is(arm, "identity");
  });

  Verdict verdict;
  verdict.fit =
      fmt::format("{}: {} KL {}", name, member.empty() ? "attention" : "next-token", Text(ours));
  std::vector<std::string> parts;
  if (hadamard && (*hadamard)["name"].Text() != name) {
    const Measured kl = KlOf(*hadamard, member);
    parts.push_back(
        fmt::format("{}, {}", Against(Compare(ours, kl), "a Hadamard rotation"), Text(kl)));
  }
  if (control && (*control)["name"].Text() != name) {
    const Measured kl = KlOf(*control, member);
    const std::string what = method_is(*control, "random_rotation")
                                 ? "a random rotation"
                                 : fmt::format("the null control {}", (*control)["method"].Text());
    parts.push_back(fmt::format("{}, {}", Against(Compare(ours, kl), what), Text(kl)));
  }
  for (size_t i = 0; i < parts.size(); ++i) verdict.fit += (i == 0 ? "; here " : "; ") + parts[i];
  verdict.fit += ".";

  if (member.empty()) return verdict;
  const Record text = (*headline)[member];
  verdict.notice = fmt::format(
      "A user will notice: perplexity x {:.4f}, the same most likely next token in {:.1f} % of "
      "cases",
      text["ppl_ratio"].Number(), 100 * text["top1_agreement"].Number());
  const auto exact =
      std::ranges::find_if(arms, [&](const Record& arm) { return method_is(arm, "bf16"); });
  if (headline->Has("needle") && exact != arms.end() && exact->Has("needle")) {
    verdict.notice += fmt::format(", {:.0f} % of what it is asked to recall, {:.0f} % untouched",
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
