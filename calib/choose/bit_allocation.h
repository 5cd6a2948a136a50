// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Allocates bits to the parts of a cache (a side of a layer, or of a head) under one budget,
// assuming that damages add up. It always takes the steepest step along the convex hulls of damage
// over bits. Trap: damages of keys and values must be in the same unit; see ValueDamage.
#pragma once

#include <span>
#include <vector>

namespace oscar {

struct BitPoint {
  double bits = 2;    // whole, or a mean over the elements of a part
  double damage = 0;  // nats
};

struct BitPart {
  double elements = 0;           // per token
  std::vector<BitPoint> points;  // ascending bits; a part gets at least the first
};

// Returns the bits of each part. Starting with the fewest bits, it always takes the step that
// lowers the summed damage most per stored bit and fits into `budget` (bits per token for all
// parts). From a hull point, a part's steepest step leads to the next one; other steps only fill
// what is left. The summed damage never rises with the budget. Only the starting point can exceed
// the budget.
std::vector<double> AllocateBits(std::span<const BitPart> parts, double budget);

// Converts a relative output error caused by values to nats. 2-bit keys cost `key_kl` nats at the
// output error `key_error`, and costs grow with the square of the error. Errors of values spread
// evenly over tokens and dimensions and cost the next token about half as much (measured in
// export/simulate/RESULTS.md). Returns 0 if keys have no error.
inline constexpr double kValueShare = 0.5;
double ValueDamage(double value_error, double key_kl, double key_error);

}  // namespace oscar
