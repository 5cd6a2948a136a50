// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Filters that make numbers. Trap: "42.7" | int is 42, but text that is no number gives the default
// instead of an error.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "capture/text/template/format_spec.h"
#include "capture/text/template/operators.h"
#include "capture/text/template/string_ops.h"
#include "capture/text/template/tables.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

// Digits without the underscores between them; nothing if one stands elsewhere.
std::optional<std::string> WithoutUnderscores(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || i + 1 == text.size() || text[i - 1] == '_' || text[i + 1] == '_') {
      return std::nullopt;
    }
  }
  return out;
}

// Python's int(text, base).
std::optional<Value> ParseInt(std::string_view text, int64_t base) {
  text = StripText(text, std::nullopt, true, true);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.size() > 1 && text[0] == '0') {
    const char letter = static_cast<char>(text[1] | 0x20);
    const int64_t named = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (named != 0 && (base == named || base == 0)) {
      text.remove_prefix(2);
      if (text.starts_with('_')) text.remove_prefix(1);
      base = named;
    }
  }
  if (base == 0) base = 10;
  const std::optional<std::string> digits = WithoutUnderscores(text);
  if (!digits || digits->empty() || digits->front() == '-') return std::nullopt;
  uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(digits->data(), digits->data() + digits->size(),
                                            magnitude, static_cast<int>(base));
  if (end != digits->data() + digits->size()) return std::nullopt;
  const uint64_t limit = uint64_t{1} << 63;
  if (error == std::errc::result_out_of_range || magnitude > limit - (negative ? 0 : 1)) {
    if (base != 10) throw TemplateFailure("int: an integer beyond 64 bits");
    std::string rest = digits->substr(std::min(digits->find_first_not_of('0'), digits->size() - 1));
    return Value::Big((negative ? "-" : "") + rest);
  }
  return Value::Int(negative ? static_cast<int64_t>(-magnitude) : static_cast<int64_t>(magnitude));
}

// Python's float(text).
std::optional<double> ParseFloat(std::string_view text) {
  const std::optional<std::string> digits =
      WithoutUnderscores(StripText(text, std::nullopt, true, true));
  if (!digits) return std::nullopt;
  std::string_view rest = *digits;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest.empty() || rest[0] == '-' || rest[0] == '+') return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (end != rest.data() + rest.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // Too large or too small for a double: Python gives inf or 0.
    value = std::strtod(std::string(rest).c_str(), nullptr);
  } else if (error != std::errc()) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

// int(float): towards zero.
std::optional<Value> Truncated(double value) {
  if (std::isnan(value)) return std::nullopt;
  if (std::abs(value) < 9.2e18) return Value::Int(static_cast<int64_t>(value));
  if (std::isinf(value)) return std::nullopt;
  return Value::Big(fmt::format("{:.0f}", value));
}

Value IntFilter(Session&, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("int", {"default", "base"}, 0);
  const Value fallback = bound[0].value_or(Value::Int(0));
  const int64_t base = bound[1] ? IntegerOf(*bound[1], "int") : 10;
  if (base != 0 && (base < 2 || base > 36)) return fallback;
  if (value.is_undefined()) throw TemplateFailure(value.undefined_reason());
  if (value.is_big()) return value;
  if (value.is_integral()) return Value::Int(value.as_int());
  if (value.is_float()) {
    if (std::isinf(value.as_double()))
      throw TemplateFailure("cannot convert float infinity to integer");
    return Truncated(value.as_double()).value_or(fallback);
  }
  if (!value.is_string()) return fallback;
  if (auto parsed = ParseInt(value.as_string(), base)) return *std::move(parsed);
  const std::optional<double> parsed = ParseFloat(value.as_string());
  return parsed ? Truncated(*parsed).value_or(fallback) : fallback;
}

Value FloatFilter(Session&, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("float", {"default"}, 0);
  const Value fallback = bound[0].value_or(Value::Float(0.0));
  if (value.is_undefined()) throw TemplateFailure(value.undefined_reason());
  if (value.is_number()) return Value::Float(value.as_double());
  const std::string text = value.is_big()      ? value.big_digits()
                           : value.is_string() ? value.as_string()
                                               : std::string();
  const std::optional<double> parsed = ParseFloat(text);
  return parsed ? Value::Float(*parsed) : fallback;
}

Value AbsFilter(Session&, const Value& value, const Arguments& arguments) {
  arguments.Bind("abs", {}, 0);
  if (value.is_undefined()) throw TemplateFailure(value.undefined_reason());
  if (value.is_integral()) return value.as_int() < 0 ? Negate(value) : Value::Int(value.as_int());
  if (value.is_float()) return Value::Float(std::abs(value.as_double()));
  throw TemplateFailure(fmt::format("bad operand type for abs(): '{}'", value.TypeName()));
}

// 10**digits as Python computes it: an integer, or a float for a negative exponent.
double Scale(int64_t digits) { return std::pow(10.0, static_cast<double>(digits)); }

Value RoundCommon(const Value& value, int64_t digits) {
  if (value.is_integral()) {
    if (digits >= 0) return Value::Int(value.as_int());
    if (digits < -18) return Value::Int(0);
    const auto unit = static_cast<int64_t>(Scale(-digits));
    const int64_t number = value.as_int();
    int64_t down = number / unit * unit;  // half to even
    if (number % unit != 0 && number < 0) down -= unit;
    const int64_t rest = number - down;
    const bool up = rest * 2 > unit || (rest * 2 == unit && (down / unit) % 2 != 0);
    return Value::Int(up ? down + unit : down);
  }
  const double number = value.as_double();
  if (!std::isfinite(number) || digits > 300) return value;
  if (digits < 0) {
    const double unit = Scale(-digits);
    return Value::Float(std::isfinite(unit) ? std::nearbyint(number / unit) * unit : 0.0);
  }
  const std::string text = FixedDigits(number, static_cast<int>(digits));
  return Value::Float(std::strtod(text.c_str(), nullptr));
}

Value RoundFilter(Session&, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("round", {"precision", "method"}, 0);
  const int64_t digits = bound[0] ? IntegerOf(*bound[0], "round") : 0;
  const std::string method = bound[1] ? StringArgument(*bound[1], "round") : std::string("common");
  if (method != "common" && method != "ceil" && method != "floor")
    throw TemplateFailure("method must be common, ceil or floor");
  if (value.is_undefined()) throw TemplateFailure(value.undefined_reason());
  if (!value.is_number()) {
    throw TemplateFailure(fmt::format("type {} doesn't define __round__ method", value.TypeName()));
  }
  if (method == "common") return RoundCommon(value, digits);
  const double scaled = value.as_double() * Scale(digits);
  return Value::Float((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / Scale(digits));
}

Value FileSizeFilter(Session& session, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.Bind("filesizeformat", {"binary"}, 0);
  const bool binary = bound[0] && bound[0]->Truthy(session);
  const Value number = FloatFilter(session, value, {{Value::None()}, {}});
  if (number.is_none()) throw TemplateFailure("filesizeformat: could not convert this to a number");
  const double bytes = number.as_double();
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return Value::String("1 Byte");
  if (bytes < base) return Value::String(fmt::format("{} Bytes", static_cast<int64_t>(bytes)));
  double unit = base * base;
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  size_t i = 0;
  for (; i + 1 < kPrefixes.size() && bytes >= unit; ++i) unit *= base;
  const char prefix = binary && i == 0 ? 'K' : kPrefixes[i];
  return Value::String(
      fmt::format("{:.1f} {}{}", base * bytes / unit, prefix, binary ? "iB" : "B"));
}

}  // namespace

std::span<const FilterRow> NumberFilters() {
  static constexpr FilterRow kFilters[] = {
      {"int", IntFilter},
      {"float", FloatFilter},
      {"abs", AbsFilter},
      {"round", RoundFilter},
      {"filesizeformat", FileSizeFilter},
  };
  return kFilters;
}

}  // namespace oscar::jinja
