// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "capture/files/nearest.h"
#include "capture/files/quote.h"  // Quoted
#include "capture/files/removed_names.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.starts_with('+') || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return number;
}

// nlohmann::json cannot write bytes that are not UTF-8, so they are refused here.
bool IsPlainUtf8(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return false;
  try {
    static_cast<void>(Json(text).dump());
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

// Lists the choices if there are few, otherwise the nearest one.
std::string ChoiceProblem(const std::string& found, const std::vector<std::string>& choices) {
  if (const std::string hint = RemovedHint(found); !hint.empty())
    return fmt::format("found {}, which {}", Quoted(found), hint);
  constexpr size_t kFew = 8;
  return fmt::format("found {}, expected one of {}", Quoted(found),
                     choices.size() <= kFew ? fmt::format("{}", fmt::join(choices, ", "))
                                            : fmt::format("{}, the nearest: {}", choices.size(),
                                                          Nearest(found, choices)));
}

std::string ScalarProblem(const Option& option, const Json& value) {
  const OptionSpec& spec = option.spec;
  if (value.is_number()) {
    const double number = value.get<double>();
    if (spec.min && number < *spec.min)
      return fmt::format(
          "found {}, expected {}", value.dump(),
          option.has_auto() ? "auto or at least 0" : fmt::format("at least {}", *spec.min));
    if (spec.max && number > *spec.max)
      return fmt::format("found {}, expected at most {}", value.dump(), *spec.max);
  }
  if (!spec.choices.empty()) {
    OSCAR_CHECK(value.is_string());
    const std::string& text = value.get_ref<const std::string&>();
    if (std::find(spec.choices.begin(), spec.choices.end(), text) == spec.choices.end())
      return ChoiceProblem(text, spec.choices);
  }
  return "";
}

}  // namespace

std::string Option::flag() const {
  if (spec.positional) return Upper(spec.name);
  std::string flag = "--" + spec.name;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string Option::value_name() const {
  if (is_switch()) return "";
  if (!spec.choices.empty()) return fmt::format("{}", fmt::join(spec.choices, "|"));
  if (!spec.unit.empty()) return Upper(spec.unit) + (has_auto() ? "|auto" : "");
  switch (type.kind) {
    case ValueKind::kBool:
      return "BOOL";
    case ValueKind::kInteger:
      return has_auto() ? "N|auto" : "N";
    case ValueKind::kReal:
      return "NUMBER";
    case ValueKind::kText:
      return "TEXT";
  }
  OSCAR_CHECK(false);
}

std::string ExpectedValue(const Option& option) {
  const ValueType& type = option.type;
  const std::string of_unit = option.spec.unit.empty() ? "" : " of " + option.spec.unit;
  const std::string list = type.list ? "a list of values, each " : "";
  if (!option.spec.choices.empty())
    return fmt::format("{}one of {}", list, fmt::join(option.spec.choices, ", "));
  switch (type.kind) {
    case ValueKind::kBool:
      return list + "true or false";
    case ValueKind::kInteger:
      return list + "a whole number" + of_unit + (option.has_auto() ? " or auto" : "");
    case ValueKind::kReal:
      return list + "a number" + of_unit;
    case ValueKind::kText:
      return list + "text";
  }
  OSCAR_CHECK(false);
}

std::optional<Json> ParseScalar(const Option& option, std::string_view text) {
  const ValueType& type = option.type;
  if (option.has_auto() && text == "auto") return -1;
  switch (type.kind) {
    case ValueKind::kBool:
      if (text == "true") return true;
      if (text == "false") return false;
      return std::nullopt;
    case ValueKind::kInteger: {
      const std::optional<int64_t> number = ParseNumber<int64_t>(text);
      if (!number || *number < type.lowest || *number > type.highest) return std::nullopt;
      return *number;
    }
    case ValueKind::kReal: {
      const std::optional<double> number = ParseNumber<double>(text);
      if (!number || !std::isfinite(*number)) return std::nullopt;
      return *number;
    }
    case ValueKind::kText:
      if (!IsPlainUtf8(text)) return std::nullopt;
      return std::string(text);
  }
  OSCAR_CHECK(false);
}

std::string ValueWord(const Option& option, const Json& value) {
  if (option.has_auto() && value == -1) return "auto";
  if (value.is_number_float()) return fmt::format("{:g}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string ValueProblem(const Option& option, const Json& value) {
  if (value.is_null()) return "";
  if (option.type.list) {
    for (const Json& element : value) {
      if (std::string problem = ScalarProblem(option, element); !problem.empty()) return problem;
    }
  } else if (std::string problem = ScalarProblem(option, value); !problem.empty()) {
    return problem;
  }
  return option.spec.check ? option.spec.check(value) : "";
}

std::vector<std::string> SplitList(const Option& option, std::string_view text) {
  const std::vector<std::string> whole = {std::string(text)};
  std::error_code error;
  const auto exists = [&](const std::string& name) { return fs::exists(name, error); };
  if (option.spec.verbatim || (option.spec.path && exists(whole.front()))) return whole;
  std::vector<std::string> values;
  constexpr std::string_view kSeparators = ", \t\n";
  for (size_t begin = text.find_first_not_of(kSeparators); begin != std::string_view::npos;) {
    const size_t end = text.find_first_of(kSeparators, begin);
    values.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kSeparators, end);
  }
  if (values.empty()) return whole;
  return option.spec.path && std::ranges::none_of(values, exists) ? whole : values;
}

Json WithoutTrailingSlashes(const Option& option, Json value) {
  if (!option.spec.path) return value;
  if (value.is_array()) {
    for (Json& element : value) element = WithoutTrailingSlashes(option, element);
  } else if (value.is_string()) {
    std::string path = value.get<std::string>();
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return path;
  }
  return value;
}

Json ValueOfFlags(const Option& option, const std::vector<std::string>& texts) {
  const auto parse = [&](std::string_view text) {
    std::optional<Json> value = ParseScalar(option, text);
    if (!value) {
      throw UsageError(fmt::format("{}: found {}, expected {}", option.flag(), Quoted(text),
                                   ExpectedValue(option)));
    }
    return *std::move(value);
  };
  OSCAR_CHECK(!texts.empty());
  Json value;
  if (option.type.list) {
    value = Json::array();
    for (const std::string& text : texts)
      for (const std::string& element : SplitList(option, text)) value.push_back(parse(element));
  } else {
    value = parse(texts.back());
  }
  if (const std::string problem = ValueProblem(option, value); !problem.empty())
    throw UsageError(fmt::format("{}: {}", option.flag(), problem));
  return value;
}

}  // namespace oscar
