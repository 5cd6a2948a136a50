// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The objects of report.json as plain structs. The alias Fields of a struct lists its members once,
// in the order of schema.md. A member's name is its name in JSON without a final underscore; its
// type says what it may hold:
//
//   double       a finite number           Interval                     [low, high]
//   NonNegative  a number >= 0             std::optional<T>             may be missing
//   Fraction     a number from 0 to 1      std::vector<T>               a list
//   int64_t      a count                   std::map<std::string, T>     an object by name
//   bool, std::string                      AnyObject, or a struct       an object
//
// A struct with kOpen may have members that are not listed: they are neither read nor written.
// Json(value) writes a struct; read.h reads it, and outline.h lists the members for schema.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "capture/files/strict_json.h"

namespace oscar::measures {

template <bool kAtMostOne>
struct Ranged {
  double value = 0;
  Ranged() = default;
  Ranged(double number) : value(number) {}
  operator double() const { return value; }
};
using NonNegative = Ranged<false>;
using Fraction = Ranged<true>;
struct Interval {
  double low = 0, high = 0;
};
struct AnyObject {};

template <auto... kPointers>
struct Members {};

// The name of a member, taken from the text that GCC and Clang print for a pointer to it.
template <auto kPointer>
constexpr std::string_view NameOf() {
  std::string_view name = __PRETTY_FUNCTION__;
  name = name.substr(name.find("kPointer = "));
  name = name.substr(0, name.find_first_of(";]"));
  name = name.substr(name.rfind(':') + 1);
  return name.ends_with('_') ? name.substr(0, name.size() - 1) : name;
}

template <typename T>
concept HasFields = requires {
  typename T::Fields;
};

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// Calls visit(name, pointer to member) for each member.
template <HasFields T>
void ForEachField(auto&& visit) {
  [&]<auto... kPointers>(Members<kPointers...>) { (visit(NameOf<kPointers>(), kPointers), ...); }
  (typename T::Fields());
}

template <bool kAtMostOne>
void to_json(Json& json, const Ranged<kAtMostOne>& number) {
  json = number.value;
}

inline void to_json(Json& json, const Interval& interval) { json = {interval.low, interval.high}; }

template <HasFields T>
void to_json(Json& json, const T& value) {
  json = Json::object();
  ForEachField<T>([&](std::string_view name, auto pointer) {
    const auto& member = value.*pointer;
    if constexpr (!kIsOptional<std::remove_cvref_t<decltype(member)>>) {
      json[std::string(name)] = member;
    } else if (member) {
      json[std::string(name)] = *member;
    }
  });
}

}  // namespace oscar::measures
