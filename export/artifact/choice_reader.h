// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads tensors of rotations.safetensors (artifact_format.h) and assembles a layer's choice. Checks
// shapes and invariants, for example that rotations are orthogonal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calib/cache_side.h"
#include "capture/checkpoint/safetensors.h"

namespace oscar {

// Reads a float32 tensor. Throws InputError if it has another shape.
std::vector<float> StoredFloats(const SafetensorsFile& file, const std::string& name,
                                const std::vector<int64_t>& shape);
std::vector<double> StoredDoubles(const SafetensorsFile& file, const std::string& name,
                                  const std::vector<int64_t>& shape);

class ChoiceReader {
 public:
  // `imported`: a side or its clip ratio may be missing, and eigenvalues may exist.
  ChoiceReader(const SafetensorsFile& file, int layer_id, std::string choice, int64_t heads,
               bool imported);

  CacheSide Side(char side, int64_t dim) const;
  std::vector<double> Clip(char side) const;
  std::vector<float> Eigenvalues(char side, const CacheSide& read) const;  // empty: none

 private:
  std::string Name(char side, const char* what) const;
  bool Has(char side, const char* what) const;
  std::vector<int64_t> Shape(char side, const char* what) const;
  std::vector<double> Doubles(char side, const char* what, const std::vector<int64_t>& shape) const;
  void Check(const CacheSide& side, char name) const;

  const SafetensorsFile& file_;
  int layer_id_;
  std::string choice_;
  int64_t heads_;
  bool imported_;
};

}  // namespace oscar
