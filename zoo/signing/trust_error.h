// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Errors for refused signatures and trust policies. Each reason has its own process exit code.
#pragma once

#include <string_view>

#include "linalg/base/error.h"

namespace oscar {

struct TrustExit {
  static constexpr ExitCode kUnsigned{10};   // no signature, or fewer than required
  static constexpr ExitCode kWrongKey{11};   // signed, but by an untrusted key
  static constexpr ExitCode kAltered{12};    // a file or a signature was changed after signing
  static constexpr ExitCode kExtraFile{13};  // a file that the signature does not name
  static constexpr ExitCode kTooOld{14};     // rolled back, expired, or a newer version is hidden
  static constexpr ExitCode kLookAlike{15};  // a name that only looks like a trusted one
};

// An error for a signature that is missing, by the wrong signer, or for other content.
struct TrustError : Error {
  using Error::Error;
};

// Returns the kind that --log-format json prints for an exit code; empty for unlisted codes.
inline std::string_view TrustKind(ExitCode code) {
  if (code == TrustExit::kUnsigned) return "unsigned";
  if (code == TrustExit::kWrongKey) return "wrong_key";
  if (code == TrustExit::kAltered) return "altered";
  if (code == TrustExit::kExtraFile) return "extra_file";
  if (code == TrustExit::kTooOld) return "too_old";
  if (code == TrustExit::kLookAlike) return "look_alike";
  return {};
}

}  // namespace oscar
