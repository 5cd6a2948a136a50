// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// NormalFloat levels: quantiles of the normal distribution stretched to [-1, 1] (QLoRA, arXiv
// 2305.14314; as KVQuant computes them). The negative half has one level less than the positive
// half, so the levels are not symmetric.
#pragma once

#include <vector>

namespace oscar {

// Phi^-1(p), 0 < p < 1, to float64 precision.
double NormalQuantile(double p);

// 2^bits levels, ascending, from -1 through 0 to 1; bits 2 to 8.
std::vector<float> NormalFloatLevels(int bits);

}  // namespace oscar
