// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Error feedback factors (linalg/error_feedback.h) of keys or values for all heads, in the form of
// the scalar codec and in that of the write kernels.
#pragma once

#include <vector>

#include "export/cuda/device/device_array.h"
#include "export/cuda/write/write_cache.h"
#include "linalg/error_feedback.h"

namespace oscar {

struct DeviceFactors {
  // Takes a factor [dim, dim] for each head.
  explicit DeviceFactors(const std::vector<Matrix>& heads) {
    std::vector<int8_t> columns;
    std::vector<float> units;
    for (const Matrix& factor : heads) {
      const PackedFeedback packed = PackFeedbackFactor(factor);
      columns.insert(columns.end(), packed.columns.begin(), packed.columns.end());
      units.push_back(packed.unit);
      for (Eigen::Index i = 0; i < factor.rows(); ++i) {
        for (Eigen::Index j = 0; j < factor.cols(); ++j)
          values.push_back(static_cast<float>(factor(i, j)));
      }
    }
    device_columns = DeviceArray<int8_t>(columns);
    device_units = DeviceArray<float>(units);
  }
  void Give(WriteSide& side) const {
    side.feedback = device_columns.data();
    side.feedback_units = device_units.data();
  }
  std::vector<float> values;  // [heads, dim, dim]
  DeviceArray<int8_t> device_columns;
  DeviceArray<float> device_units;
};

}  // namespace oscar
