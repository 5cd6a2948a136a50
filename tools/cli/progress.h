// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows the progress of a command: on a terminal a live line with the time left, and everywhere a
// permanent line per step (a layer). The time left is the mean time of the last steps times the
// number of remaining steps, so it adapts to a model whose layers differ.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "tools/cli/log.h"

namespace oscar {

class Progress {
 public:
  explicit Progress(Log* log) : log_(log) {}

  // Starts a task, which replaces the previous one. `task` names the work ("calibrating"). `done`:
  // how many of the `steps` an earlier run did.
  void Begin(std::string task, int64_t steps, int64_t done = 0);

  // Reports the progress within a step: `part`, the share that is done, in [0, 1], and `doing`, the
  // current activity. Calls are cheap, because the line is redrawn at most ten times a second.
  void Update(double part, std::string_view doing);

  // Ends a step: writes its permanent line, as the log event "step_done" with `fields`.
  void StepDone(std::string_view line, const Json& fields);

  // Erases the live line.
  void End();

  // Returns the seconds left, or a negative number until this run has finished a step.
  double SecondsLeft() const;

  // Returns the current live line, at most `columns` wide. Parts that do not fit are left out.
  std::string Line(int columns) const;

 private:
  Log* log_;
  std::string task_, doing_;
  int64_t steps_ = 0, done_ = 0;
  double part_ = 0;
  double step_begin_ = 0, last_drawn_ = 0;  // seconds
  std::deque<double> durations_;            // seconds of the last steps
};

// Formats seconds like "4 s", "3 min 05 s", "2 h 07 min".
std::string Duration(double seconds);

}  // namespace oscar
