// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Artifacts that are "imported, unverified": rotations that others published, unchanged, and the
// tensors that belong to them. They have no moments and no report, so only oscar-export opens them
// (Artifact::OpenAny).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/formats/rotation_file.h"

namespace oscar {

// Absent tensors are null and absent numbers zero or empty.
struct ImportedLayer {
  int64_t layer_id = 0;      // the checkpoint's own number
  int64_t num_kv_heads = 0;  // 0: unknown
  int64_t head_dim = 0, v_head_dim = 0;
  RotationLayer k = {}, v = {};  // a latent's rotation is in both
};

struct ImportedFiles {
  std::string from;                               // name of the format, like "v3"
  std::vector<std::filesystem::path> files = {};  // files that were read
  Json header = Json::object();                   // metadata of the files
  std::string model_id = "unknown";
  bool latents = false;
  std::vector<ImportedLayer> layers = {};  // by layer_id
};

// Writes an artifact that reads back as the same values. Throws InputError if the files contain no
// layers, NumericalError if a matrix is neither orthogonal nor stored with its inverse.
void WriteImported(const std::filesystem::path& output, const ImportedFiles& imported,
                   const Json& program);

}  // namespace oscar
