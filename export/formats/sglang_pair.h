// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes the K file and the V file of an export, of any version. Reads them back with the strict
// reader and compares them bit for bit. The directory should be a staging directory, because this
// throws after writing if they differ.
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

// Throws InputError if the files are not a pair, NumericalError if a matrix is neither orthogonal
// nor undone by its inverse, ResourceError if writing fails or the files differ when they are read
// back.
void WriteSglangPair(const std::filesystem::path& directory, const SglangFile& k,
                     const SglangFile& v);

}  // namespace oscar
