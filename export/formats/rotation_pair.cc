// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks that two rotation files belong together. K and V may have different head dimensions (such
// as 192 and 128). Layers with the same K dimension must then have the same V dimension, and vice
// versa.
#include "export/formats/rotation_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "export/formats/rotation_checks.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

[[noreturn]] void Fail(const RotationPair& pair, std::string_view why) {
  throw InputError(
      fmt::format("{} and {} are not a pair: {}; use two files from the same calibration",
                  pair.k.path.string(), pair.v.path.string(), why));
}

void CheckSides(const RotationPair& pair) {
  if (ObjectiveSide(pair.k.objective) == 'v') {
    Fail(pair, fmt::format("the K file has the V objective '{}'", pair.k.objective));
  }
  if (ObjectiveSide(pair.v.objective) == 'k') {
    Fail(pair, fmt::format("the V file has the K objective '{}'", pair.v.objective));
  }
  for (const RotationFile* file : {&pair.k, &pair.v}) {
    const RotationLayer& layer = file->layers.front();
    if (file == &pair.k ? layer.o_rotation != nullptr
                        : layer.q_rotation != nullptr || layer.k_mean != nullptr) {
      Fail(pair, "one file has a field that belongs to the other");
    }
  }
}

void CheckCalibration(const RotationPair& pair) {
  const Json& k = pair.k.calibration;
  const Json& v = pair.v.calibration;
  const auto member = [](const Json& block, const char* key) {
    return block.is_object() && block.contains(key) ? block[key] : Json(nullptr);
  };
  if (member(k, "generation_id") != member(v, "generation_id")) {
    Fail(pair, fmt::format("their generation ids are {} and {}", member(k, "generation_id").dump(),
                           member(v, "generation_id").dump()));
  }
  if (!k.is_object() || !v.is_object()) return;
  for (const char* key : {"model_path", "model_revision", "prompt_sha256", "tokens",
                          "global_kv_heads", "global_q_heads", "fitter"}) {
    if (k.contains(key) && v.contains(key) && k[key] != v[key]) {
      Fail(pair,
           fmt::format("calibration.{} is {} in K and {} in V", key, k[key].dump(), v[key].dump()));
    }
  }
}

void CheckGeometry(const RotationPair& pair) {
  std::map<int64_t, const RotationLayer*> v_layers;
  for (const RotationLayer& layer : pair.v.layers) v_layers[layer.layer_id] = &layer;
  std::map<int64_t, int64_t> v_dim_of, k_dim_of;  // by the head_dim of the other side
  for (const RotationLayer& k : pair.k.layers) {
    const auto found = v_layers.find(k.layer_id);
    if (found == v_layers.end()) Fail(pair, fmt::format("V lacks layer {}", k.layer_id));
    const MatrixStack ks = StackOf(k.rotation->shape, "K rotation");
    const MatrixStack vs = StackOf(found->second->rotation->shape, "V rotation");
    if (ks.per_head && vs.per_head && ks.count != vs.count) {
      Fail(pair, fmt::format("layer {} has {} KV heads in K and {} in V", k.layer_id, ks.count,
                             vs.count));
    }
    const int64_t v_dim = v_dim_of.emplace(ks.dim, vs.dim).first->second;
    const int64_t k_dim = k_dim_of.emplace(vs.dim, ks.dim).first->second;
    if (v_dim != vs.dim || k_dim != ks.dim) {
      Fail(pair,
           fmt::format(
               "layer {} has head dimensions {} (K) and {} (V), but other layers have {} and {}",
               k.layer_id, ks.dim, vs.dim, k_dim, v_dim));
    }
    v_layers.erase(found);
  }
  if (!v_layers.empty()) Fail(pair, fmt::format("K lacks layer {}", v_layers.begin()->first));
}

}  // namespace

char ObjectiveSide(std::string_view objective) {
  struct Row {
    std::string_view prefix;
    char side;
  };
  static constexpr Row kRows[] = {
      {"qqt_sst", 0},
      {"ktk_vtv", 0},
      {"qqt", 'k'},
      {"ktk", 'k'},
      {"sst", 'v'},
      {"vtv", 'v'},
      {"identity-k", 'k'},
      {"identity-v", 'v'},
      {"oscar2_v_", 'v'},
      {"oscar2_", 'k'},
      {"attention_output", 'v'},
  };
  for (const Row& row : kRows) {
    if (objective.starts_with(row.prefix)) return row.side;
  }
  return 0;
}

void CheckRotationPair(const RotationPair& pair) {
  for (const RotationFile* file : {&pair.k, &pair.v}) {
    if (file->layers.empty() || !file->layers.front().rotation) {
      Fail(pair, fmt::format("{} contains {} and no rotations", file->path.string(),
                             RotationKindName(file->kind)));
    }
  }
  CheckSides(pair);
  CheckCalibration(pair);
  CheckGeometry(pair);
}

RotationPair OpenRotationPair(const std::filesystem::path& k_path,
                              const std::filesystem::path& v_path) {
  RotationPair pair{OpenRotationFile(k_path), OpenRotationFile(v_path)};
  CheckRotationPair(pair);
  return pair;
}

std::optional<std::pair<std::filesystem::path, std::filesystem::path>> FindRotationPair(
    const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> k, v;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".pt") continue;
    if (name.starts_with("k_rotation")) k.push_back(entry.path());
    if (name.starts_with("v_rotation")) v.push_back(entry.path());
  }
  if (k.empty() && v.empty()) return std::nullopt;
  if (k.size() != 1 || v.size() != 1) {
    throw InputError(
        fmt::format("{}: expected one k_rotation*.pt and one v_rotation*.pt, found {} and {}; name "
                    "the two files instead",
                    directory.string(), k.size(), v.size()));
  }
  return std::make_pair(k[0], v[0]);
}

}  // namespace oscar
