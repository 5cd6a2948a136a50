// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads rotations of any source that oscar-validate --rotation compares with ours:
//
//   .pt           every schema of rotation_file.h. A file whose objective names a side can only be
//                 given for that side
//   .npy          [layers, d, d] or [layers, num_kv_heads, d, d], float16, float32 or float64. It
//                 has no layer ids; its first matrix is for the first attention layer, and so on
//   .safetensors  layer.<id>.<k|v>.rotation R, [d, d] or [num_kv_heads, d, d], and optionally
//                   k.query_rotation, v.output_rotation: R^-T, if R is not orthogonal
//                   k.mean, k.pair_scale: [d] or [num_kv_heads, d]
//                 The cache stores (k * pair_scale - mean) R, as in artifacts (artifact_format.h)
//   a directory   k_rotation*.pt and v_rotation*.pt, or layer_<id>.pt of latent attention
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "export/formats/rotation_file.h"

namespace oscar {

struct GivenRotations {
  std::optional<RotationFile> k, v;  // a side without a file is not rotated
};

// Reads `files` as given on the command line: one path for both sides, or KEYS:VALUES, where one
// may be "none". Throws InputError naming file, layer and tensor for a file that cannot be read or
// is of the other side, and for a tensor of another shape. Throws NumericalError for a matrix that
// is neither orthogonal nor stored with its inverse.
GivenRotations ReadGivenRotations(std::string_view files);

// Describes a file for people: "28 layers, a matrix for each of 8 KV heads, orthogonal to 4.5e-08".
std::string DescribeRotations(const RotationFile& file);

}  // namespace oscar
