// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "capture/files/nearest.h"
#include "capture/files/quote.h"
#include "export/report/verdict_text.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

const Measure& FindMetric(std::string_view name, std::string_view check) {
  std::vector<std::string> names;
  for (const Measure& metric : GateMetrics()) {
    if (metric.name == name) return MeasureNamed(name);
    names.emplace_back(metric.name);
  }
  throw UsageError(fmt::format("gate {}: unknown metric {}; the nearest of {} metrics: {}",
                               Quoted(check), Quoted(name), names.size(), Nearest(name, names)));
}

GateCheck ParseCheck(std::string_view text) {
  const size_t op = text.find_first_of("<>=!");
  if (op == std::string_view::npos) {
    throw UsageError(fmt::format(
        "gate {}: expected a metric, then <, <=, > or >=, then a number, such as kl<=0.05",
        Quoted(text)));
  }
  const size_t after = std::min(text.find_first_not_of("<>=!", op), text.size());
  GateCheck check;
  check.op = std::string(text.substr(op, after - op));
  check.metric = std::string(FindMetric(text.substr(0, op), text).name);
  static constexpr std::string_view kOps[] = {"<", "<=", ">", ">="};
  if (std::find(std::begin(kOps), std::end(kOps), check.op) == std::end(kOps)) {
    throw UsageError(fmt::format("gate {}: operator {} is not one of <, <=, >, >=", Quoted(text),
                                 Quoted(check.op)));
  }
  const std::string_view number = text.substr(after);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), check.limit);
  if (error != std::errc() || end != number.data() + number.size() || !std::isfinite(check.limit)) {
    throw UsageError(
        fmt::format("gate {}: {} is not a finite number", Quoted(text), Quoted(number)));
  }
  return check;
}

// Returns the number at a dotted path; nullopt if any member of the path is missing.
std::optional<double> FindNumber(const Json& arm, std::string_view path, std::string_view what) {
  const Json* value = &arm;
  for (std::string_view rest = path; !rest.empty();) {
    const std::string_view key = rest.substr(0, rest.find('.'));
    rest.remove_prefix(std::min(rest.size(), key.size() + 1));
    if (!value->is_object()) {
      throw InputError(fmt::format("{}: {} cannot be read, because its path contains {}", what,
                                   path, value->type_name()));
    }
    const auto found = value->find(std::string(key));
    if (found == value->end() || found->is_null()) return {};
    value = &*found;
  }
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    throw InputError(
        fmt::format("{}: {} is {}, expected a finite number", what, path, value->type_name()));
  }
  return value->get<double>();
}

}  // namespace

Gate ParseGate(std::string_view text) {
  Gate gate;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) gate.text += c;
  }
  if (gate.text.empty()) {
    throw UsageError("the gate is empty; expected checks such as kl<=0.05,ppl_ratio<=1.02");
  }
  for (std::string_view rest = gate.text;;) {
    const size_t comma = rest.find(',');
    gate.checks.push_back(ParseCheck(rest.substr(0, comma)));
    if (comma == std::string_view::npos) return gate;
    rest.remove_prefix(comma + 1);
  }
}

void CheckMeasured(const Gate& gate, const MeasuredParts& parts) {
  for (const GateCheck& check : gate.checks) {
    const std::string_view member = FindMetric(check.metric, gate.text).path;
    const bool measured = member.starts_with("needle.")      ? parts.recall
                          : member.starts_with("tool_call.") ? parts.tool_calls
                          : member.starts_with("reasoning.") ? parts.reasoning
                                                             : parts.predictions;
    if (!measured && !member.starts_with("local."))
      throw UsageError(fmt::format("gate {}: {} will not be measured with these options",
                                   Quoted(gate.text), check.metric));
  }
}

Gate EvaluateGate(Gate gate, const Json& arm) {
  gate.arm = JsonString(arm, "name", "configuration in the report");
  for (GateCheck& check : gate.checks) {
    const std::string_view member = FindMetric(check.metric, gate.text).path;
    check.value = FindNumber(arm, member, "configuration " + Quoted(gate.arm));
    if (!check.value) check.reason = fmt::format("not measured for this arm ({})", member);
    check.passed = Holds(check);
  }
  gate.passed = std::ranges::all_of(gate.checks, &GateCheck::passed);
  return gate;
}

Gate CheckStoredGate(const Json& validation, std::string_view what) {
  const Json& stored = JsonMember(validation, "gate", what);
  const std::string text = JsonString(stored, "text", what);
  const std::string name = JsonString(stored, "arm", what);
  const Json& arms = JsonMember(validation, "arms", what);
  if (!arms.is_array()) {
    throw InputError(fmt::format("{}: \"arms\" is {}, expected a list", what, arms.type_name()));
  }
  Gate gate;
  try {
    gate = ParseGate(text);
  } catch (const UsageError& error) {
    throw InputError(fmt::format("{}: {}", what, error.what()));
  }
  const auto arm = std::find_if(arms.begin(), arms.end(), [&](const Json& candidate) {
    return candidate.is_object() && JsonString(candidate, "name", "", what) == name;
  });
  if (arm == arms.end()) {
    throw InputError(
        fmt::format("{}: the gate was evaluated for configuration {}, which is not in the report",
                    what, Quoted(name)));
  }
  gate = EvaluateGate(gate, ArmOfVerdict(validation, *arm));
  if (const Json result = gate; result != stored) {
    throw InputError(fmt::format(
        "{}: the stored gate {} does not follow from the report's own numbers: stored {}, "
        "recomputed {}; the report was changed after it was written",
        what, Quoted(text), Quoted(stored.dump(), 400), Quoted(result.dump(), 400)));
  }
  return gate;
}

}  // namespace oscar
