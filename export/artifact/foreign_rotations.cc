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
#include "linalg/base/error.h"

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

// Appends a rank's heads to those of earlier ranks. `like`: the same layer of the first rank.
void AddHeads(const MomentLayer& rank, const MomentLayer& like, int64_t kv_heads, LayerMoments& m) {
  if (rank.layer_id != like.layer_id || rank.head_dim != like.head_dim ||
      rank.v_head_dim != like.v_head_dim || rank.count != like.count) {
    throw InputError(fmt::format("layer {}: the ranks belong to different runs", rank.layer_id));
  }
  const auto append = [](std::vector<double>& to, const std::vector<double>& from, double factor) {
    for (const double value : from) to.push_back(value * factor);
  };
  m.num_kv_heads += rank.num_kv_heads;
  const int64_t ratio = kv_heads > 0 ? m.num_q_heads / kv_heads : 0;
  append(m.query, rank.m_q, static_cast<double>(m.tokens * ratio));  // m_q is a mean
  append(m.key, rank.m_k, 1);
  append(m.key_sum, rank.k_sum, 1);
  append(m.diagonal, rank.s_v, 1);  // s_v is a mean, so its weight is 1
  m.diagonal_weight.resize(static_cast<size_t>(m.num_kv_heads), 1.0);
}

// Returns the manifest's record of a fit from moments alone, with fixed clip ratios.
Json FixedFit(const FitOptions& fit, const ClipOptions& clip) {
  return {{"value_target", ValueTargetName(fit.value_target)},
          {"composition", CompositionName(fit.composition)},
          {"clip", {{"mode", "fixed"}, {"fixed_k", clip.fixed_k}, {"fixed_v", clip.fixed_v}}}};
}

Json FileJson(const fs::path& path) {
  Json json = DigestToJson(DigestFile(path));
  json["name"] = path.filename().string();
  return json;
}

}  // namespace

SglangExport ToSglang(const Artifact& artifact) {
  if (artifact.imported()) {
    throw InputError(artifact.directory().string() +
                     ": was imported, so it contains no rotations fitted by oscar-calibrate");
  }
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

Json ImportMoments(const std::vector<fs::path>& paths, const Json& program,
                   const fs::path& output) {
  std::vector<RotationFile> ranks;
  for (const fs::path& path : paths) ranks.push_back(OpenRotationFile(path));
  const std::string first = paths.at(0).string();
  const auto number = [](const RotationFile& rank, const char* key) {
    return JsonInt(rank.calibration, key, rank.path.string());
  };
  std::ranges::sort(ranks, {}, [&](const RotationFile& rank) { return number(rank, "tp_rank"); });
  const int64_t q_heads = number(ranks[0], "global_q_heads"),
                kv_heads = number(ranks[0], "global_kv_heads");
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].kind != RotationKind::kMoments ||
        number(ranks[r], "tp_rank") != static_cast<int64_t>(r) ||
        number(ranks[r], "tp_size") != std::ssize(ranks) ||
        ranks[r].moments.size() != ranks[0].moments.size()) {
      throw InputError(
          fmt::format("{}: found {} files of moments, expected ranks 0 to {} of a single run",
                      first, ranks.size(), number(ranks[0], "tp_size") - 1));
    }
  }
  std::vector<LayerMoments> layers;
  for (size_t i = 0; i < ranks[0].moments.size(); ++i) {
    const MomentLayer& like = ranks[0].moments[i];
    LayerMoments m;
    m.layer_id = static_cast<int>(like.layer_id);
    m.num_q_heads = q_heads;
    m.head_dim = like.head_dim;
    m.v_head_dim = like.v_head_dim;
    m.tokens = like.count;
    for (const RotationFile& rank : ranks) AddHeads(rank.moments[i], like, kv_heads, m);
    if (kv_heads <= 0 || m.num_kv_heads != kv_heads || q_heads % kv_heads != 0) {
      throw InputError(
          fmt::format("{}: layer {} has {} KV heads and {} query heads, expected {} KV heads and a "
                      "multiple of that many query heads",
                      first, m.layer_id, m.num_kv_heads, q_heads, kv_heads));
    }
    layers.push_back(std::move(m));
  }
  ArtifactInfo info;
  info.model = {{"id", ranks[0].calibration.value("model_path", Json("unknown"))}};
  if (!info.model["id"].is_string()) info.model["id"] = "unknown";
  info.data = {{"name", "imported, unverified: moments from OSCAR's start-up calibrator"},
               {"files", Json::array()},
               {"calibration", ranks[0].calibration}};
  for (const fs::path& path : paths) info.data["files"].push_back(FileJson(path));
  const FitOptions fit{.value_target = ValueTarget::kDiagonal};
  const CalibrationOptions options;
  info.calibration = FixedFit(fit, options.clip);
  info.program = program;
  info.serving = {{"quant_group_size", options.clip.quant_group_size},
                  {"sink_tokens", options.sink_tokens},
                  {"recent_tokens", options.recent_tokens}};
  info.timings = Json::object();
  return WriteArtifact(output, info, {layers.size(), [&](size_t i) {
                                        return RefitLayer(layers[i], fit, options.clip);
                                      }});
}

Json InspectArtifact(const fs::path& directory) {
  const Artifact artifact = Artifact::OpenAny(directory);
  const SafetensorsFile rotations = SafetensorsFile::Open(directory / kRotationsFile);
  Json tensors = Json::object();
  uint64_t bytes = 0;
  for (const auto& [name, info] : rotations.tensors()) {
    tensors[name] = {{"dtype", DTypeName(info.dtype)}, {"shape", info.shape}};
    bytes += info.size;
  }
  for (int id : artifact.layer_ids()) {  // ReadLayer throws if a rotation is not orthogonal
    if (!artifact.imported()) {
      artifact.ReadLayer(id);
    } else if (artifact.has_choices()) {
      artifact.ReadChoice(id, kHeadlineChoice);
    }
  }
  return {{"format", "artifact"},
          {"file", directory.string()},
          {"bytes", bytes},
          {"identity", artifact.identity()},
          {"manifest", artifact.manifest()},
          {"tensors", tensors}};
}

}  // namespace oscar
