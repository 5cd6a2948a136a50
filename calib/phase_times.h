// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures how long each phase of a run takes, in seconds summed over layers, for timings.json and
// the log. Trap: phases on different threads overlap, so their sum exceeds the time of the run. On
// a GPU, a phase that only launches work looks short, and the phase that waits for this work looks
// long.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace oscar {

class PhaseTimes {
 public:
  using Clock = std::chrono::steady_clock;

  // Measures the time until it is destroyed.
  class Scope {
   public:
    Scope(PhaseTimes& times, std::string_view phase) : times_(times), phase_(phase) {}
    ~Scope() { times_.Add(phase_, std::chrono::duration<double>(Clock::now() - begin_).count()); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseTimes& times_;
    std::string_view phase_;
    Clock::time_point begin_ = Clock::now();
  };
  // `phase` must outlive the scope, as a literal does.
  Scope Measure(std::string_view phase) { return {*this, phase}; }

  void Add(std::string_view phase, double seconds) {
    const std::scoped_lock lock(mutex_);
    seconds_[std::string(phase)] += seconds;
  }
  std::map<std::string, double> seconds() const {
    const std::scoped_lock lock(mutex_);
    return seconds_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, double> seconds_;
};

}  // namespace oscar
