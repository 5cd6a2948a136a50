// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The messages of a running command on standard error. They are sentences for people, or with
// --log-format json one object {"event", "fields", "level", "message", "time"} per line. Trap: a
// log is not synchronized; only the thread that runs the command may use it.
#pragma once

#include <string>
#include <string_view>

#include "capture/files/strict_json.h"  // Json
#include "tools/cli/console.h"

namespace oscar {

enum class LogFormat { kText, kJson };
enum class LogLevel { kInfo, kError };

class Log {
 public:
  // `quiet` drops everything except errors.
  Log(Console console, LogFormat format, bool quiet);
  ~Log();  // erases the live line

  // `event` is a stable word for programs ("layer_done"); `message` says the same to people.
  void Info(std::string_view event, std::string_view message, const Json& fields = Json::object());
  void Error(std::string_view event, std::string_view message, const Json& fields = Json::object());

  // Replaces the live line at the bottom of the terminal; "" erases it. Does nothing unless the
  // output is a terminal, the format is text, and `quiet` is off.
  void Live(std::string_view line);
  bool shows_live() const { return shows_live_; }
  const Console& console() const { return console_; }

 private:
  void Write(LogLevel level, std::string_view event, std::string_view message, const Json& fields);

  Console console_;
  LogFormat format_;
  bool quiet_, shows_live_;
  std::string live_;
};

// Returns the JSON line without a newline. Bytes that are not UTF-8 are replaced.
std::string LogLineJson(LogLevel level, std::string_view event, std::string_view message,
                        const Json& fields, const std::string& utc);

}  // namespace oscar
