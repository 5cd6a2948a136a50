// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/formats/given_rotations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "capture/checkpoint/safetensors.h"
#include "capture/checkpoint/stored_values.h"
#include "capture/files/quote.h"
#include "export/formats/npy_file.h"
#include "export/formats/rotation_checks.h"
#include "export/formats/rotation_pair.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

RotationFile FromNpy(const fs::path& path) {
  const NpyFile array = ReadNpyFile(path);
  const std::vector<int64_t>& shape = array.shape;
  const size_t rank = shape.size();
  if ((rank != 3 && rank != 4) || shape[rank - 1] != shape[rank - 2]) {
    throw InputError(
        fmt::format("{}: shape [{}], expected [layers, d, d] or [layers, num_kv_heads, d, d]",
                    path.string(), fmt::join(shape, ", ")));
  }
  RotationFile out;
  out.kind = RotationKind::kStacked;
  out.path = path;
  RotationChecker checker;
  const std::vector<int64_t> of_layer(shape.begin() + 1, shape.end());
  const auto size = static_cast<int64_t>(array.values.size()) / shape[0];
  for (int64_t i = 0; i < shape[0]; ++i) {
    const auto begin = array.values.begin() + i * size;
    RotationLayer layer;
    layer.layer_id = i;
    layer.rotation =
        std::make_shared<const FloatTensor>(FloatTensor{of_layer, {begin, begin + size}});
    checker.Check(&layer, array.dtype, true, fmt::format("{}: layer {}", path.string(), i));
    out.layers.push_back(std::move(layer));
  }
  return out;
}

FloatTensorPtr Floats(const SafetensorsFile& file, const std::string& name) {
  const TensorView view = file.tensor(name);
  if (view.dtype != DType::kF32 && view.dtype != DType::kF16 && view.dtype != DType::kBF16) {
    throw InputError(fmt::format("{}: {} is {}, expected F32, F16 or BF16", file.path().string(),
                                 name, DTypeName(view.dtype)));
  }
  const auto bytes = static_cast<size_t>(DTypeBytes(view.dtype));
  FloatTensor tensor{view.shape, std::vector<float>(view.data.size() / bytes)};
  for (size_t i = 0; i < tensor.values.size(); ++i)
    tensor.values[i] = LoadFloat(view.dtype, view.data.data() + i * bytes);
  return std::make_shared<const FloatTensor>(std::move(tensor));
}

struct TensorPlace {
  int64_t layer_id = 0;
  char side = 'k';
  FloatTensorPtr RotationLayer::*member = nullptr;
};

// Parses a tensor name like "layer.3.k.rotation". Returns nothing for other names.
std::optional<TensorPlace> PlaceOf(std::string_view name) {
  static const std::map<std::string_view, FloatTensorPtr RotationLayer::*> kMembers = {
      {"k.rotation", &RotationLayer::rotation}, {"k.query_rotation", &RotationLayer::q_rotation},
      {"k.mean", &RotationLayer::k_mean},       {"k.pair_scale", &RotationLayer::pair_scale},
      {"v.rotation", &RotationLayer::rotation}, {"v.output_rotation", &RotationLayer::o_rotation}};
  constexpr std::string_view kPrefix = "layer.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const size_t dot = name.find('.');
  const auto id = ParseLayerId(name.substr(0, dot));
  if (!id || dot == name.npos) return std::nullopt;
  const auto member = kMembers.find(name.substr(dot + 1));
  if (member == kMembers.end()) return std::nullopt;
  return TensorPlace{*id, name[dot + 1], member->second};
}

void CheckScales(const RotationLayer& layer, const std::string& where) {
  if (!layer.pair_scale) return;
  if (std::ranges::any_of(layer.pair_scale->values, [](float s) { return !(s > 0); }))
    throw InputError(where + ": pair_scale contains a value that is not above 0");
}

GivenRotations FromSafetensors(const fs::path& path) {
  const SafetensorsFile file = SafetensorsFile::Open(path);
  std::map<std::pair<char, int64_t>, RotationLayer> layers;
  for (const auto& [name, info] : file.tensors()) {
    const std::optional<TensorPlace> place = PlaceOf(name);
    if (!place) {
      throw InputError(
          fmt::format("{}: found tensor {}, expected layer.<id>.<k|v>.rotation and, optionally, "
                      "k.query_rotation, k.mean, k.pair_scale and v.output_rotation; for the "
                      "rotations of an artifact, give --other-artifact",
                      path.string(), Quoted(name)));
    }
    RotationLayer& layer = layers[{place->side, place->layer_id}];
    layer.layer_id = place->layer_id;
    layer.*place->member = Floats(file, name);
  }
  GivenRotations out;
  RotationChecker checker;
  for (auto& [key, layer] : layers) {
    const std::string stem = fmt::format("layer.{}.{}", key.second, key.first);
    const std::string where = fmt::format("{}: {}", path.string(), stem);
    if (!layer.rotation) throw InputError(fmt::format("{}.rotation is missing", where));
    const bool undone = layer.q_rotation || layer.o_rotation;
    checker.Check(&layer, file.tensor(stem + ".rotation").dtype, !undone, where);
    CheckScales(layer, where);
    std::optional<RotationFile>& side = key.first == 'k' ? out.k : out.v;
    if (!side) side.emplace();
    side->kind = RotationKind::kLayers;
    side->path = path;
    side->layers.push_back(std::move(layer));
  }
  for (const auto* side : {&out.k, &out.v}) {
    if (*side) CheckLayersAgree(**side);
  }
  return out;
}

// Reads the rotations of both sides from one path. `side` is 'k' or 'v' if the command line gave
// the path for that side, else 0.
GivenRotations FromPath(const fs::path& path, char side) {
  if (path.extension() == ".safetensors") return FromSafetensors(path);
  RotationFile file;
  if (fs::is_directory(path)) {
    if (const auto pair = FindRotationPair(path)) {
      RotationPair opened = OpenRotationPair(pair->first, pair->second);
      return {std::move(opened.k), std::move(opened.v)};
    }
    file = OpenMlaFolder(path);
  } else {
    file = path.extension() == ".npy" ? FromNpy(path) : OpenRotationFile(path);
  }
  if (std::ranges::any_of(file.layers, [](const RotationLayer& l) { return !l.rotation; }) ||
      file.layers.empty()) {
    throw InputError(fmt::format("{}: this file contains {} and no rotations", path.string(),
                                 RotationKindName(file.kind)));
  }
  const char own = ObjectiveSide(file.objective);
  if (own != 0 && own != side) {
    throw InputError(
        fmt::format("{}: its objective {} shows that it only has rotations for {}; give "
                    "NAME=KEYS:VALUES, where one may be 'none'",
                    path.string(), Quoted(file.objective), own == 'k' ? "keys" : "values"));
  }
  return {file, file};
}

}  // namespace

GivenRotations ReadGivenRotations(std::string_view files) {
  constexpr std::string_view kNone = "none";
  const size_t colon = fs::exists(fs::path(files)) ? files.npos : files.find(':');
  if (colon == files.npos) return FromPath(files, 0);
  const std::string_view k = files.substr(0, colon), v = files.substr(colon + 1);
  GivenRotations out;
  if (k != kNone) out.k = FromPath(k, 'k').k;
  if (v != kNone) out.v = FromPath(v, 'v').v;
  if (!out.k && !out.v)
    throw InputError(fmt::format("{}: give rotations for keys, values or both", files));
  return out;
}

std::string DescribeRotations(const RotationFile& file) {
  double worst = 0;
  bool orthogonal = true;
  for (const RotationLayer& layer : file.layers) {
    orthogonal = orthogonal && !layer.q_rotation && !layer.o_rotation;
    worst = std::max({worst, layer.q_inverse_error.value_or(0), layer.o_inverse_error.value_or(0)});
  }
  if (orthogonal) {
    for (const RotationLayer& layer : file.layers) worst = std::max(worst, layer.orthogonality);
  }
  const std::vector<int64_t>& shape = file.layers.front().rotation->shape;
  const RotationLayer& first = file.layers.front();
  return fmt::format("{} layers, {}, {} to {:.2g}{}{}", file.layers.size(),
                     shape.size() == 3 ? fmt::format("a matrix for each of {} KV heads", shape[0])
                                       : std::string("a matrix for all KV heads"),
                     orthogonal ? "orthogonal" : "not orthogonal, with inverses", worst,
                     first.k_mean || first.mean ? ", keys centred" : "",
                     first.pair_scale ? ", keys scaled" : "");
}

}  // namespace oscar
