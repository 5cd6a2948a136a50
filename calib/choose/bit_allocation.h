// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Allocates bits to the parts of a cache (keys or values of a layer, or of a KV head) under one
// budget, assuming that the parts' damages add up. It repeatedly takes the steepest step on the
// convex hulls of damage over bits. Trap: damages of keys and values must be in the same unit; see
// ValueDamage.
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

// Returns the bits of each part. All parts start with their fewest bits. Then it repeatedly takes
// the step that lowers the summed damage most per stored bit and fits into `budget` (bits per token
// for all parts). From a point on its convex hull, a part's steepest step leads to the next hull
// point; other steps only use up the rest of the budget. The summed damage never rises with the
// budget. The result exceeds the budget only if the fewest bits do.
std::vector<double> AllocateBits(std::span<const BitPart> parts, double budget);

// Converts a relative output error caused by values to nats. The scale comes from 2-bit keys, whose
// output error `key_error` costs `key_kl` nats; a cost grows with the square of the error. Errors
// of values spread evenly over tokens and dimensions, and cost the next token about half as much
// (kValueShare, measured in export/simulate/RESULTS.md). Returns 0 if keys have no error.
inline constexpr double kValueShare = 0.5;
double ValueDamage(double value_error, double key_kl, double key_error);

}  // namespace oscar
