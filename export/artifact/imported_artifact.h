// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// An artifact that is "imported, unverified": published rotations of others, unchanged, with the
// data that belongs to them. It has no moments and no report, so only oscar-export opens it
// (Artifact::OpenImported).
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

// Writes an artifact that reads back to the same values. Throws InputError if the files hold
// nothing, or if a rotation is not orthogonal to float32 precision.
void WriteImported(const std::filesystem::path& output, const ImportedFiles& imported,
                   const Json& program);

}  // namespace oscar
