// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Failures that are not our bug: bad usage, bad input, a device that gave up. Each type is one
// process exit code. A message says what failed and where, what was expected, what was found, and
// what to try. A defect of ours is never an Error; it is OSCAR_CHECK (check.h), which aborts.
#pragma once

#include <stdexcept>
#include <string>

namespace oscar {

// Process exit codes, shared by all commands.
enum class ExitCode {
  kDone = 0,
  kGateFailed = 1,
  kUsage = 2,
  kInput = 3,
  kResources = 4,
  kInterrupted = 130
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode exit_code, const std::string& message)
      : std::runtime_error(message), exit_code_(exit_code) {}
  ExitCode exit_code() const { return exit_code_; }

 private:
  ExitCode exit_code_;
};

// A command line or configuration file that cannot be followed.
struct UsageError : Error {
  explicit UsageError(const std::string& message) : Error(ExitCode::kUsage, message) {}
};

// A checkpoint, dump, artifact or data file that is missing, malformed, or does not fit the others.
struct InputError : Error {
  explicit InputError(const std::string& message) : Error(ExitCode::kInput, message) {}
};

// Values that break a numerical contract: NaN, a solver that did not converge, a matrix that is not
// orthogonal.
struct NumericalError : InputError {
  using InputError::InputError;
};

// No GPU, out of memory, disk full, file system errors.
struct ResourceError : Error {
  explicit ResourceError(const std::string& message) : Error(ExitCode::kResources, message) {}
};

// The user asked to stop; the work so far is on disk.
struct Interrupted : Error {
  explicit Interrupted(const std::string& message) : Error(ExitCode::kInterrupted, message) {}
};

}  // namespace oscar
