// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "linalg/base/check.h"

namespace oscar {
namespace {

constexpr size_t kAveragedSteps = 8;
constexpr double kRedrawSeconds = 0.1;
constexpr int kBarColumns = 24;

}  // namespace

std::string Duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(std::max(0.0, seconds)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

void Progress::Begin(std::string task, int64_t steps, int64_t done) {
  OSCAR_CHECK_LE(done, steps);
  task_ = std::move(task);
  doing_.clear();
  steps_ = steps;
  done_ = done;
  part_ = 0;
  durations_.clear();
  step_begin_ = last_drawn_ = log_->console().seconds();
  if (log_->shows_live()) log_->Live(Line(log_->console().err_columns() - 1));
}

void Progress::Update(double part, std::string_view doing) {
  part_ = std::clamp(part, 0.0, 1.0);
  const double now = log_->console().seconds();
  if (!log_->shows_live() || now - last_drawn_ < kRedrawSeconds) return;
  doing_ = doing;
  last_drawn_ = now;
  log_->Live(Line(log_->console().err_columns() - 1));
}

void Progress::StepDone(std::string_view line, const Json& fields) {
  OSCAR_CHECK_LT(done_, steps_);
  const double now = log_->console().seconds();
  durations_.push_back(now - step_begin_);
  if (durations_.size() > kAveragedSteps) durations_.pop_front();
  step_begin_ = last_drawn_ = now;
  ++done_;
  part_ = 0;
  doing_.clear();
  log_->Info("step_done", line, fields);
  if (log_->shows_live()) log_->Live(Line(log_->console().err_columns() - 1));
}

void Progress::End() { log_->Live(""); }

double Progress::SecondsLeft() const {
  if (durations_.empty()) return -1;
  const double mean = std::accumulate(durations_.begin(), durations_.end(), 0.0) /
                      static_cast<double>(durations_.size());
  const double in_step = log_->console().seconds() - step_begin_;
  return std::max(0.0, mean * static_cast<double>(steps_ - done_) - std::min(in_step, mean));
}

std::string Progress::Line(int columns) const {
  const double fraction =
      steps_ == 0 ? 1.0 : (static_cast<double>(done_) + part_) / static_cast<double>(steps_);
  const int filled = static_cast<int>(fraction * kBarColumns);
  const double left = SecondsLeft();
  // The parts of the line, in order. The part with `rank` 0 is dropped last.
  struct Piece {
    std::string text;
    int rank;
  };
  std::vector<Piece> pieces = {
      {task_, 2},
      {fmt::format("[{:#<{}}{:.<{}}]", "", filled, "", kBarColumns - filled), 3},
      {fmt::format("{}/{} {:3.0f}%", done_, steps_, std::floor(100 * fraction)), 0},
      {left < 0 ? "" : "ETA " + Duration(left), 1},
      {doing_, 4},
  };
  const auto join = [&] {
    std::string line;
    for (const Piece& piece : pieces)
      if (!piece.text.empty()) line += (line.empty() ? "" : "  ") + piece.text;
    return line;
  };
  for (int rank = 4; rank > 0 && CountColumns(join()) > columns; --rank) {
    for (Piece& piece : pieces)
      if (piece.rank == rank) piece.text.clear();
  }
  return FitColumns(join(), columns);
}

}  // namespace oscar
