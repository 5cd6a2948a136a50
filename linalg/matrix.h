// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The one dense matrix type: float64, column-major. Read-only arguments are MatrixRef, which refers
// to blocks without a copy.
#pragma once

#include <Eigen/Core>

namespace oscar {

using Matrix = Eigen::MatrixXd;  // [rows, cols], column-major
using Vector = Eigen::VectorXd;  // [size]
using MatrixRef = Eigen::Ref<const Eigen::MatrixXd>;
using VectorRef = Eigen::Ref<const Eigen::VectorXd>;

}  // namespace oscar
