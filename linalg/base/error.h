// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Failures that are not our bugs: bad usage, bad input, a failing device. Each exception type has
// its own process exit code. A message says what failed and where, what was expected and what was
// found. A Remedy stands for what to try, which tools/cli/command.cc expresses with the program's
// options. A bug of ours is never an Error but an OSCAR_CHECK (check.h), which aborts.
#pragma once

#include <stdexcept>
#include <string>

namespace oscar {

// Process exit codes, shared by all commands. zoo/signing/trust_error.h defines more.
enum class ExitCode {
  kDone = 0,
  kGateFailed = 1,
  kUsage = 2,
  kInput = 3,
  kResources = 4,
  kInterrupted = 130
};

enum class Remedy {
  kNone,
  kStartOver,
  kWiderFloats,
  kWithoutChoice,
  kHoldOutMore,
  kOtherConsumer,
  kLess,
  kLessAtOnce,
  kOtherPrompts,
  kShorterAnswers,
  kDumpAsHdf5,
  kFolded,
  kNotFolded,
  kSeePlan,
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode exit_code, const std::string& message, Remedy remedy = Remedy::kNone)
      : std::runtime_error(message), exit_code_(exit_code), remedy_(remedy) {}
  ExitCode exit_code() const { return exit_code_; }
  Remedy remedy() const { return remedy_; }

 private:
  ExitCode exit_code_;
  Remedy remedy_;
};

// An invalid command line or configuration file.
struct UsageError : Error {
  explicit UsageError(const std::string& message, Remedy remedy = Remedy::kNone)
      : Error(ExitCode::kUsage, message, remedy) {}
};

// A checkpoint, dump, artifact or data file that is missing, malformed, or does not fit the others.
struct InputError : Error {
  explicit InputError(const std::string& message, Remedy remedy = Remedy::kNone)
      : Error(ExitCode::kInput, message, remedy) {}
};

// Values that break a numerical contract: NaN, a solver that did not converge, a matrix that is not
// orthogonal.
struct NumericalError : InputError {
  using InputError::InputError;
};

// No GPU, out of memory, full disk, or a file system error.
struct ResourceError : Error {
  explicit ResourceError(const std::string& message, Remedy remedy = Remedy::kNone)
      : Error(ExitCode::kResources, message, remedy) {}
};

// The user asked the program to stop. The work so far is on disk.
struct Interrupted : Error {
  explicit Interrupted(const std::string& message) : Error(ExitCode::kInterrupted, message) {}
};

}  // namespace oscar
