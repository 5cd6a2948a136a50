// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C and SIGTERM: the first requests a stop at the next layer boundary, the second ends the
// process at once. Trap: for async-signal safety the handler only sets a flag and writes a notice
// that was prepared beforehand.
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
