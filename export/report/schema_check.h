// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A schema as tables of members, and two walks over them: one checks a document, the other writes
// down what the tables say, for schema.md. Only report_schema.cc uses it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/files/json_text.h"

namespace oscar {

struct Outline;

// A value of the document and where it stands.
struct Spot {
  JsonElement value;
  std::string pointer;    // RFC 6901
  std::string_view what;  // the document, for messages
  // The tables are written down there instead: there is no value, and the first check of a member
  // ends its function.
  Outline* outline = nullptr;
  bool traced = true;  // else the pointer is not kept: what is refused is looked at once more

  bool Has(std::string_view key) const { return FindMember(value, key).has_value(); }
  Spot Member(std::string_view key) const;
  std::vector<Spot> Elements() const;
  [[noreturn]] void Refuse(const std::string& why) const;  // InputError

  // Of a value that was checked.
  double Number() const { return value.get_double().value(); }
  uint64_t Count() const { return value.get_uint64().value(); }
  bool True() const { return value.get_bool().value(); }
  std::string Text() const { return std::string(value.get_string().value()); }
};

using SpotCheck = void (*)(const Spot&);

// What tables say, a line for each member in their order.
struct Outline {
  struct Line {
    std::string pointer;  // elements of a list as "[]", values by free names as "*"
    bool optional;
    std::string type;
  };
  std::vector<Line> lines;
  std::map<SpotCheck, std::string> objects;  // where each was written down
};
Outline OutlineOf(SpotCheck document);

struct MemberRule {
  std::string_view name;
  SpotCheck check;
  enum Presence { kRequired, kOptional } presence = kRequired;
};

enum class Unknown { kRefused, kAllowed };

// Every rule's member by its check; members without a rule as `unknown` says.
void CheckObject(const Spot& spot, std::span<const MemberRule> rules, Unknown unknown);

void CheckNumber(const Spot& spot);       // finite
void CheckNonNegative(const Spot& spot);  // finite, >= 0
void CheckFraction(const Spot& spot);     // 0 to 1
void CheckCount(const Spot& spot);        // integer >= 0
void CheckBool(const Spot& spot);
void CheckText(const Spot& spot);
void CheckAnyObject(const Spot& spot);
void CheckInterval(const Spot& spot);  // [lo, hi], lo <= hi

void CheckElements(const Spot& spot, SpotCheck check);  // of an array
void CheckValues(const Spot& spot, SpotCheck check);    // of an object with free keys

template <SpotCheck kCheck>
void ArrayOf(const Spot& spot) {
  CheckElements(spot, kCheck);
}
template <SpotCheck kCheck>
void MapOf(const Spot& spot) {
  CheckValues(spot, kCheck);
}

inline constexpr auto kOptional = MemberRule::kOptional;

// Closed objects: one rule per member, nothing else.
template <size_t kSize>
void Closed(const Spot& spot, const MemberRule (&rules)[kSize]) {
  CheckObject(spot, rules, Unknown::kRefused);
}
template <size_t kSize>
void Open(const Spot& spot, const MemberRule (&rules)[kSize]) {
  CheckObject(spot, rules, Unknown::kAllowed);
}

// Where both stand, arrays of one size.
void CheckSameSize(const Spot& spot, const char* a, const char* b);

}  // namespace oscar
