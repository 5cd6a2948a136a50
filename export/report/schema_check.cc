// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/schema_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/quote.h"
#include "export/report/record.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

std::string Shown(const JsonElement& value) {
  if (value.is_string())
    return "the text " + Quoted(std::string(value.get_string().value_unsafe()), 60);
  if (value.is_array()) return "an array";
  return value.is_object() ? "an object" : ToJson(value).dump();
}

[[noreturn]] void Expected(const Spot& spot, std::string_view expected) {
  spot.Refuse(fmt::format("expected {}, found {}", expected, Shown(spot.value)));
}

// Of a member that is at hand: looking for each of many would take the square of their number.
Spot MemberOf(const Spot& spot, std::string_view key, const JsonElement& value) {
  return {value, spot.traced ? spot.pointer + "/" + PointerToken(key) : "", spot.what, nullptr,
          spot.traced};
}

Spot ElementOf(const Spot& spot, size_t index, const JsonElement& value) {
  return {value, spot.traced ? spot.pointer + "/" + std::to_string(index) : "", spot.what, nullptr,
          spot.traced};
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
  for (const auto& [key, value] : MembersOf(spot.value)) {
    const auto rule = std::ranges::find(rules, key, &MemberRule::name);
    const Spot member = {value, "", spot.what, nullptr, /*traced=*/false};
    if (rule != rules.end()) {
      missing -= required(*rule) ? 1 : 0;
      rule->check(member);
    } else if (unknown == Unknown::kRefused) {
      spot.Refuse("unknown member");
    }
  }
  if (missing != 0) spot.Refuse("a member is missing");
}

double FiniteNumber(const Spot& spot, std::string_view expected) {
  if (!spot.value.is_number()) Expected(spot, expected);
  return spot.Number();  // JSON has no others
}

}  // namespace

Spot Spot::Member(std::string_view key) const {
  const auto member = FindMember(value, key);
  OSCAR_CHECK(member.has_value());
  return MemberOf(*this, key, member->value);
}
std::vector<Spot> Spot::Elements() const {
  std::vector<Spot> spots;
  for (const JsonElement element : ElementsOf(value))
    spots.push_back(ElementOf(*this, spots.size(), element));
  return spots;
}
void Spot::Refuse(const std::string& why) const {
  throw InputError(
      fmt::format("{}: {}: {}", what, pointer.empty() ? "the document" : Escaped(pointer), why));
}

Outline OutlineOf(SpotCheck document) {
  Outline outline;
  try {
    document({JsonElement(), "", "", &outline});
  } catch (const EndOfOutline&) {
  }
  return outline;
}

void CheckObject(const Spot& spot, std::span<const MemberRule> rules, Unknown unknown) {
  if (spot.outline != nullptr) OutlineMembers(spot, rules, unknown);
  if (!spot.value.is_object()) Expected(spot, "an object");
  if (!spot.traced) return CheckMembers(spot, rules, unknown);
  for (const MemberRule& rule : rules) {
    if (spot.Has(rule.name)) {
      rule.check(spot.Member(rule.name));
    } else if (rule.presence == MemberRule::kRequired) {
      spot.Refuse(fmt::format("member \"{}\" is missing", rule.name));
    }
  }
  if (unknown == Unknown::kAllowed) return;
  for (const auto& [key, value] : MembersOf(spot.value)) {
    const auto is_known = [&key = key](const MemberRule& rule) { return key == rule.name; };
    if (std::any_of(rules.begin(), rules.end(), is_known)) continue;
    std::string known;
    for (const MemberRule& rule : rules) known += fmt::format(" {}", rule.name);
    spot.Refuse(
        fmt::format("unknown member {}; known:{} (schema.md)", Quoted(std::string(key)), known));
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
  uint64_t count = 0;
  const bool is_count = spot.value.type() != JsonType::DOUBLE &&
                        spot.value.get_uint64().get(count) == simdjson::SUCCESS &&
                        count <= kLargest;
  if (!is_count) Expected(spot, "a count (an integer >= 0)");
}
void CheckBool(const Spot& spot) {
  Outlined(spot, "bool");
  if (!spot.value.is_bool()) Expected(spot, "true or false");
}
void CheckText(const Spot& spot) {
  Outlined(spot, "text");
  if (!spot.value.is_string()) Expected(spot, "text");
}
void CheckAnyObject(const Spot& spot) { CheckObject(spot, {}, Unknown::kAllowed); }

void CheckInterval(const Spot& spot) {
  Outlined(spot, "interval");
  CheckElements(spot, CheckNumber);
  const std::vector<Spot> ends = spot.Elements();
  if (ends.size() != 2) Expected(spot, "two numbers, [lo, hi]");
  if (ends[0].Number() > ends[1].Number()) {
    spot.Refuse(fmt::format("an interval whose lower end {} lies above its upper end {}",
                            Shown(ends[0].value), Shown(ends[1].value)));
  }
}

void CheckElements(const Spot& spot, SpotCheck check) {
  OutlineInner(spot, check, "list of ", "[]");
  if (!spot.value.is_array()) Expected(spot, "an array");
  size_t index = 0;
  for (const JsonElement element : ElementsOf(spot.value)) check(ElementOf(spot, index++, element));
}

void CheckValues(const Spot& spot, SpotCheck check) {
  OutlineInner(spot, check, "by name, ", "/*");
  if (!spot.value.is_object()) Expected(spot, "an object");
  for (const auto& [key, value] : MembersOf(spot.value)) check(MemberOf(spot, key, value));
}

void CheckSameSize(const Spot& spot, const char* a, const char* b) {
  if (!spot.Has(a) || !spot.Has(b)) return;
  const size_t size_a = ElementsOf(spot.Member(a).value).size(),
               size_b = ElementsOf(spot.Member(b).value).size();
  if (size_a != size_b) {
    spot.Refuse(fmt::format("\"{}\" has {} values and \"{}\" has {}", a, size_a, b, size_b));
  }
}

}  // namespace oscar
