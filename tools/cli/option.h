// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// An option of a command: its row in the table, and the field that it sets. Values from flags and
// from the configuration file both become JSON values of the declared type, so the same rules apply
// to both. Trap: an option holds a pointer to the caller's field, which must outlive it.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "capture/files/strict_json.h"  // Json

namespace oscar {

enum class ValueKind { kBool, kInteger, kReal, kText };

struct ValueType {
  ValueKind kind;
  bool list = false;
  bool optional = false;            // may be null, which means not given
  int64_t lowest = 0, highest = 0;  // range of an integer field
};

// Says whether an option decides the result, and where it may be given.
enum class OptionScope {
  kResult,       // decides the result: flag or file, stored in artifacts
  kRun,          // flag or file, not stored: where to write, how to report
  kCommandLine,  // a flag only
};

struct OptionSpec {
  std::string name;                       // YAML key; the flag is --min-tokens for "min_tokens"
  std::string help;                       // one sentence, no full stop
  std::string unit = {};                  // like "tokens"; names the value in help and errors
  char short_name = 0;                    // 'o' for -o
  std::vector<std::string> choices = {};  // the only values allowed, if any
  // Inclusive limits of a number or of each number in a list. If `min` is -1, users write -1 as
  // "auto".
  std::optional<double> min = {}, max = {};
  std::function<std::string(const Json&)> check = {};  // returns the problem, or ""
  OptionScope scope = OptionScope::kResult;
  bool positional = false;  // an argument without a flag, like MODEL
  bool required = false;
  bool only_once = false;  // not repeated when resuming, like --restart
  bool main = false;       // shown by --help; all others only by --help-all
  bool path = false;       // names files: an existing file's commas do not split a list
  bool verbatim = false;   // list values may hold commas and spaces, so it is never split
  bool one_text = false;   // a list given as one argument with commas; the last flag counts
};

// The origin of a value; later ones win.
enum class OptionSource { kDefault, kFile, kFlag };

struct Option {
  OptionSpec spec;
  ValueType type;
  std::string group;  // heading in the help
  Json default_value;
  std::function<Json()> get;
  std::function<void(const Json&)> set;
  OptionSource source = OptionSource::kDefault;

  bool is_switch() const { return type.kind == ValueKind::kBool && !type.list && !type.optional; }
  bool has_auto() const { return spec.min == -1; }
  std::string flag() const;        // "--min-tokens", or "MODEL" for a positional
  std::string value_name() const;  // "TOKENS", "N", "TEXT", "a|b"
};

// Describes what errors expect: "a whole number of tokens", "a list of numbers", "one of a, b".
std::string ExpectedValue(const Option& option);

// Parses `text` as the option's scalar type; returns nothing if it is not valid. Whole numbers are
// decimal, numbers are finite, and switches are "true" or "false".
std::optional<Json> ParseScalar(const Option& option, std::string_view text);

// Formats an option's value for help and --print-config: "auto" for -1 if the option allows it.
std::string ValueWord(const Option& option, const Json& value);

// Returns the problem with a value of the right type (range, choices, check), or "".
std::string ValueProblem(const Option& option, const Json& value);

// Splits a list given as one text: --arms a,b is --arms a b, or 'arms: a, b' in a file.
std::vector<std::string> SplitList(const Option& option, std::string_view text);

// Removes the slashes at the end of a path: "out/" becomes "out".
Json WithoutTrailingSlashes(const Option& option, Json value);

// Returns the value of an option's flags, given in order. If the option is not a list, the last
// flag counts. Throws UsageError.
Json ValueOfFlags(const Option& option, const std::vector<std::string>& texts);

// ---- from field types to ValueType and Json ----

template <typename T>
struct FieldTraits;  // bool, integers, double, std::string, and vectors and optionals of these

template <>
struct FieldTraits<bool> {
  static ValueType Type() { return {.kind = ValueKind::kBool}; }
};
template <std::integral T>
requires(!std::same_as<T, bool>) struct FieldTraits<T> {
  static ValueType Type() {
    constexpr auto kHighest = std::numeric_limits<T>::max();
    constexpr auto kLimit = std::numeric_limits<int64_t>::max();
    return {
        .kind = ValueKind::kInteger,
        .lowest = static_cast<int64_t>(std::numeric_limits<T>::min()),
        .highest = std::cmp_greater(kHighest, kLimit) ? kLimit : static_cast<int64_t>(kHighest)};
  }
};
template <>
struct FieldTraits<double> {
  static ValueType Type() { return {.kind = ValueKind::kReal}; }
};
template <>
struct FieldTraits<std::string> {
  static ValueType Type() { return {.kind = ValueKind::kText}; }
};
template <typename T>
struct FieldTraits<std::vector<T>> {
  static ValueType Type() {
    ValueType type = FieldTraits<T>::Type();
    type.list = true;
    return type;
  }
};
template <typename T>
struct FieldTraits<std::optional<T>> {
  static ValueType Type() {
    ValueType type = FieldTraits<T>::Type();
    type.optional = true;
    return type;
  }
};

template <typename T>
Json FieldToJson(const T& field) {
  return field;
}
template <typename T>
Json FieldToJson(const std::optional<T>& field) {
  return field ? Json(*field) : Json();
}
template <typename T>
void FieldFromJson(const Json& value, T* field) {
  *field = value.get<T>();
}
template <typename T>
void FieldFromJson(const Json& value, std::optional<T>* field) {
  if (value.is_null()) {
    field->reset();
  } else {
    *field = value.get<T>();
  }
}

}  // namespace oscar
