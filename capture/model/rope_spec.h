// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embeddings as data: which dimensions turn, and how fast. "half" layout only:
// dimension i of the rotary part is paired with i + rotary_dim/2. Trap: the pair (theta, rope_type)
// is spelled twice in the wild, rope_theta + rope_scaling and rope_parameters; both must end in the
// same RopeSpec. Source: transformers 5, modeling_rope_utils.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace oscar {

enum class RopeKind { kDefault, kLinear, kLlama3 };

struct RopeSpec {
  RopeKind kind = RopeKind::kDefault;
  double theta = 10000.0;         // base of the geometric series of frequencies
  double factor = 1.0;            // kLinear, kLlama3: how much slower the (low) frequencies turn
  double low_freq_factor = 1.0;   // kLlama3: wavelengths above original / low are slowed by factor,
  double high_freq_factor = 4.0;  //          below original / high are kept, between are blended
  int64_t original_max_positions = 0;  // kLlama3: context length before scaling, in tokens
  int64_t rotary_dim = 0;              // leading dimensions of a head that turn; even
  bool operator==(const RopeSpec&) const = default;
};

// Radians per token of each pair, computed in float64.  // [rotary_dim / 2]
std::vector<double> InverseFrequencies(const RopeSpec& rope);

// "default theta=1e+06", "llama3 theta=500000 factor=8 low=1 high=4 original=8192": what is really
// applied.
std::string DescribeRope(const RopeSpec& rope);

}  // namespace oscar
