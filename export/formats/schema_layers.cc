// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Rotation files with a "layers" dict: versions 1, 2, 3 and identity-v1, and vLLM's files, which
// have no version. As in upstream's loader, the rotation's shape decides whether it is shared or
// per head, not the version.
#include <fmt/format.h>

#include "capture/files/quote.h"
#include "export/formats/rotation_checks.h"
#include "export/formats/rotation_schemas.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr std::string_view kIdentityVersion = "identity-v1";

RotationKind KindOf(const PtValue* version, std::string_view path) {
  if (version == nullptr) return RotationKind::kLayers;
  if (const auto* number = version->If<int64_t>()) {
    if (*number == 1) return RotationKind::kV1;
    if (*number == 2) return RotationKind::kV2;
    if (*number == 3) return RotationKind::kV3;
    throw InputError(
        fmt::format("{}: format_version {} is not known; versions 1, 2, 3 and '{}' are read", path,
                    *number, kIdentityVersion));
  }
  const auto* text = version->If<std::string>();
  if (text != nullptr && *text == kIdentityVersion) return RotationKind::kIdentity;
  throw InputError(fmt::format("{}: format_version is {} {}; versions 1, 2, 3 and '{}' are read",
                               path, PtTypeName(*version), text ? Escaped(*text) : "",
                               kIdentityVersion));
}

}  // namespace

bool MatchesLayers(const PtValue& root) {
  const auto* dict = root.If<PtDict>();
  return dict != nullptr && dict->Find("layers") != nullptr;
}

RotationFile ReadLayers(const PtFile& file) {
  const std::string path = file.path().string();
  const PtDict& root = *file.root().If<PtDict>();
  RotationFile out;
  out.path = file.path();
  const PtValue* version = root.Find("format_version");
  out.kind = KindOf(version, path);
  out.format_version = version ? PtToJson(*version) : Json(nullptr);
  out.objective = OptionalString(root, "objective", path);
  out.source_grouping = OptionalString(root, "source_grouping", path);
  out.calibration = OptionalDict(root, "calibration", path);
  out.transform = OptionalDict(root, "transform", path);
  const PtDict* layers = DictMember(file.root(), "layers");
  if (layers == nullptr) throw InputError(path + ": 'layers' should be a dict of rotations");

  TensorCache cache(file);
  RotationChecker checker;
  const bool v3 = out.kind == RotationKind::kV3;
  const bool declared = v3 && out.transform.is_object() && out.transform.contains("orthogonal");
  ForEachLayer(file, *layers, [&](int64_t id, const PtDict& entry, const std::string& where) {
    RotationLayer layer;
    layer.layer_id = id;
    layer.rotation = RequiredTensor(entry, "rotation", &cache, where);
    layer.eigenvalues = OptionalTensor(entry, "eigenvalues", &cache, where);
    layer.q_rotation = OptionalTensor(entry, "q_rotation", &cache, where);
    layer.o_rotation = OptionalTensor(entry, "o_rotation", &cache, where);
    layer.k_mean = OptionalTensor(entry, "k_mean", &cache, where);
    const bool undone = layer.q_rotation || layer.o_rotation;
    const bool orthogonal =
        declared ? JsonBool(out.transform, "orthogonal", true, path) : !(v3 && undone);
    checker.Check(&layer, TensorField(entry, "rotation", where).dtype, orthogonal, where);
    out.layers.push_back(std::move(layer));
  });
  CheckLayersAgree(out);
  return out;
}

}  // namespace oscar
