// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads rotations from any source, to be compared with ours (oscar-validate --rotation):
//
//   .pt           every schema of rotation_file.h; if a file names its side, only for that side
//   .npy          [layers, d, d] or [layers, num_kv_heads, d, d], float16, float32 or float64
//   .safetensors  layer.<id>.<k|v>.rotation [d, d] or [num_kv_heads, d, d], and optionally
//                 .query_rotation of keys and .output_rotation of values (R^-T, if R is not
//                 orthogonal), layer.<id>.k.mean and .pair_scale [d] or [num_kv_heads, d]: the
//                 cache stores (k * pair_scale - mean) R, as in artifacts (artifact_format.h)
//   a directory   k_rotation*.pt and v_rotation*.pt, or layer_<id>.pt of latent attention
//
// An array has no layer numbers, so its matrices are those of the model's attention layers in
// order.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "export/formats/rotation_file.h"

namespace oscar {

struct GivenRotations {
  std::optional<RotationFile> k, v;  // a side without a file is not rotated
};

// `files`: as on the command line, one file for both sides, or KEYS:VALUES, one of which may be
// "none". Throws InputError naming file, layer and tensor if it cannot be read, has another shape,
// belongs to the other side, or is neither orthogonal nor stored with its inverse.
GivenRotations ReadGivenRotations(std::string_view files);

// Describes a file for people: "28 layers, a matrix for each of 8 KV heads, orthogonal to 4.5e-08".
std::string DescribeRotations(const RotationFile& file);

}  // namespace oscar
