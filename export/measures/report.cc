// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks those members of a report that must agree.
#include "export/measures/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "capture/files/quote.h"
#include "export/measures/table.h"

namespace oscar::measures {
bool Holds(const GateCheck& check) {
  if (!check.value) return false;
  if (check.op == "<") return *check.value < check.limit;
  if (check.op == "<=") return *check.value <= check.limit;
  return check.op == ">" ? *check.value > check.limit : *check.value >= check.limit;
}

void Verify(const Spot& spot, const Side& side) {
  if (side.spectrum.has_value() != side.spectrum_ranks.has_value())
    spot.Refuse("expected both \"spectrum\" and \"spectrum_ranks\", or neither");
  if (side.spectrum && side.spectrum->size() != side.spectrum_ranks->size()) {
    spot.Refuse(fmt::format("\"spectrum\" has {} values and \"spectrum_ranks\" has {}",
                            side.spectrum->size(), side.spectrum_ranks->size()));
  }
}

void Verify(const Spot& spot, const Layer& layer) {
  const size_t candidates = layer.clip_candidates ? layer.clip_candidates->size() : 0;
  ForEachField<Sides>([&](std::string_view name, auto pointer) {
    const std::optional<Side>& side = layer.sides.*pointer;
    if (!side || !side->clip_error || side->clip_error->empty()) return;
    if (side->clip_error->size() == candidates) return;
    spot.Refuse(fmt::format("has {} values of \"clip_error\" for {} \"clip_candidates\"",
                            side->clip_error->size(), candidates),
                fmt::format("/sides/{}", name));
  });
}

void Verify(const Spot& spot, const GateCheck& check) {
  if (check.value.has_value() == check.reason.has_value())
    spot.Refuse("a check must have either a \"value\" or a \"reason\" why there is none");
  if (check.op != "<" && check.op != "<=" && check.op != ">" && check.op != ">=")
    spot.Refuse(fmt::format("expected one of < <= > >=, found {}", Quoted(check.op, 20)), "/op");
  const bool holds = Holds(check);
  if (check.passed == holds) return;
  spot.Refuse(fmt::format("is {}, but {} {} {} is {}", !holds,
                          check.value ? fmt::format("{}", *check.value) : "\"nothing\"", check.op,
                          check.limit, holds),
              "/passed");
}

void Verify(const Spot& spot, const Gate& gate) {
  const bool all = std::ranges::all_of(gate.checks, &GateCheck::passed);
  if (gate.checks.empty()) spot.Refuse("the gate has no checks", "/checks");
  if (gate.passed != all)
    spot.Refuse(fmt::format("is {}, but its checks give {}", !all, all), "/passed");
}

void Verify(const Spot& spot, const VerdictText& verdict) {
  if (verdict.member != "text" && verdict.member != "own_words")
    spot.Refuse(R"(expected "text" or "own_words")", "/member");
  if (verdict.member == "own_words" && verdict.perplexity_ratio <= kForeignText)
    spot.Refuse("the text is not foreign to the model, so the verdict must be based on it",
                "/member");
}

void Verify(const Spot& spot, const Validation& validation) {
  if (validation.source != "model" && validation.source != "dump") {
    spot.Refuse(
        fmt::format("expected \"model\" or \"dump\", found {}", Quoted(validation.source, 40)),
        "/source");
  }
  std::map<std::string, const Arm*> arms;
  for (size_t i = 0; i < validation.arms.size(); ++i) {
    const Arm& arm = validation.arms[i];
    if (!arms.emplace(arm.name, &arm).second)
      spot.Refuse(fmt::format("two configurations are named {}", Quoted(arm.name)),
                  fmt::format("/arms/{}/name", i));
  }
  const auto must_be_an_arm = [&](const std::string& name, const char* member) {
    if (!arms.contains(name))
      spot.Refuse(fmt::format("no configuration is named {}", Quoted(name)), member);
  };
  must_be_an_arm(validation.headline_arm, "/headline_arm");
  if (validation.gate) must_be_an_arm(validation.gate->arm, "/gate/arm");
  // A simulated runtime's losses must equal the differences between its numbers and its ideal
  // arm's.
  for (size_t i = 0; i < validation.arms.size(); ++i) {
    const Arm& arm = validation.arms[i];
    if (!arm.ideal) continue;
    const auto other = arms.find(arm.ideal->arm);
    const std::string place = fmt::format("/arms/{}/ideal", i);
    if (other == arms.end() || other->second == &arm)
      spot.Refuse(fmt::format("no other configuration is named {}", Quoted(arm.ideal->arm)),
                  place + "/arm");
    const Json says = *arm.ideal, expected = RuntimeLoss(arm, *other->second);
    if (says != expected)
      spot.Refuse(
          fmt::format("is {}, but the configurations give {}", says.dump(), expected.dump()),
          place);
  }
}

}  // namespace oscar::measures
