// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lloyd-Max quantizers (Lloyd 1957, Max 1960): levels are the means of their cells, thresholds are
// the midpoints of neighbouring levels. There are quantizers for two densities. The first is that
// of sqrt(dim) times a coordinate of a point on the unit sphere, which tends to N(0, 1) as dim
// grows. The second is N(0, 1) as vLLM's TurboQuant solves it. vLLM's solution has not converged,
// but OSCAR's serving constants come from it.
#pragma once

#include <cstdint>
#include <vector>

namespace oscar {

struct LevelTable {
  std::vector<double> levels;      // [2^bits] ascending, symmetric about 0
  std::vector<double> thresholds;  // [2^bits - 1]
};

// For the unit sphere in R^dim, dim >= 4: t = sqrt(dim) u_1 has the density c (1 - t^2 / dim)^((dim
// - 3) / 2).
LevelTable SphereLloydMax(int bits, int64_t dim);

// vLLM's solver for N(0, 1 / dim); the result is in units of sigma. It starts from the midpoints of
// equal cells between +-3.5 sigma, has outer edges at +-10.5 sigma, and integrates with 200
// trapezoids. It stops after 200 iterations or at a change below 1e-10.
LevelTable TrapezoidLloydMax(int bits, int64_t dim);

}  // namespace oscar
