// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/log.h"

#include <ostream>

namespace oscar {
namespace {

constexpr std::string_view kEraseLine = "\r\033[K";

}  // namespace

std::string LogLineJson(LogLevel level, std::string_view event, std::string_view message,
                        const Json& fields, const std::string& utc) {
  const Json line = {{"event", std::string(event)},
                     {"fields", fields},
                     {"level", level == LogLevel::kError ? "error" : "info"},
                     {"message", std::string(message)},
                     {"time", utc}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Log::Log(Console console, LogFormat format, bool quiet)
    : console_(std::move(console)),
      format_(format),
      quiet_(quiet),
      shows_live_(console_.live && format == LogFormat::kText && !quiet) {}

Log::~Log() { Live(""); }

void Log::Info(std::string_view event, std::string_view message, const Json& fields) {
  if (!quiet_) Write(LogLevel::kInfo, event, message, fields);
}

void Log::Error(std::string_view event, std::string_view message, const Json& fields) {
  Write(LogLevel::kError, event, message, fields);
}

void Log::Live(std::string_view line) {
  if (!shows_live_ || (line.empty() && live_.empty())) return;
  live_ = FitColumns(line, console_.err_columns() - 1);  // a full line would wrap
  *console_.err << kEraseLine << live_ << std::flush;
}

void Log::Write(LogLevel level, std::string_view event, std::string_view message,
                const Json& fields) {
  std::ostream& err = *console_.err;
  if (format_ == LogFormat::kJson) {
    err << LogLineJson(level, event, message, fields, console_.utc()) << std::endl;
    return;
  }
  if (!live_.empty()) err << kEraseLine;
  if (level == LogLevel::kError) err << (console_.color ? "\033[1;31merror:\033[0m " : "error: ");
  err << message << '\n' << live_ << std::flush;
}

}  // namespace oscar
