// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A number or text laid out by a width, a precision and flags: what "%5.2f" and "{:>5}" have in
// common. Trap: a width is in code points, and one from a template is bounded before anything is
// allocated.
#pragma once

#include <string>
#include <string_view>

#include "capture/text/template/session.h"

namespace oscar::jinja {

inline constexpr int kMaxFormatWidth = 100'000;

// One conversion, after parsing.
struct FormatSpec {
  std::string fill = " ";
  char align = '\0';  // < > = ^; none given: by type
  char sign = '-';    // + or space
  bool alternate = false;
  bool zero = false;
  char grouping = '\0';  // , or _
  int width = 0;
  int precision = -1;
  char type = '\0';
};

// The digits from `at` on, 0 if there are none; `at` moves behind them.
int ParseFormatNumber(std::string_view text, size_t& at);

// `natural` is the alignment where none is given.
std::string PadFormatted(const FormatSpec& spec, const std::string& sign, std::string body,
                         char natural);
// A bool, int or float.
std::string FormatNumber(const FormatSpec& spec, const Value& value);
std::string FormatText(const FormatSpec& spec, std::string text);

// Correctly rounded digits behind the point, as Python's round and its formats give them.
std::string FixedDigits(double value, int digits);

}  // namespace oscar::jinja
