// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of each weight format, in a table: functions that unpack its codes, zero points
// and scales. Dequantize() does the rest. Trap: these functions run on the device of the parts, so
// they must not read values on the host.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "capture/checkpoint/weight_storage.h"

namespace oscar {

// Parts of one matrix [N, K]. A part that the format lacks is undefined.
struct MatrixParts {
  const WeightStorage& storage;
  at::Tensor codes, scales, zeros, group_index, global_scale;
  int64_t rows, columns;  // N of all stored rows; K
};

// All functions return float32.
struct FormatArithmetic {
  WeightFormat format;
  // Codes of rows [first, first + count).  // [count, K]
  at::Tensor (*codes)(const MatrixParts& parts, int64_t first, int64_t count);
  at::Tensor (*scales)(const MatrixParts& parts);  // [ceil(N / scale_rows), G]
  at::Tensor (*zeros)(const MatrixParts& parts);   // the same shape, or undefined: no zero points
  int64_t row_step;                                // `first` must be a multiple of it
};
const FormatArithmetic& FindArithmetic(WeightFormat format);

}  // namespace oscar
