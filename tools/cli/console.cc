// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/console.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>

namespace oscar {
namespace {

int TerminalColumns(int fd, int otherwise) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

std::string UtcNow() {
  using namespace std::chrono;
  const auto now = time_point_cast<milliseconds>(system_clock::now());
  const auto milliseconds_of_second = now.time_since_epoch().count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(system_clock::to_time_t(now)),
                     milliseconds_of_second);
}

double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Terminal columns of the character that starts with `lead`; 0 for continuation bytes.
int ColumnsOf(unsigned char lead) {
  if ((lead & 0xC0) == 0x80) return 0;
  return lead >= 0xE0 ? 2 : 1;
}

}  // namespace

Console ProcessConsole() {
  const auto environment = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  Console console;
  console.out = &std::cout;
  console.err = &std::cerr;
  console.live = isatty(STDERR_FILENO) == 1 && environment("TERM") != "dumb";
  console.color = console.live && environment("NO_COLOR").empty();
  console.err_columns = [] { return TerminalColumns(STDERR_FILENO, 80); };
  console.out_columns = isatty(STDOUT_FILENO) == 1 ? TerminalColumns(STDOUT_FILENO, 80) : 100;
  console.seconds = SteadySeconds;
  console.utc = UtcNow;
  return console;
}

int CountColumns(std::string_view text) {
  int columns = 0;
  for (const char c : text) columns += ColumnsOf(static_cast<unsigned char>(c));
  return columns;
}

void AppendWrapped(std::string_view text, const std::string& prefix, int columns,
                   std::string* out) {
  int used = CountColumns(prefix);
  bool first = true;  // first character of a line
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!first && used + 1 + CountColumns(word) > columns) {
      *out += "\n" + prefix;
      used = CountColumns(prefix);
      first = true;
    }
    if (!first) *out += ' ';
    *out += word;
    used += CountColumns(word) + (first ? 0 : 1);
    first = false;
  }
  *out += '\n';
}

std::string FitColumns(std::string_view text, int columns) {
  int used = 0;
  size_t end = 0;
  while (end < text.size()) {
    const int wide = ColumnsOf(static_cast<unsigned char>(text[end]));
    if (used + wide > columns) break;
    used += wide;
    ++end;
  }
  return std::string(text.substr(0, end));
}

}  // namespace oscar
