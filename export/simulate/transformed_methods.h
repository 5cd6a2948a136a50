// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Methods that transform keys or values by calib/fit/transform_fit.h, fitted to the artifact's
// moments. Each method has one description, and one simulator serves all. An arm that clips uses
// the ratios given here, which were chosen for these transforms; 0 means the artifact's ratios.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "calib/fit/transform_fit.h"
#include "export/simulate/cache_method.h"

namespace oscar {

struct TransformedMethod {
  std::string_view name;
  std::string_view description;              // one line for people
  KeyRecipe keys;                            // per KV head, with the artifact's composition
  std::optional<double> value_epsilon = {};  // balanced values; none: OSCAR's rotation of values
  int k_bits = 2, v_bits = 2;
  double k_clip = 0.92, v_clip = 0.92;  // 0: the artifact's
};

std::vector<CacheMethod> TransformedMethods(std::span<const TransformedMethod> table);

}  // namespace oscar
