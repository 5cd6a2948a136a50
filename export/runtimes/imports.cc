// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/runtimes/imports.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "capture/checkpoint/gguf_file.h"
#include "capture/files/quote.h"
#include "export/artifact/foreign_rotations.h"
#include "export/artifact/imported_artifact.h"
#include "export/formats/given_rotations.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

void SetDims(ImportedLayer& layer) {
  const auto dims = [&](const RotationLayer& side, int64_t& dim) {
    if (!side.rotation) return;
    dim = side.rotation->shape.back();
    if (side.rotation->shape.size() == 3) layer.num_kv_heads = side.rotation->shape[0];
  };
  dims(layer.k, layer.head_dim);
  dims(layer.v, layer.v_head_dim);
  for (const FloatTensorPtr& vectors : {layer.k.k_mean, layer.k.pair_scale}) {
    if (!vectors) continue;
    layer.head_dim = vectors->shape.back();
    if (vectors->shape.size() == 2) layer.num_kv_heads = vectors->shape[0];
  }
}

ImportedFiles FromRotations(const GivenRotations& given, bool latents) {
  ImportedFiles out;
  std::map<int64_t, ImportedLayer> layers;
  for (const auto& [file, side] :
       {std::pair(&given.k, &ImportedLayer::k), std::pair(&given.v, &ImportedLayer::v)}) {
    if (!*file) continue;
    const RotationFile& read = **file;
    out.from = RotationKindName(read.kind);
    if (read.calibration.is_object())
      out.model_id = read.calibration.value("model_path", out.model_id);
    out.header[side == &ImportedLayer::k ? "k" : "v"] = {{"format_version", read.format_version},
                                                         {"objective", read.objective},
                                                         {"source_grouping", read.source_grouping},
                                                         {"calibration", read.calibration},
                                                         {"transform", read.transform}};
    if (fs::is_regular_file(read.path) &&
        std::ranges::find(out.files, read.path) == out.files.end())
      out.files.push_back(read.path);
    for (const RotationLayer& layer : read.layers) {
      layers[layer.layer_id].layer_id = layer.layer_id;
      layers[layer.layer_id].*side = layer;
    }
  }
  out.latents = latents;
  for (auto& [id, layer] : layers) {
    SetDims(layer);
    if (latents) layer.num_kv_heads = 1;
    out.layers.push_back(std::move(layer));
  }
  return out;
}

ImportedFiles FromPt(const fs::path& path) {
  RotationFile file = OpenRotationFile(path);
  if (file.kind == RotationKind::kMlaLayer) {
    throw InputError(path.string() +
                     ": one layer of a latent cache; give the directory that holds all of them");
  }
  const char side = ObjectiveSide(file.objective);
  if (side == 0) {
    throw InputError(
        fmt::format("{}: does not say whether it rotates keys or values; give {}:none or none:{}",
                    path.string(), path.string(), path.string()));
  }
  GivenRotations given;
  (side == 'k' ? given.k : given.v) = std::move(file);
  return FromRotations(given, false);
}

std::vector<fs::path> MomentFiles(const fs::path& path) {
  if (!fs::is_directory(path)) {
    if (path.extension() != ".pt") return {};
    return OpenRotationFile(path).kind == RotationKind::kMoments ? std::vector{path}
                                                                 : std::vector<fs::path>{};
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.path().filename().string().starts_with("oscar_moments_rank"))
      files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

ImportedFiles ReadPublished(std::string_view files) {
  const fs::path path(files);
  if (!fs::exists(path)) return FromRotations(ReadGivenRotations(files), false);
  if (fs::is_directory(path)) return FromRotations(ReadGivenRotations(files), IsMlaFolder(path));
  if (path.extension() == ".pt") return FromPt(path);
  if (path.extension() == ".safetensors") return FromRotations(ReadGivenRotations(files), false);
  throw InputError(
      fmt::format("{}: cannot be imported; supported files:\n{}", path.string(), ImportedKinds()));
}

}  // namespace

std::string_view ImportedKinds() {
  return "rotations: .pt in every format (a file, KEYS:VALUES, a directory with a pair or with a "
         "file for each layer), .safetensors with layer.<id>.<k|v>.rotation\nmoments: "
         "oscar_moments_rank<r>.pt, or a directory with the files of all ranks\n";
}

void ImportPublished(std::string_view files, const Json& program, const fs::path& output) {
  if (fs::exists(fs::path(files))) {
    if (const std::vector<fs::path> moments = MomentFiles(files); !moments.empty()) {
      ImportMoments(moments, program, output);
      return;
    }
  }
  WriteImported(output, ReadPublished(files), program);
}

}  // namespace oscar
