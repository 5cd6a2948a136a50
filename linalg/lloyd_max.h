// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lloyd-Max quantizers (Lloyd 1957, Max 1960): levels are the means of their cells, thresholds the
// midpoints of neighbouring levels. Two densities: a coordinate of a point on the unit sphere times
// sqrt(dim), which tends to N(0, 1) as dim grows, and N(0, 1) as vLLM's TurboQuant solves it.
// vLLM's solution has not converged, but OSCAR's serving constants come from it.
#pragma once

#include <cstdint>
#include <vector>

namespace oscar {

struct LevelTable {
  std::vector<double> levels;      // [2^bits] ascending, symmetric about 0
  std::vector<double> thresholds;  // [2^bits - 1]
};

// The sphere in R^dim, dim >= 4: t = sqrt(dim) u_1 has density c (1 - t^2 / dim)^((dim - 3) / 2).
LevelTable SphereLloydMax(int bits, int64_t dim);

// vLLM's solver, in units of sigma: N(0, 1 / dim), starts at the midpoints of equal cells of +-3.5
// sigma, outer edges +-10.5 sigma, 200-interval trapezoids, at most 200 iterations, stops at a
// change below 1e-10.
LevelTable TrapezoidLloydMax(int bits, int64_t dim);

}  // namespace oscar
