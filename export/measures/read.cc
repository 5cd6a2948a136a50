// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/measures/read.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "capture/files/quote.h"
#include "linalg/base/error.h"

namespace oscar::measures {
namespace {

std::string Shown(const JsonElement& value) {
  if (value.is_string())
    return "the text " + Quoted(std::string(value.get_string().value_unsafe()), 60);
  if (value.is_array()) return "an array";
  return value.is_object() ? "an object" : ToJson(value).dump();
}

// Checks only the range, because every number in JSON is finite.
double NumberOf(const Spot& spot, std::string_view expected, double from, double to) {
  if (!spot.value.is_number()) spot.Expected(expected);
  const double number = spot.value.get_double().value();
  if (number < from || number > to) spot.Expected(expected);
  return number;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

std::string PointerToken(std::string_view key) {
  std::string token;
  for (char c : key) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

std::string Spot::pointer() const {
  if (holder == nullptr) return {};
  return holder->pointer() + "/" +
         (holder->value.is_array() ? std::to_string(index) : PointerToken(key));
}

void Spot::Refuse(const std::string& why, std::string_view below) const {
  const std::string place = pointer() + std::string(below);
  throw InputError(
      fmt::format("{}: {}: {}", what, place.empty() ? "the document" : Escaped(place), why));
}

void Spot::Expected(std::string_view expected) const {
  Refuse(fmt::format("expected {}, found {}", expected, Shown(value)));
}

void Spot::ExpectObject() const {
  if (!value.is_object()) Expected("an object");
}

JsonElements Spot::Elements() const {
  if (!value.is_array()) Expected("an array");
  return ElementsOf(value);
}

void Spot::RefuseUnknown(std::span<const std::string_view> known) const {
  for (const auto& [name, member] : MembersOf(value)) {
    if (std::ranges::find(known, name) != known.end()) continue;
    Refuse(fmt::format("unknown member {}; known: {} (schema.md)", Quoted(std::string(name)),
                       fmt::join(known, " ")));
  }
}

void Read(const Spot& spot, double& into) {
  into = NumberOf(spot, "a finite number", -kInfinity, kInfinity);
}
void Read(const Spot& spot, NonNegative& into) {
  into = NumberOf(spot, "a number >= 0", 0, kInfinity);
}
void Read(const Spot& spot, Fraction& into) { into = NumberOf(spot, "a number from 0 to 1", 0, 1); }
void Read(const Spot& spot, int64_t& into) {
  // A double may not represent integers above 2^53 exactly, and no count is as large as that.
  constexpr uint64_t kLargest = uint64_t{1} << 53;
  uint64_t count = 0;
  const bool is_count = spot.value.type() != JsonType::DOUBLE &&
                        spot.value.get_uint64().get(count) == simdjson::SUCCESS &&
                        count <= kLargest;
  if (!is_count) spot.Expected("a count (an integer >= 0)");
  into = static_cast<int64_t>(count);
}
void Read(const Spot& spot, bool& into) {
  if (!spot.value.is_bool()) spot.Expected("true or false");
  into = spot.value.get_bool().value();
}
void Read(const Spot& spot, std::string& into) {
  if (!spot.value.is_string()) spot.Expected("text");
  into = spot.value.get_string().value();
}
void Read(const Spot& spot, AnyObject&) { spot.ExpectObject(); }

void Read(const Spot& spot, Interval& into) {
  std::vector<double> ends;
  Read(spot, ends);
  if (ends.size() != 2) spot.Expected("two numbers, [lo, hi]");
  into = {ends[0], ends[1]};
  if (into.low <= into.high) return;
  spot.Refuse(
      fmt::format("an interval whose lower end {} exceeds its upper end {}", into.low, into.high));
}

}  // namespace oscar::measures
