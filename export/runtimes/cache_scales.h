// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Static scales of 8-bit and 4-bit caches. A number x is stored as x / scale, so that the largest
// |x| in the calibration becomes the largest number of the type. Trap: such a cache stores keys and
// values without transforms, so an artifact's rotations and means do not apply to it.
#pragma once

#include <cstdint>
#include <vector>

#include "export/artifact/artifact_reader.h"

namespace oscar {

inline constexpr double kLargestE4m3 = 448;  // largest number of float8_e4m3fn
// In NVFP4, 16 elements of type E2M1 (at most 6) share a scale, which is an E4M3 number.
inline constexpr double kLargestNvfp4 = 6 * kLargestE4m3;

struct LayerMaxima {
  int64_t layer_id = 0;      // the checkpoint's own number
  std::vector<double> k, v;  // [num_kv_heads]; [1] if imported scales are per layer
};
// Returns one scale for all heads, in float32.
float ScaleOf(const std::vector<double>& of_heads, double largest_of_type);

// Returns the largest magnitudes of every layer. Throws InputError if the artifact lacks them, or
// if one is zero or infinite. A maximum of zero would give a scale of zero.
std::vector<LayerMaxima> MaximaOf(const Artifact& artifact);

}  // namespace oscar
