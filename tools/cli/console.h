// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The outputs of a command: results on standard output, everything else on standard error. Tests
// pass their own streams and clock. NO_COLOR turns off colour but keeps the live line; TERM=dumb
// turns off both.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace oscar {

struct Console {
  std::ostream* out = nullptr;  // results; the last line is the path of the output
  std::ostream* err = nullptr;  // progress, log, errors
  bool live = false;            // err is a terminal that can erase its line
  bool color = false;           // whether err shows colors
  bool follows = false;         // another process of the job reports signals
  bool only_errors = false;     // drops everything except errors
  std::function<int()> err_columns = [] { return 80; };  // called for every live line
  int out_columns = 80;                                  // for the help text
  std::function<double()> seconds;                       // steady clock, any origin
  std::function<std::string()> utc;                      // "2026-01-31T12:00:00.123Z"
};

Console ProcessConsole();

// Returns the longest prefix of UTF-8 `text` that fits into `columns` terminal columns. Characters
// beyond Latin, Greek and Cyrillic count as two columns, so the result may be shorter than
// necessary.
std::string FitColumns(std::string_view text, int columns);
int CountColumns(std::string_view text);

// Appends `text` and a newline to `out`, wrapped at spaces into lines of at most `columns` columns.
// Puts `prefix` before every line except the first, whose prefix the caller has already written.
void AppendWrapped(std::string_view text, const std::string& prefix, int columns, std::string* out);

}  // namespace oscar
