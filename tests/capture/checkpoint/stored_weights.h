// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints with a quantization_config, built in code, and bit streams as packers write them.
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

// Codes of `bits` bits, one after another, the first in the lowest bits of the first word, in as
// many words as they need.
std::vector<uint32_t> PackWords(const std::vector<int>& codes, int bits);

}  // namespace oscar
