// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes the K and the V file of one export, of any version, reads them back with the strict reader
// and compares bit for bit. Call it on a staging directory; a difference throws.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/formats/pt/pt_file.h"
#include "export/formats/rotation_file.h"

namespace oscar {

// The content of a file to write.
struct SglangFile {
  struct Tensor {
    const char* key;                      // "rotation", "eigenvalues", "q_rotation", "k_mean"
    FloatTensorPtr RotationLayer::*read;  // the reader's member for it
    FloatTensorPtr values;                // null if not written
  };
  struct Layer {
    int64_t layer_id = 0;
    std::vector<Tensor> tensors;
  };
  std::filesystem::path name;  // relative to the exported directory
  int64_t version = 1;
  std::string objective;
  std::string source_grouping;  // "layer", "head", "per_kv_head"
  std::string value_target;     // for V; empty if not written
  Json transform;               // for version 3; null if not written
  Json calibration;             // null if not written
  std::vector<Layer> layers;
};

// Whether both are null, or have the same shape and bits.
bool SameBits(const FloatTensorPtr& a, const FloatTensorPtr& b);

// Throws InputError if the files are not a pair, NumericalError if a matrix is not a valid
// transform, ResourceError for the disk.
void WriteSglangPair(const std::filesystem::path& directory, const SglangFile& k,
                     const SglangFile& v);

}  // namespace oscar
