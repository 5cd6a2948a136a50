// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/runtimes/imports.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "capture/files/quote.h"
#include "export/artifact/foreign_rotations.h"
#include "export/artifact/imported_artifact.h"
#include "export/formats/gguf_file.h"
#include "export/formats/given_rotations.h"
#include "export/formats/rotation_checks.h"
#include "linalg/error.h"

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
  for (const FloatTensorPtr& vectors : {layer.k.k_mean, layer.k.pair_scale, layer.key_mean}) {
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

// Layer and what stands behind it in "blk.3.attn_k_rot.weight" or "kv_bar.blk.3.k".
std::optional<std::pair<int64_t, std::string_view>> GgufPlace(std::string_view name,
                                                              std::string_view prefix) {
  if (!name.starts_with(prefix)) return {};
  name.remove_prefix(prefix.size());
  const size_t dot = name.find('.');
  const auto id = ParseLayerId(name.substr(0, dot));
  if (!id || dot == name.npos) return {};
  return std::pair(*id, name.substr(dot + 1));
}

FloatTensor GgufFloats(const GgufFile& file, const GgufTensorInfo& info) {
  const std::span<const std::byte> bytes = file.Bytes(info);
  FloatTensor tensor{{info.dims.rbegin(), info.dims.rend()}, {}};
  uint64_t count = 1;
  for (const uint64_t dim : info.dims) count *= dim;
  if (info.type != 0 || bytes.size() < count * sizeof(float)) {
    throw InputError(
        fmt::format("{}: tensor {} is not float32", file.file.path().string(), Quoted(info.name)));
  }
  tensor.values.resize(count);
  std::memcpy(tensor.values.data(), bytes.data(), count * sizeof(float));
  CheckFinite(tensor, fmt::format("{}: {}", file.file.path().string(), Escaped(info.name)));
  return tensor;
}

// Stored is R transposed: ggml_mul_mat(rot, x) = x R.
FloatTensorPtr Untransposed(const FloatTensor& stored, const std::string& where) {
  if (stored.shape.size() != 2 || stored.shape[0] != stored.shape[1])
    throw InputError(where + ": a rotation that is not square");
  FloatTensor matrix = stored;
  const auto d = static_cast<size_t>(stored.shape[0]);
  for (size_t i = 0; i < d; ++i)
    for (size_t j = 0; j < d; ++j) matrix.values[j * d + i] = stored.values[i * d + j];
  return std::make_shared<const FloatTensor>(std::move(matrix));
}

ImportedFiles FromGguf(const fs::path& path) {
  const GgufFile file = GgufFile::Open(path);
  ImportedFiles out{.from = "gguf", .files = {path}};
  std::map<int64_t, ImportedLayer> layers;
  const auto text = [&](std::string_view key) -> std::string {
    const auto entry = file.entries.find(key);
    if (entry == file.entries.end()) return "";
    const auto* value = std::get_if<std::string_view>(&entry->second);
    return value == nullptr ? "" : std::string(*value);
  };
  if (text("general.type") == "kv-mean-center") {
    out.from = "kv-mean-center";
    out.header["model_sha256"] = text("kv_mean_center.model_sha256");
    const auto basis = file.entries.find("kv_mean_center.k_rot");
    const auto* turned = basis == file.entries.end() ? nullptr : std::get_if<bool>(&basis->second);
    out.header["k_rot"] = turned == nullptr ? Json() : Json(*turned);
  }
  RotationChecker checker;
  for (const GgufTensorInfo& info : file.tensors) {
    const std::string where = fmt::format("{}: {}", path.string(), Escaped(info.name));
    const auto mean = GgufPlace(info.name, "kv_bar.blk."), turn = GgufPlace(info.name, "blk.");
    if (mean && mean->second == "k") {
      layers[mean->first].key_mean = std::make_shared<const FloatTensor>(GgufFloats(file, info));
    } else if (turn &&
               (turn->second == "attn_k_rot.weight" || turn->second == "attn_v_rot.weight")) {
      RotationLayer& side =
          turn->second == "attn_k_rot.weight" ? layers[turn->first].k : layers[turn->first].v;
      side.layer_id = turn->first;
      side.rotation = Untransposed(GgufFloats(file, info), where);
      checker.Check(&side, DType::kF32, true, where);
    }
  }
  if (layers.empty()) {
    throw InputError(path.string() +
                     ": a GGUF without kv_bar.blk.<i>.k and without blk.<i>.attn_k_rot.weight, "
                     "which are what can be imported");
  }
  for (auto& [id, layer] : layers) {
    layer.layer_id = id;
    SetDims(layer);
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
        fmt::format("{}: does not say whether it turns keys or values; say so: {}:none or none:{}",
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
  if (path.extension() == ".gguf") return FromGguf(path);
  if (path.extension() == ".pt") return FromPt(path);
  if (path.extension() == ".safetensors") return FromRotations(ReadGivenRotations(files), false);
  throw InputError(
      fmt::format("{}: none of what can be imported:\n{}", path.string(), ImportedKinds()));
}

}  // namespace

std::string_view ImportedKinds() {
  return "rotations: .pt of every format (a file, KEYS:VALUES, a directory with a pair or with a "
         "file for each layer), .safetensors with layer.<id>.<k|v>.rotation, .gguf with "
         "attn_k_rot\n"
         "key means: .gguf of --kv-mean-center\n"
         "moments: oscar_moments_rank<r>.pt, or a directory of all ranks'\n";
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
