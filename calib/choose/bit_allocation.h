// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Bits for the parts of a cache (a side of a layer, or of a head) under one budget, if damages add
// up. Bits follow the steepest descent along the convex hulls of damage over bits. Trap: damages of
// keys and of values must be in one unit; see ValueDamage.
#pragma once

#include <span>
#include <vector>

namespace oscar {

struct BitPoint {
  double bits = 2;    // whole, or a mean over what a part is made of
  double damage = 0;  // nats
};

struct BitPart {
  double elements = 0;           // per token
  std::vector<BitPoint> points;  // ascending bits; the first is the least that a part gets
};

// Returns the bits of each part. Starting at the least, it always takes the step that lowers the
// summed damage most per stored bit and fits into `budget` (bits per token of all parts). From a
// hull point, a part's steepest step leads to the next one; other steps only fill what is left. The
// summed damage never rises with the budget. The budget is exceeded only if the least exceeds it.
std::vector<double> AllocateBits(std::span<const BitPart> parts, double budget);

// Wrong values and wrong keys both move the output of attention, so values are priced at what keys
// pay: `key_kl` nats for the relative output error `key_error` of 2-bit keys. The same energy costs
// the next token about half as much when it comes from values, which err evenly over tokens and
// dimensions: export/simulate/RESULTS.md has the measurement. 0 where keys have no error.
inline constexpr double kValueShare = 0.5;
double ValueDamage(double value_error, double key_kl, double key_error);

}  // namespace oscar
