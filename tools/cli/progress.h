// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// How far a command is: one live line with the time left on a terminal, one permanent line per step
// (a layer) everywhere. The time left is the mean of the last steps times what remains, so it
// follows a model whose layers differ.
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

  // `task` names the work ("calibrating"); `steps` of it, of which `done` were done by an earlier
  // run. Replaces the task before.
  void Begin(std::string task, int64_t steps, int64_t done = 0);

  // Inside a step: the part of it that is done, in [0, 1], and what is going on. Cheap: redraws at
  // most ten times a second.
  void Update(double part, std::string_view doing);

  // The step is done: writes its permanent line, as the log event "step_done" with `fields`.
  void StepDone(std::string_view line, const Json& fields);

  // Erases the live line.
  void End();

  // Seconds left, or a negative number while no step of this run has been finished.
  double SecondsLeft() const;

  // The live line at this moment, at most `columns` wide; parts that do not fit are left out.
  std::string Line(int columns) const;

 private:
  Log* log_;
  std::string task_, doing_;
  int64_t steps_ = 0, done_ = 0;
  double part_ = 0;
  double step_begin_ = 0, last_drawn_ = 0;  // seconds
  std::deque<double> durations_;            // seconds of the last steps
};

// "4 s", "3 min 05 s", "2 h 07 min".
std::string Duration(double seconds);

}  // namespace oscar
