// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/schema_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "capture/files/quote.h"
#include "export/report/record.h"
#include "linalg/error.h"

namespace oscar {
namespace {

std::string Shown(const Json& value) {
  if (value.is_structured() || value.is_string()) {
    return value.is_string() ? "the text " + Quoted(value.get<std::string>(), 60)
                             : fmt::format("an {}", value.type_name());
  }
  return value.dump();
}

[[noreturn]] void Expected(const Spot& spot, std::string_view expected) {
  spot.Refuse(fmt::format("expected {}, found {}", expected, Shown(spot.value)));
}

struct EndOfOutline {};

// Of the member whose line is the last one.
void Outlined(const Spot& spot, std::string_view type) {
  if (spot.outline == nullptr) return;
  spot.outline->lines.back().type += type;
  throw EndOfOutline{};
}

// Adds to the last line what `check` is of, and below it its members, once.
void OutlineCheck(const Spot& at, SpotCheck check) {
  Outline& outline = *at.outline;
  if (const auto known = outline.objects.find(check); known != outline.objects.end()) {
    outline.lines.back().type += fmt::format("object as `{}`", known->second);
    return;
  }
  const size_t before = outline.lines.size();
  try {
    check(at);
  } catch (const EndOfOutline&) {
  }
  if (outline.lines.size() > before) outline.objects.emplace(check, at.pointer);
}

// One more level of the same member: of elements, or of values.
void OutlineInner(const Spot& spot, SpotCheck check, std::string_view type,
                  std::string_view pointer) {
  if (spot.outline == nullptr) return;
  spot.outline->lines.back().type += type;
  OutlineCheck({spot.value, spot.pointer + std::string(pointer), spot.what, spot.outline}, check);
  throw EndOfOutline{};
}

void OutlineMembers(const Spot& spot, std::span<const MemberRule> rules, Unknown unknown) {
  Outline& outline = *spot.outline;
  if (!outline.lines.empty())
    outline.lines.back().type += unknown == Unknown::kAllowed ? "open object" : "object";
  for (const MemberRule& rule : rules) {
    const std::string pointer = spot.pointer + "/" + std::string(rule.name);
    outline.lines.push_back({pointer, rule.presence == MemberRule::kOptional, ""});
    OutlineCheck({spot.value, pointer, spot.what, spot.outline}, rule.check);
  }
  throw EndOfOutline{};
}

// As CheckObject, which says what is wrong and looks in the order of the rules for it.
void CheckMembers(const Spot& spot, std::span<const MemberRule> rules, Unknown unknown) {
  const auto required = [](const MemberRule& rule) {
    return rule.presence == MemberRule::kRequired;
  };
  auto missing = std::ranges::count_if(rules, required);
  for (const auto& [key, value] : spot.value.get_ref<const Json::object_t&>()) {
    const auto rule = std::ranges::find(rules, std::string_view(key), &MemberRule::name);
    const Spot member = {value, "", spot.what, nullptr, /*traced=*/false};
    if (rule != rules.end()) {
      missing -= required(*rule) ? 1 : 0;
      rule->check(member);
    } else if (unknown == Unknown::kAllowed) {
      CheckAnything(member);
    } else {
      spot.Refuse("unknown member");
    }
  }
  if (missing != 0) spot.Refuse("a member is missing");
}

double FiniteNumber(const Spot& spot, std::string_view expected) {
  if (!spot.value.is_number()) Expected(spot, expected);
  const double number = spot.value.get<double>();
  if (!std::isfinite(number)) spot.Refuse(fmt::format("expected {}, found NaN or Inf", expected));
  return number;
}

}  // namespace

Spot Spot::Member(std::string_view key) const {
  return {value.at(key), traced ? pointer + "/" + PointerToken(key) : "", what, nullptr, traced};
}
Spot Spot::Element(size_t index) const {
  return {value[index], traced ? pointer + "/" + std::to_string(index) : "", what, nullptr, traced};
}
void Spot::Refuse(const std::string& why) const {
  throw InputError(
      fmt::format("{}: {}: {}", what, pointer.empty() ? "the document" : Escaped(pointer), why));
}

Outline OutlineOf(SpotCheck document) {
  static const Json kNothing;
  Outline outline;
  try {
    document({kNothing, "", "", &outline});
  } catch (const EndOfOutline&) {
  }
  return outline;
}

void CheckObject(const Spot& spot, std::span<const MemberRule> rules, Unknown unknown) {
  if (spot.outline != nullptr) OutlineMembers(spot, rules, unknown);
  if (!spot.value.is_object()) Expected(spot, "an object");
  if (!spot.traced) return CheckMembers(spot, rules, unknown);
  for (const MemberRule& rule : rules) {
    if (spot.value.contains(rule.name)) {
      rule.check(spot.Member(rule.name));
    } else if (rule.presence == MemberRule::kRequired) {
      spot.Refuse(fmt::format("member \"{}\" is missing", rule.name));
    }
  }
  for (const auto& [key, value] : spot.value.items()) {
    const auto is_known = [&key = key](const MemberRule& rule) { return key == rule.name; };
    if (std::any_of(rules.begin(), rules.end(), is_known)) continue;
    if (unknown == Unknown::kAllowed) {
      CheckAnything(spot.Member(key));
      continue;
    }
    std::string known;
    for (const MemberRule& rule : rules) known += fmt::format(" {}", rule.name);
    spot.Refuse(fmt::format("unknown member {}; known:{} (schema.md)", Quoted(key), known));
  }
}

void CheckNumber(const Spot& spot) {
  Outlined(spot, "number");
  FiniteNumber(spot, "a finite number");
}
void CheckNonNegative(const Spot& spot) {
  Outlined(spot, "number >= 0");
  if (FiniteNumber(spot, "a number >= 0") < 0) Expected(spot, "a number >= 0");
}
void CheckFraction(const Spot& spot) {
  Outlined(spot, "fraction");
  const double number = FiniteNumber(spot, "a number from 0 to 1");
  if (number < 0 || number > 1) Expected(spot, "a number from 0 to 1");
}
void CheckCount(const Spot& spot) {
  Outlined(spot, "count");
  // An integer above 2^53 is not a count that anybody made, and no double could show it.
  constexpr uint64_t kLargest = uint64_t{1} << 53;
  const bool is_count = spot.value.is_number_unsigned()
                            ? spot.value.get<uint64_t>() <= kLargest
                            : spot.value.is_number_integer() && spot.value.get<int64_t>() >= 0 &&
                                  spot.value.get<int64_t>() <= static_cast<int64_t>(kLargest);
  if (!is_count) Expected(spot, "a count (an integer >= 0)");
}
void CheckBool(const Spot& spot) {
  Outlined(spot, "bool");
  if (!spot.value.is_boolean()) Expected(spot, "true or false");
}
void CheckText(const Spot& spot) {
  Outlined(spot, "text");
  if (!spot.value.is_string()) Expected(spot, "text");
}
void CheckAnything(const Spot& spot) {
  Outlined(spot, "anything");
  if (spot.value.is_number()) CheckNumber(spot);
  if (spot.value.is_array()) CheckElements(spot, CheckAnything);
  if (spot.value.is_object()) CheckValues(spot, CheckAnything);
}
void CheckAnyObject(const Spot& spot) { CheckObject(spot, {}, Unknown::kAllowed); }

void CheckInterval(const Spot& spot) {
  Outlined(spot, "interval");
  CheckElements(spot, CheckNumber);
  if (spot.value.size() != 2) Expected(spot, "two numbers, [lo, hi]");
  if (spot.value[0].get<double>() > spot.value[1].get<double>()) {
    spot.Refuse(fmt::format("an interval whose lower end {} lies above its upper end {}",
                            spot.value[0].dump(), spot.value[1].dump()));
  }
}

void CheckElements(const Spot& spot, SpotCheck check) {
  OutlineInner(spot, check, "list of ", "[]");
  if (!spot.value.is_array()) Expected(spot, "an array");
  for (size_t i = 0; i < spot.value.size(); ++i) check(spot.Element(i));
}

void CheckValues(const Spot& spot, SpotCheck check) {
  OutlineInner(spot, check, "by name, ", "/*");
  if (!spot.value.is_object()) Expected(spot, "an object");
  for (const auto& [key, value] : spot.value.items()) check(spot.Member(key));
}

void CheckSameSize(const Spot& spot, const char* a, const char* b) {
  if (!spot.value.contains(a) || !spot.value.contains(b)) return;
  const size_t size_a = spot.value.at(a).size(), size_b = spot.value.at(b).size();
  if (size_a != size_b) {
    spot.Refuse(fmt::format("\"{}\" has {} values and \"{}\" has {}", a, size_a, b, size_b));
  }
}

}  // namespace oscar
