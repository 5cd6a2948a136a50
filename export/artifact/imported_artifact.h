// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What somebody published, kept as it is: an artifact that is "imported, unverified". It has no
// moments and no report, so nothing but oscar-export opens it (Artifact::OpenImported), and what it
// holds is what its files held: rotations, and what belongs to them.
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
  int64_t num_kv_heads = 0;  // 0: the file does not say
  int64_t head_dim = 0, v_head_dim = 0;
  RotationLayer k = {}, v = {};  // a latent's is in both
};

struct ImportedFiles {
  std::string from;                               // the format: "v3"
  std::vector<std::filesystem::path> files = {};  // what was read
  Json header = Json::object();                   // what they say of themselves
  std::string model_id = "unknown";
  bool latents = false;
  std::vector<ImportedLayer> layers = {};  // by layer_id
};

// Writes an artifact that reads back to the same values. Throws InputError where the files hold
// nothing, or a rotation is not orthogonal as float32 is.
void WriteImported(const std::filesystem::path& output, const ImportedFiles& imported,
                   const Json& program);

}  // namespace oscar
