// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Creates model directories for tests: a dense decoder of any size with reproducible random
// weights, and changed copies of existing checkpoints.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "capture/checkpoint/safetensors.h"
#include "capture/files/strict_json.h"

namespace oscar {

// Returns a qwen3 configuration.
Json SyntheticConfig(int64_t num_layers, int64_t hidden_size, int64_t intermediate_size,
                     int64_t num_q_heads, int64_t num_kv_heads, int64_t head_dim,
                     int64_t vocab_size);

// Writes config.json and a bf16 model.safetensors that fits `config` to `directory`.
void WriteSyntheticModel(const std::filesystem::path& directory, const Json& config);

struct StoredBytes {
  DType dtype{};
  std::vector<int64_t> shape;
  std::vector<std::byte> data;
};
using TensorMap = std::map<std::string, StoredBytes>;

// Copies model.safetensors from `from` to `to`, and applies `change` to its tensors.
void CopyWeights(const std::filesystem::path& from, const std::filesystem::path& to,
                 const std::function<void(TensorMap&)>& change);

}  // namespace oscar
