// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Handles Ctrl-C and SIGTERM. The first signal requests a stop at the next layer boundary, the
// second ends the process at once. Trap: a signal handler may call few functions (async-signal
// safety), so it only sets a flag and writes a notice that was prepared before.
#pragma once

#include <csignal>
#include <string>
#include <string_view>

namespace oscar {

// Installs the handlers during its lifetime. Only one object may exist at a time.
class StopSignal {
 public:
  // `notice` is written to standard error when the first signal arrives (at most 500 bytes).
  explicit StopSignal(std::string_view notice);
  ~StopSignal();  // restores the previous handlers
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool requested() const;

  // Throws Interrupted with `done` ("layer 12 of 36 is finished") if a stop was requested.
  void ThrowIfRequested(const std::string& done) const;

 private:
  struct sigaction old_interrupt_ {
  }, old_terminate_{};
};

}  // namespace oscar
