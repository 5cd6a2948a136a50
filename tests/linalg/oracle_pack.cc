// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/linalg/oracle_pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace oscar {

std::vector<double> ReadAsDouble(const SafetensorsFile& file, std::string_view name) {
  const DType dtype = file.tensor(name).dtype;
  if (dtype == DType::kF64) return ReadTensor<double>(file, name);
  std::vector<double> values;
  if (dtype == DType::kF32) {
    for (const float x : ReadTensor<float>(file, name)) values.push_back(x);
  } else if (dtype == DType::kBF16) {
    for (const uint16_t bits : ReadTensor<uint16_t>(file, name)) {
      values.push_back(std::bit_cast<float>(uint32_t{bits} << 16));
    }
  } else {
    throw std::runtime_error(fmt::format("{}: dtype {}", name, DTypeName(dtype)));
  }
  return values;
}

std::vector<OracleModel> ReadOracle(const std::filesystem::path& oracle) {
  std::vector<OracleModel> models;
  for (const auto& entry : std::filesystem::directory_iterator(oracle)) {
    if (entry.path().extension() != ".json") continue;
    OracleModel model{.name = entry.path().stem().string(), .layers = {}, .moments = {}};
    const Json json = ReadJsonFile(entry.path().string());
    const std::filesystem::path input = json.at("input").get<std::string>();
    const bool beside = std::filesystem::exists(oracle / input);
    const SafetensorsFile tensors = SafetensorsFile::Open(
        beside ? oracle / input : oracle.parent_path() / "models" / model.name / input);
    for (const auto& [id, expected] : json.at("layers").items()) {
      OracleLayer& layer = model.layers.emplace_back();
      layer.id = id;
      layer.expected = expected;
      layer.shape = {.tokens = expected.at("tokens"),
                     .num_q_heads = expected.at("query_heads"),
                     .num_kv_heads = expected.at("kv_heads"),
                     .head_dim = expected.at("head_dim"),
                     .v_head_dim = expected.at("head_dim")};
      layer.rule = {.scale = 1 / std::sqrt(static_cast<double>(layer.shape.head_dim))};
      layer.q = ReadAsDouble(tensors, fmt::format("layer.{}.q", id));
      layer.k = ReadAsDouble(tensors, fmt::format("layer.{}.k", id));
      layer.v = ReadAsDouble(tensors, fmt::format("layer.{}.v", id));
    }
    const std::filesystem::path moments = oracle / (model.name + ".safetensors");
    if (std::filesystem::exists(moments)) model.moments = SafetensorsFile::Open(moments);
    models.push_back(std::move(model));
  }
  std::sort(models.begin(), models.end(),
            [](const OracleModel& a, const OracleModel& b) { return a.name < b.name; });
  if (models.empty()) throw std::runtime_error("no oracle files in " + oracle.string());
  return models;
}

std::vector<HeadStatistics> StatisticsOf(const OracleLayer& layer) {
  const int64_t lengths[] = {layer.shape.tokens};
  return AttentionStatistics(layer.shape, layer.q, layer.k, layer.v, lengths, layer.rule,
                             fmt::format("layer {}", layer.id));
}

Matrix MeanOverHeads(const std::vector<HeadStatistics>& heads, Matrix HeadStatistics::*member) {
  Matrix mean = heads.front().*member;
  for (size_t h = 1; h < heads.size(); ++h) mean += heads[h].*member;
  return mean / static_cast<double>(heads.size());
}

Matrix HeadStatistics::*StatisticNamed(std::string_view name) {
  if (name == "c_q") return &HeadStatistics::query_covariance;
  if (name == "c_v_upstream") return &HeadStatistics::diagonal;
  if (name == "c_v_paper") return &HeadStatistics::attention_output;
  if (name == "c_v_diag") return &HeadStatistics::score_diagonal;
  if (name == "ktk") return &HeadStatistics::key_covariance;
  if (name == "vtv") return &HeadStatistics::value_covariance;
  throw std::runtime_error("no statistic named " + std::string(name));
}

std::vector<double> JsonDoubles(const Json& array) { return array.get<std::vector<double>>(); }

}  // namespace oscar
