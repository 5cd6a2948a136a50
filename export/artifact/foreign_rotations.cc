// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/foreign_rotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "calib/job/refit_layer.h"
#include "capture/files/digest_json.h"
#include "export/artifact/artifact_format.h"
#include "export/artifact/artifact_writer.h"
#include "export/formats/covariance_import.h"
#include "linalg/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

FloatTensorPtr TensorOf(std::vector<int64_t> shape, const auto& values) {
  return std::make_shared<const FloatTensor>(
      FloatTensor{std::move(shape), {values.begin(), values.end()}});
}

SglangSide Side(StoredSide per_head, StoredSide shared) {
  SglangSide side;
  if (shared.num_rotations == 0 && per_head.num_rotations == 1) shared = per_head;
  if (shared.num_rotations == 1) {
    side.shared = TensorOf({shared.dim, shared.dim}, shared.rotation);
    side.shared_eigenvalues = TensorOf({shared.dim}, shared.eigenvalues);
  }
  side.per_head = TensorOf({per_head.num_rotations, per_head.dim, per_head.dim}, per_head.rotation);
  return side;
}

std::vector<double> Flat(
    const std::vector<Matrix>& matrices) {  // symmetric: row-major and column-major agree
  std::vector<double> flat;
  for (const Matrix& m : matrices) flat.insert(flat.end(), m.data(), m.data() + m.size());
  return flat;
}

ValueTarget TargetOfObjective(const RotationFile& file) {
  if (file.objective.starts_with("sst_")) return ValueTarget::kDiagonal;
  if (file.objective.starts_with("attention_output_")) return ValueTarget::kAttentionOutput;
  throw InputError(
      fmt::format("{}: objective '{}': only value rotations fitted to sst (diagonal) or "
                  "attention_output can be imported",
                  file.path.string(), file.objective));
}

LayerMoments Moments(const LayerCovariances& k, const LayerCovariances& v, ValueTarget target) {
  LayerMoments m;
  m.layer_id = static_cast<int>(k.layer_id);
  m.num_kv_heads = m.num_q_heads = static_cast<int64_t>(k.covariances.size());
  m.head_dim = k.covariances.at(0).rows();
  m.v_head_dim = v.covariances.at(0).rows();
  m.tokens = 1;  // the file holds means
  m.query = Flat(k.covariances);
  if (target == ValueTarget::kDiagonal) {
    m.diagonal = Flat(v.covariances);
    m.diagonal_weight.assign(v.covariances.size(), 1.0);
  } else {
    m.attention_output = Flat(v.covariances);
  }
  return m;
}

Json FileJson(const fs::path& path) {
  Json json = DigestToJson(DigestFile(path));
  json["name"] = path.filename().string();
  return json;
}

}  // namespace

SglangExport ToSglang(const Artifact& artifact) {
  const Json& manifest = artifact.manifest();
  const Json& serving = manifest.at("serving");
  SglangExport out;
  for (int id : artifact.layer_ids()) {
    StoredLayer layer = artifact.ReadLayer(id);
    SglangLayer sglang;
    sglang.layer_id = id;
    out.serving.quant_group_size = layer.k.dim;
    sglang.k = Side(std::move(layer.k), std::move(layer.k_shared));
    sglang.v = Side(std::move(layer.v), std::move(layer.v_shared));
    out.layers.push_back(std::move(sglang));
  }
  const std::string what = (artifact.directory() / kManifestFile).string();
  out.composition = JsonString(manifest.at("calibration"), "composition", what);
  out.value_target = JsonString(manifest.at("calibration"), "value_target", what);
  out.serving.k_clip_ratio = JsonDouble(serving, "k_clip_ratio_shared", what);
  out.serving.v_clip_ratio = JsonDouble(serving, "v_clip_ratio_shared", what);
  out.serving.sink_tokens = JsonInt(serving, "sink_tokens", what);
  out.serving.recent_tokens = JsonInt(serving, "recent_tokens", what);
  if (const int64_t group = JsonInt(serving, "quant_group_size", 0, what); group > 0)
    out.serving.quant_group_size = group;
  out.calibration = {{"artifact_sha256", artifact.identity()},
                     {"model", manifest.at("model")},
                     {"data", manifest.at("data")},
                     {"value_target", out.value_target},
                     {"program", manifest.at("program")}};
  return out;
}

Json ImportPair(const fs::path& k_path, const fs::path& v_path, const CalibrationOptions& options,
                const Json& program, const fs::path& output) {
  const RotationPair pair = OpenRotationPair(k_path, v_path);
  if (!pair.k.objective.starts_with("qqt_")) {
    throw InputError(
        fmt::format("{}: objective '{}': only key rotations fitted to the query covariance (qqt) "
                    "can be imported",
                    k_path.string(), pair.k.objective));
  }
  const ValueTarget target = TargetOfObjective(pair.v);
  const std::vector<LayerCovariances> k = RecoverCovariances(pair.k),
                                      v = RecoverCovariances(pair.v);
  FitOptions fit = options.fit;
  fit.value_target = target;

  ArtifactInfo info;
  info.model = {{"id", pair.k.calibration.is_object()
                           ? pair.k.calibration.value("model_path", std::string("unknown"))
                           : std::string("unknown")}};
  info.data = {{"name", "imported rotation files"},
               {"files", {FileJson(k_path), FileJson(v_path)}}};
  if (!pair.k.calibration.is_null()) info.data["calibration"] = pair.k.calibration;
  info.calibration = {
      {"value_target", ValueTargetName(target)},
      {"composition", CompositionName(fit.composition)},
      {"recovered_from", {{"k", pair.k.objective}, {"v", pair.v.objective}}},
      {"clip",
       {{"mode", "fixed"}, {"fixed_k", options.clip.fixed_k}, {"fixed_v", options.clip.fixed_v}}}};
  info.program = program;
  info.serving = {{"quant_group_size", options.clip.quant_group_size},
                  {"sink_tokens", options.sink_tokens},
                  {"recent_tokens", options.recent_tokens}};
  info.timings = Json::object();
  return WriteArtifact(output, info,
                       {k.size(), [&](size_t i) {
                          const auto same =
                              std::find_if(v.begin(), v.end(), [&](const LayerCovariances& layer) {
                                return layer.layer_id == k[i].layer_id;
                              });
                          return RefitLayer(Moments(k[i], *same, target), fit, options.clip);
                        }});
}

Json InspectArtifact(const fs::path& directory) {
  const Artifact artifact = Artifact::Open(directory);
  const SafetensorsFile rotations = SafetensorsFile::Open(directory / kRotationsFile);
  Json tensors = Json::object();
  uint64_t bytes = 0;
  for (const auto& [name, info] : rotations.tensors()) {
    tensors[name] = {{"dtype", DTypeName(info.dtype)}, {"shape", info.shape}};
    bytes += info.size;
  }
  for (int id : artifact.layer_ids()) artifact.ReadLayer(id);  // refuses what is not orthogonal
  return {{"format", "artifact"},
          {"file", directory.string()},
          {"bytes", bytes},
          {"identity", artifact.identity()},
          {"manifest", artifact.manifest()},
          {"tensors", tensors}};
}

}  // namespace oscar
