// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds checkpoints with a quantization_config, and packs codes into words as quantizers do.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/files/strict_json.h"

namespace oscar {

struct StoredWeights {
  Json quantization;  // quantization_config
  struct Tensor {
    DType dtype{};
    std::vector<int64_t> shape;
    std::vector<std::byte> data;
  };
  std::map<std::string, Tensor> tensors;

  template <typename T>
  void Add(const std::string& name, DType dtype, std::vector<int64_t> shape,
           const std::vector<T>& values) {
    Tensor tensor{dtype, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
    std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
    tensors[name] = std::move(tensor);
  }

  // Writes config.json and model.safetensors into a fresh directory.
  Checkpoint Write(const std::string& directory) const;
};

// Packs codes of `bits` bits into as few words as possible. The first code gets the lowest bits of
// the first word, and codes may straddle words.
std::vector<uint32_t> PackWords(const std::vector<int>& codes, int bits);

}  // namespace oscar
