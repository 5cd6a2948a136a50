// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Files for latent attention (MLA) that the October tree of OSCAR's SGLang loads: a directory with
// a file for each layer.
//
//   <out>/layer_<id>.pt   a bare [rank, rank] matrix R: the cache stores latents c as c R. If any
//                         layer has a mean or a non-orthogonal R, all files are dicts with rotation
//                         and transform. If any layer has q_rotation (R^-T for queries and outputs)
//                         or mean, all files have it
//   <out>/launch.txt      environment and flags of the server
//
// Every layer with a cache is written, because the loader uses the identity for a missing layer.
// The loader does not clip.
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

// Writes the folder as WriteSglang does: reads it back, and throws the same errors.
void WriteMlaFolder(const std::filesystem::path& out, const MlaFolder& folder);

}  // namespace oscar
