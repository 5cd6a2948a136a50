// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Static scales of caches of 8 and 4 bits: x is stored as x / scale, and the largest |x| that
// calibration saw is the largest number of the type. Trap: such a cache holds keys and values as
// they are; an artifact's rotations and means have no part in it.
#pragma once

#include <cstdint>
#include <vector>

#include "export/artifact/artifact_reader.h"

namespace oscar {

inline constexpr double kLargestE4m3 = 448;  // of float8_e4m3fn
// Of NVFP4: a block's scale is an E4M3 number, its elements are E2M1, up to 6.
inline constexpr double kLargestNvfp4 = 6 * kLargestE4m3;

struct LayerMaxima {
  int64_t layer_id = 0;      // the checkpoint's own number
  std::vector<double> k, v;  // [num_kv_heads]; of imported scales of layers [1]
};
// What x is divided by: of all heads, in float32.
float ScaleOf(const std::vector<double>& of_heads, double largest_of_type);

// Of every layer. InputError where the artifact does not know them, or where they are zero: a scale
// of zero is what a layer gets that nothing was seen of.
std::vector<LayerMaxima> MaximaOf(const Artifact& artifact);

}  // namespace oscar
