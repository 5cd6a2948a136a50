// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Files for latent attention in the form that the October tree of OSCAR's SGLang loads: a directory
// with a file for each layer.
//
//   <out>/layer_<id>.pt   a bare [rank, rank] matrix: latents c are stored as c R. If any layer
//                         has more than an orthogonal matrix, every layer has a dict with
//                         rotation, q_rotation (R^-T: queries, and back), mean and transform
//   <out>/launch.txt      environment and flags
//
// The loader does not clip and uses the identity for a missing layer, so every layer with a cache
// is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "export/formats/pt/pt_file.h"
#include "export/formats/sglang.h"  // SglangServing

namespace oscar {

// Absent tensors are null.
struct MlaFolderLayer {
  int64_t layer_id = 0;            // the checkpoint's own number
  FloatTensorPtr rotation;         // [rank, rank]; the cache stores (c - mean) R
  FloatTensorPtr q_rotation = {};  // [rank, rank], R^-T; null: R itself
  FloatTensorPtr mean = {};        // [rank]
};

struct MlaFolder {
  std::vector<MlaFolderLayer> layers;
  SglangServing serving;  // clip ratios are not used
  Json calibration;       // LaunchModel; null if unknown
};

// Writes the folder and reads it back like WriteSglang, with the same errors.
void WriteMlaFolder(const std::filesystem::path& out, const MlaFolder& folder);

}  // namespace oscar
