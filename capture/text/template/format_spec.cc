// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
#include "capture/text/template/format_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "capture/text/template/unicode.h"
#include "capture/text/template/value_text.h"

namespace oscar::jinja {
namespace {

std::string Grouped(std::string digits, char separator) {
  const size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (size_t at = end; at > 3; at -= 3) digits.insert(at - 3, 1, separator);
  return digits;
}

std::string SignOf(const FormatSpec& spec, bool negative) {
  if (negative) return "-";
  return spec.sign == '-' ? "" : std::string(1, spec.sign);
}

std::string FloatBody(const FormatSpec& spec, double magnitude) {
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  std::string body;
  switch (spec.type) {
    case 'e':
      body = fmt::format("{:.{}e}", magnitude, precision);
      break;
    case 'E':
      body = fmt::format("{:.{}E}", magnitude, precision);
      break;
    case 'g':
      body = fmt::format("{:.{}g}", magnitude, std::max(precision, 1));
      break;
    case 'G':
      body = fmt::format("{:.{}G}", magnitude, std::max(precision, 1));
      break;
    case '%':
      body = fmt::format("{:.{}f}%", magnitude * 100, precision);
      break;
    default:
      body = fmt::format("{:.{}f}", magnitude, precision);
  }
  return spec.grouping != '\0' ? Grouped(std::move(body), spec.grouping) : body;
}

}  // namespace

int ParseFormatNumber(std::string_view text, size_t& at) {
  int value = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    value = value * 10 + (text[at] - '0');
    if (value > kMaxFormatWidth)
      throw TemplateFailure(
          fmt::format("a width or precision above {} in a format", kMaxFormatWidth));
  }
  return value;
}

std::string PadFormatted(const FormatSpec& spec, const std::string& sign, std::string body,
                         char natural) {
  const char align = spec.align != '\0' ? spec.align : natural;
  const auto length = static_cast<int>(CodePointCount(sign + body));
  const int pad = std::max(spec.width - length, 0);
  const auto fill = [&](int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += spec.fill;
    return out;
  };
  if (align == '=') return sign + fill(pad) + body;
  const int left = align == '>' ? pad : align == '^' ? pad / 2 : 0;
  return fill(left) + sign + body + fill(pad - left);
}

std::string FormatNumber(const FormatSpec& spec, const Value& value) {
  FormatSpec padded = spec;
  if (spec.zero && spec.align == '\0') {
    padded.fill = "0";
    padded.align = '=';
  }
  const bool is_float =
      value.is_float() || std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (is_float && spec.type == '\0') {
    const std::string repr =
        spec.precision >= 0 ? fmt::format("{:.{}g}", std::abs(value.as_double()), spec.precision)
                            : FloatRepr(std::abs(value.as_double()));
    return PadFormatted(padded, SignOf(spec, std::signbit(value.as_double())), repr, '>');
  }
  if (is_float) {
    const double number = value.as_double();
    return PadFormatted(padded, SignOf(spec, std::signbit(number)),
                        FloatBody(spec, std::abs(number)), '>');
  }
  const int64_t number = value.as_int();
  const uint64_t magnitude =
      number < 0 ? -static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  std::string body, prefix;
  switch (spec.type) {
    case 'x':
      body = fmt::format("{:x}", magnitude);
      prefix = "0x";
      break;
    case 'X':
      body = fmt::format("{:X}", magnitude);
      prefix = "0X";
      break;
    case 'o':
      body = fmt::format("{:o}", magnitude);
      prefix = "0o";
      break;
    case 'b':
      body = fmt::format("{:b}", magnitude);
      prefix = "0b";
      break;
    default:
      body = fmt::format("{}", magnitude);
  }
  if (spec.grouping != '\0') body = Grouped(std::move(body), spec.grouping);
  const std::string sign = SignOf(spec, number < 0) + (spec.alternate ? prefix : "");
  return PadFormatted(padded, sign, std::move(body), '>');
}

std::string FormatText(const FormatSpec& spec, std::string text) {
  if (spec.precision >= 0 && CodePointCount(text) > static_cast<size_t>(spec.precision)) {
    text = EncodeUtf8(DecodeUtf8(text).substr(0, static_cast<size_t>(spec.precision)));
  }
  return PadFormatted(spec, "", std::move(text), '<');
}

std::string FixedDigits(double value, int digits) { return fmt::format("{:.{}f}", value, digits); }

}  // namespace oscar::jinja
