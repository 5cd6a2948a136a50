// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Names of the calibration choices. They are stored in artifacts.
#include "calib/options.h"

#include <fmt/format.h>

#include "linalg/base/error.h"

namespace oscar {

std::string_view ValueTargetName(ValueTarget target) {
  return target == ValueTarget::kDiagonal ? "diagonal" : "attention_output";
}

ValueTarget ValueTargetFromName(std::string_view name) {
  for (ValueTarget target : {ValueTarget::kAttentionOutput, ValueTarget::kDiagonal}) {
    if (name == ValueTargetName(target)) return target;
  }
  throw UsageError(
      fmt::format("value target '{}' is unknown: expected attention_output or diagonal", name));
}

std::string_view ClipModeName(ClipMode mode) {
  return mode == ClipMode::kFixed ? "fixed" : "search";
}

}  // namespace oscar
