// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// For OptR's runtime (arXiv 2608.02691; daniel-eai/Output-Aware-INT2-KV-Cache-Quantization): a pair
// of format 2, [num_kv_heads, d, d] each, and SGLANG_OSCAR_K_MEAN_PATH, a file {"format_version":
// 1, "note", "layers": {id: {"layer_id", "mu": [num_kv_heads, d]}}} of what keys lose before they
// are turned.
#include <fmt/format.h>

#include <algorithm>

#include "capture/files/atomic_file.h"
#include "export/artifact/foreign_rotations.h"
#include "export/formats/pt/pt_writer.h"
#include "export/formats/sglang_choice.h"
#include "export/formats/sglang_pair.h"
#include "export/runtimes/exporter.h"
#include "linalg/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr const char *kOptrK = "k_rotation_perhead.pt", *kOptrV = "v_rotation_perhead.pt",
                     *kOptrMeans = "k_mean.pt";

struct OptrLayer {
  int64_t layer_id = 0;
  FloatTensorPtr k, v, mean;  // null: not there
};

FloatTensorPtr OfHeads(const CacheSide& side, std::string_view what) {
  if (side.num_rotations == 0) return nullptr;
  if (!side.query_rotation.empty() || !side.pair_scale.empty()) {
    throw InputError(fmt::format(
        "{}: a matrix that is not orthogonal, or scales, which OptR's files have no place for; "
        "--to sglang-oct carries them",
        what));
  }
  return std::make_shared<const FloatTensor>(FloatTensor{
      {side.num_rotations, side.dim, side.dim}, {side.rotation.begin(), side.rotation.end()}});
}

OptrLayer LayerOf(const Artifact& artifact, int id) {
  OptrLayer layer{.layer_id = id, .k = {}, .v = {}, .mean = {}};
  const std::string what = fmt::format("{}: layer {}", artifact.directory().string(), id);
  std::vector<float> mean = artifact.KeyMean(id);
  if (!artifact.imported()) {
    const StoredLayer own = artifact.ReadLayer(id);
    layer.k = OfHeads(own.k, what);
    layer.v = OfHeads(own.v, what);
  } else if (artifact.has_choices()) {
    const StoredChoice choice = artifact.ReadChoice(id, kHeadlineChoice);
    layer.k = OfHeads(choice.k, what + ", keys");
    layer.v = OfHeads(choice.v, what + ", values");
    mean.assign(choice.k.mean.begin(), choice.k.mean.end());
  }
  const int64_t heads = artifact.NumKvHeads(id);
  if (!mean.empty()) {
    const int64_t dim = std::ssize(mean) / heads;
    layer.mean = std::make_shared<const FloatTensor>(FloatTensor{{heads, dim}, std::move(mean)});
  }
  return layer;
}

SglangFile OptrFile(const char* name, FloatTensorPtr OptrLayer::*side, const char* objective,
                    const std::vector<OptrLayer>& layers, const Json& calibration) {
  SglangFile file{.name = name,
                  .version = 2,
                  .objective = objective,
                  .source_grouping = "per_kv_head",
                  .value_target = {},
                  .transform = {},
                  .calibration = calibration,
                  .layers = {}};
  for (const OptrLayer& layer : layers) {
    file.layers.push_back({layer.layer_id, {{"rotation", &RotationLayer::rotation, layer.*side}}});
  }
  return file;
}

void WriteOptrMeans(const fs::path& path, const std::vector<OptrLayer>& layers) {
  PtOutDict entries;
  for (const OptrLayer& layer : layers) {
    entries.emplace_back(layer.layer_id,
                         PtOutDict{{PtKey("layer_id"), layer.layer_id}, {PtKey("mu"), layer.mean}});
  }
  WritePt(path,
          PtOutDict{{PtKey("format_version"), int64_t{1}},
                    {PtKey("note"), "mean of post-RoPE keys"},
                    {PtKey("layers"), std::move(entries)}},
          path.stem().string());
  const RotationFile read = OpenRotationFile(path);
  if (!std::ranges::equal(read.layers, layers, SameBits, &RotationLayer::k_mean,
                          &OptrLayer::mean)) {
    throw ResourceError(
        fmt::format("{}: read back differs from what was written; check the disk", path.string()));
  }
}

std::string OptrLaunch(const Artifact& artifact, const fs::path& output, bool turned, bool means) {
  const std::string model = LaunchModel(artifact.manifest());
  const auto path = [&](const char* name) {
    return ShellWord(fs::absolute(output / name).string());
  };
  const SglangExport serving = artifact.imported() ? SglangExport{} : ToSglang(artifact);
  const SglangServing& said = serving.serving;
  std::string text = LaunchHead(
      "OptR's SGLang", model,
      {"It takes them with github.com/daniel-eai/Output-Aware-INT2-KV-Cache-Quantization. Matrices",
       "of queries and scales folded into a checkpoint it does not know."});
  if (turned) {
    text += fmt::format(
        "SGLANG_ENABLE_MIXED_KV_WINDOWS=1 \\\nSGLANG_OSCAR_K_ROTATION_PATH={} \\\n"
        "SGLANG_OSCAR_V_ROTATION_PATH={} \\\nSGLANG_OSCAR_K_CLIP_RATIO={} \\\n"
        "SGLANG_OSCAR_V_CLIP_RATIO={} \\\nSGLANG_OSCAR_ABSORB_V_ROTATION=0 \\\n"
        "SGLANG_MIXED_KV_PREFIX_TOKENS={} \\\nSGLANG_MIXED_KV_RECENT_TOKENS={} \\\n",
        path(kOptrK), path(kOptrV), said.k_clip_ratio, said.v_clip_ratio, said.sink_tokens,
        said.recent_tokens);
  }
  if (means) text += fmt::format("SGLANG_OSCAR_K_MEAN_PATH={} \\\n", path(kOptrMeans));
  return text + fmt::format(
                    "python -m sglang.launch_server --model-path {} --kv-cache-dtype int2 "
                    "--kv-cache-quant-group-size {} --prefill-attention-backend fa3 "
                    "--decode-attention-backend triton\n",
                    ShellWord(model), said.quant_group_size);
}

}  // namespace

void WriteOptrFiles(const Artifact& artifact, const ExportRequest&, const fs::path& output) {
  if (artifact.manifest().value(Json::json_pointer("/imported/from"), Json()) == "kv-mean-center") {
    throw InputError(artifact.directory().string() +
                     ": key means of a GGUF are in its order of values and in the basis of "
                     "llama.cpp's cache; --to kv-mean-center writes them");
  }
  std::vector<OptrLayer> layers;
  for (const int id : artifact.layer_ids()) layers.push_back(LayerOf(artifact, id));
  const auto all = [&](FloatTensorPtr OptrLayer::*tensor) {
    return std::ranges::all_of(layers,
                               [&](const OptrLayer& layer) { return (layer.*tensor) != nullptr; });
  };
  const bool turned = all(&OptrLayer::k) && all(&OptrLayer::v), means = all(&OptrLayer::mean);
  if (!turned && !means) {
    throw InputError(artifact.directory().string() +
                     ": holds neither rotations of both sides nor key means of every layer, which "
                     "OptR's files are; --to safetensors writes one side");
  }
  const Json calibration = {{"artifact_sha256", artifact.identity()},
                            {"model", artifact.manifest().value("model", Json::object())}};
  AtomicDirectory directory(output);
  if (turned) {
    WriteSglangPair(directory.staging(),
                    OptrFile(kOptrK, &OptrLayer::k, "qqt_perhead", layers, calibration),
                    OptrFile(kOptrV, &OptrLayer::v, "sst_perhead", layers, calibration));
  }
  if (means) WriteOptrMeans(directory.staging() / kOptrMeans, layers);
  WriteFileAtomically(directory.staging() / "launch.txt",
                      OptrLaunch(artifact, output, turned, means));
  directory.Commit();
}

}  // namespace oscar
