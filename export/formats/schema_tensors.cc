// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Schemas that hold little more than tensors: vLLM's flat dict and stacked tensor, and a layer of
// an MLA directory. A bare matrix does not say to which layer or side it belongs; an MLA layer's id
// is in its file name.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "export/formats/rotation_checks.h"
#include "export/formats/rotation_schemas.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

size_t RankOf(const PtValue& value) {
  const auto* tensor = value.If<PtTensor>();
  return tensor == nullptr ? 0 : tensor->shape.size();
}

int64_t LayerIdOfFile(const std::filesystem::path& path) {
  const std::string stem = path.stem().string();
  constexpr std::string_view kPrefix = "layer_";
  if (!stem.starts_with(kPrefix)) return 0;
  return ParseLayerId(std::string_view(stem).substr(kPrefix.size())).value_or(0);
}

}  // namespace

bool MatchesMlaLayer(const PtValue& root) {
  const auto* dict = root.If<PtDict>();
  return RankOf(root) == 2 || (dict != nullptr && dict->Find("rotation") != nullptr);
}

RotationFile ReadMlaLayer(const PtFile& file) {
  RotationFile out;
  out.kind = RotationKind::kMlaLayer;
  out.path = file.path();
  RotationLayer layer;
  layer.layer_id = LayerIdOfFile(file.path());
  const std::string where = fmt::format("{}: layer {}", file.path().string(), layer.layer_id);
  TensorCache cache(file);
  RotationChecker checker;
  if (const auto* tensor = file.root().If<PtTensor>()) {
    layer.rotation = cache.Get(*tensor, where);
    checker.Check(&layer, tensor->dtype, true, where);
  } else {
    const PtDict& entry = *file.root().If<PtDict>();
    layer.rotation = RequiredTensor(entry, "rotation", &cache, where);
    layer.eigenvalues = OptionalTensor(entry, "eigenvalues", &cache, where);
    layer.q_rotation = OptionalTensor(entry, "q_rotation", &cache, where);
    layer.o_rotation = OptionalTensor(entry, "o_rotation", &cache, where);
    layer.mean = OptionalTensor(entry, "mean", &cache, where);
    out.transform = OptionalDict(entry, "transform", where);
    const bool declared = out.transform.is_object() && out.transform.contains("orthogonal");
    const bool orthogonal = declared ? JsonBool(out.transform, "orthogonal", true, where)
                                     : !(layer.q_rotation || layer.o_rotation);
    checker.Check(&layer, TensorField(entry, "rotation", where).dtype, orthogonal, where);
  }
  if (layer.rotation->shape.size() != 2) {
    throw InputError(
        fmt::format("{}: the rotation of a latent cache must be one matrix, found shape {}", where,
                    fmt::join(layer.rotation->shape, " x ")));
  }
  out.layers.push_back(std::move(layer));
  return out;
}

bool MatchesFlat(const PtValue& root) {
  const auto* dict = root.If<PtDict>();
  if (dict == nullptr || dict->entries.empty()) return false;
  for (const auto& [key, value] : dict->entries) {
    if (!ParseLayerId(PtKeyText(key)) || value->If<PtTensor>() == nullptr) return false;
  }
  return true;
}

RotationFile ReadFlat(const PtFile& file) {
  RotationFile out;
  out.kind = RotationKind::kFlat;
  out.path = file.path();
  TensorCache cache(file);
  RotationChecker checker;
  const auto& entries = file.root().If<PtDict>()->entries;
  CheckLayerCount(entries.size(), file.path().string());
  for (const auto& [key, value] : entries) {
    RotationLayer layer;
    layer.layer_id = CheckedLayerId(key, file.path().string());
    const std::string where = fmt::format("{}: layer {}", file.path().string(), layer.layer_id);
    const PtTensor& tensor = *value->If<PtTensor>();
    layer.rotation = cache.Get(tensor, where);
    checker.Check(&layer, tensor.dtype, true, where);
    out.layers.push_back(std::move(layer));
  }
  CheckLayersAgree(out);
  return out;
}

bool MatchesStacked(const PtValue& root) { return RankOf(root) == 3; }

RotationFile ReadStacked(const PtFile& file) {
  const std::string path = file.path().string();
  const PtTensor& tensor = *file.root().If<PtTensor>();
  const MatrixStack stack = StackOf(tensor.shape, path);
  CheckLayerCount(static_cast<size_t>(stack.count), path);
  const std::vector<float> values = file.Floats(tensor, path);
  RotationFile out;
  out.kind = RotationKind::kStacked;
  out.path = file.path();
  RotationChecker checker;
  const int64_t size = stack.dim * stack.dim;
  for (int64_t i = 0; i < stack.count; ++i) {
    RotationLayer layer;
    layer.layer_id = i;
    layer.rotation = std::make_shared<const FloatTensor>(FloatTensor{
        {stack.dim, stack.dim}, {values.begin() + i * size, values.begin() + (i + 1) * size}});
    checker.Check(&layer, tensor.dtype, true, fmt::format("{}: layer {}", path, i));
    out.layers.push_back(std::move(layer));
  }
  return out;
}

}  // namespace oscar
