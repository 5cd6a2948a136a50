// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The pack "oracle": statistics, rotations' invariants, quantization and attention errors computed
// by an independent float64 implementation from stored q, k, v. Every JSON file of the folder is
// one model and carries its own definitions.
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

// Codes of 2 bits as upstream's server stores a row of d of them: byte i = q[i] | q[i + d/4] << 2 |
// q[i + d/2] << 4 | q[i + 3d/4] << 6.
inline std::vector<uint8_t> PackQuartered(const std::vector<uint8_t>& codes) {
  std::vector<uint8_t> packed(codes.size() / 4);
  for (size_t i = 0; i < codes.size(); ++i)
    packed[i % packed.size()] |= static_cast<uint8_t>(codes[i] << (2 * (i / packed.size())));
  return packed;
}

// A tensor's elements; fails the test by throwing if its size is not that of T.
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

// BF16, F32 or F64 as float64.
std::vector<double> ReadAsDouble(const SafetensorsFile& file, std::string_view name);

struct OracleLayer {
  std::string id;
  Json expected;  // the layer's object
  AttentionShape shape;
  AttentionRule rule;
  std::vector<double> q, k, v;  // row-major [tokens, heads, dim]
};

struct OracleModel {
  std::string name;  // stem of the JSON file
  std::vector<OracleLayer> layers;
  std::optional<SafetensorsFile> moments;  // layer.<i>.c_q and so on, where the pack has them
};

// All models; `packs` is the folder that holds "oracle" and "models".
std::vector<OracleModel> ReadOracle(const std::filesystem::path& oracle);

std::vector<HeadStatistics> StatisticsOf(const OracleLayer& layer);

// The mean over KV heads of one statistic.
Matrix MeanOverHeads(const std::vector<HeadStatistics>& heads, Matrix HeadStatistics::*member);

// Statistics by the oracle's names: c_q, c_v_upstream, c_v_paper, c_v_diag, ktk, vtv.
Matrix HeadStatistics::*StatisticNamed(std::string_view name);

// Doubles of a JSON array.
std::vector<double> JsonDoubles(const Json& array);

}  // namespace oscar
