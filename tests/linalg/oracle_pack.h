// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the pack "oracle": statistics, rotation invariants, quantization errors and attention
// errors that an independent float64 implementation computed from stored q, k, v. Each JSON file of
// the folder describes one model and contains its own definitions.
#pragma once

#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/safetensors.h"
#include "capture/files/strict_json.h"
#include "linalg/rotation.h"
#include "tests/reference/attention_statistics.h"

namespace oscar {

// Packs a row of d 2-bit codes as upstream's server stores it: byte i = q[i] | q[i + d/4] << 2 |
// q[i + d/2] << 4 | q[i + 3d/4] << 6.
inline std::vector<uint8_t> PackQuartered(const std::vector<uint8_t>& codes) {
  std::vector<uint8_t> packed(codes.size() / 4);
  for (size_t i = 0; i < codes.size(); ++i)
    packed[i % packed.size()] |= static_cast<uint8_t>(codes[i] << (2 * (i / packed.size())));
  return packed;
}

// Returns a tensor's elements. Throws, which fails the test, if its element size is not that of T.
template <typename T>
std::vector<T> ReadTensor(const SafetensorsFile& file, std::string_view name) {
  const TensorView view = file.tensor(name);
  if (DTypeBytes(view.dtype) != static_cast<int64_t>(sizeof(T))) {
    throw std::runtime_error("unexpected element type of " + std::string(name));
  }
  std::vector<T> values(view.data.size() / sizeof(T));
  std::memcpy(values.data(), view.data.data(), view.data.size());
  return values;
}

// Returns a BF16, F32 or F64 tensor as float64.
std::vector<double> ReadAsDouble(const SafetensorsFile& file, std::string_view name);

struct OracleLayer {
  std::string id;
  Json expected;  // the layer's JSON object
  AttentionShape shape;
  AttentionRule rule;
  std::vector<double> q, k, v;  // row-major [tokens, heads, dim]
};

struct OracleModel {
  std::string name;  // stem of the JSON file
  std::vector<OracleLayer> layers;
  std::optional<SafetensorsFile> moments;  // layer.<i>.c_q etc.; not every model has them
};

// Reads all models of the folder `oracle`. Tensors may also lie in the folder "models" beside it.
std::vector<OracleModel> ReadOracle(const std::filesystem::path& oracle);

std::vector<HeadStatistics> StatisticsOf(const OracleLayer& layer);

// Returns the mean of one statistic over KV heads.
Matrix MeanOverHeads(const std::vector<HeadStatistics>& heads, Matrix HeadStatistics::*member);

// Returns the statistic for an oracle name: c_q, c_v_upstream, c_v_paper, c_v_diag, ktk, vtv.
Matrix HeadStatistics::*StatisticNamed(std::string_view name);

std::vector<double> JsonDoubles(const Json& array);

}  // namespace oscar
