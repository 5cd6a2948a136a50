// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes key means for llama.cpp's --kv-mean-center (PrismML-Eng/llama.cpp, docs/kv-mean-center.md,
// common/kv-mean-center.h). A GGUF has F32 tensors kv_bar.blk.<i>.k [head_dim * num_kv_heads],
// which are subtracted from keys before these are quantized to q4_0.
//
// Trap: the means must be in the basis in which keys are stored. llama.cpp rotates a quantized
// cache by Hadamard matrices if the head dim is a multiple of 64 (llama-kv-cache.cpp,
// build_input_k_rot), unless LLAMA_ATTN_ROT_DISABLE is set. A matrix has the size of the largest
// power of two that divides the head dim. kv_mean_center.k_rot names the basis of a file, and the
// loader refuses files in the other basis.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "capture/files/atomic_file.h"
#include "capture/files/digest.h"
#include "export/artifact/artifact_format.h"
#include "export/formats/gguf_writer.h"
#include "export/formats/sglang.h"  // LaunchModel
#include "export/runtimes/exporter.h"
#include "export/runtimes/gguf_model.h"
#include "linalg/base/error.h"
#include "linalg/hadamard.h"

namespace oscar {
namespace {

constexpr int64_t kTurnedMultiple = 64;  // llama.cpp rotates heads whose dim is a multiple of this
constexpr std::string_view kTurnedFile = "kv-mean-center.gguf",
                           kPlainFile = "kv-mean-center-no-rotation.gguf";

enum class Basis { kPlain, kTurned, kTurnedAlready };

struct LayerMeans {
  int64_t layer_id = 0, num_kv_heads = 0, head_dim = 0;
  std::vector<float> means;  // [num_kv_heads, head_dim], dims in the GGUF's order
};

std::vector<LayerMeans> MeansOf(const Artifact& artifact) {
  std::vector<LayerMeans> layers;
  // The model type is unknown for means that were imported from such a file. These already have the
  // GGUF's order and basis.
  const std::string model_type = ModelTypeOf(artifact);
  for (const Json& geometry : JsonMember(artifact.manifest(), "geometry", kManifestFile)) {
    LayerMeans layer{.layer_id = JsonInt(geometry, "layer_id", kManifestFile),
                     .num_kv_heads = JsonInt(geometry, "num_kv_heads", kManifestFile),
                     .head_dim = JsonInt(geometry, "head_dim", kManifestFile),
                     .means = {}};
    const std::vector<float> stored = artifact.KeyMean(static_cast<int>(layer.layer_id));
    if (stored.empty()) {
      throw InputError(
          fmt::format("{}: layer {} has no key means, because rotation files do not contain them; "
                      "calibrate the model",
                      artifact.directory().string(), layer.layer_id));
    }
    const std::vector<int64_t> order = GgufKeyOrder(model_type, layer.head_dim);
    for (int64_t head = 0; head < layer.num_kv_heads; ++head)
      for (const int64_t i : order)
        layer.means.push_back(stored[static_cast<size_t>(head * layer.head_dim + i)]);
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::vector<float> Turned(const LayerMeans& layer) {
  using Heads = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Heads> means(layer.means.data(), layer.num_kv_heads, layer.head_dim);
  const Heads turned = (means.cast<double>() * BlockHadamard(layer.head_dim)).cast<float>();
  return {turned.data(), turned.data() + turned.size()};
}

void WriteMeans(const std::filesystem::path& path, const std::vector<LayerMeans>& layers,
                Basis basis, const std::vector<GgufEntry>& identity) {
  std::vector<GgufEntry> entries = {{"general.type", "kv-mean-center"},
                                    {"kv_mean_center.schema_version", uint32_t{1}},
                                    {"kv_mean_center.k_rot", basis != Basis::kPlain}};
  entries.insert(entries.end(), identity.begin(), identity.end());
  std::vector<GgufTensor> tensors;
  for (const LayerMeans& layer : layers) {
    FloatTensor means{{std::ssize(layer.means)},
                      basis == Basis::kTurned ? Turned(layer) : layer.means};
    tensors.push_back({fmt::format("kv_bar.blk.{}.k", layer.layer_id),
                       std::make_shared<const FloatTensor>(std::move(means))});
  }
  WriteGguf(path, entries, tensors);
}

// `gguf`: the model's GGUF, or "" if unknown.
std::string MeanCenterLaunch(const std::string& model, const std::string& gguf,
                             const std::filesystem::path& output, bool turned, bool both) {
  std::string text = fmt::format(
      "#!/bin/sh\n# Starts llama.cpp with keys centred by the means in this directory, of {}.\n# "
      "They need PrismML's fork (github.com/PrismML-Eng/llama.cpp) and keys of type q4_0.\n# "
      "Nothing else of an artifact is used: no rotations, no clip ratios, no windows.\n",
      ShellWord(model));
  if (gguf.empty())
    text +=
        "# The files name no model (--gguf MODEL.gguf adds its name), so other models can load "
        "them by mistake.\n";
  if (both) text += fmt::format("# With LLAMA_ATTN_ROT_DISABLE=1, use {} instead.\n", kPlainFile);
  return text +
         fmt::format(
             "{}llama-server -m {} -ctk q4_0 -ctv q4_0 -fa on --kv-mean-center {}\n",
             turned ? "" : "LLAMA_ATTN_ROT_DISABLE=1 \\\n",
             gguf.empty() ? "MODEL.gguf" : ShellWord(gguf),
             ShellWord(
                 std::filesystem::absolute(output / (turned ? kTurnedFile : kPlainFile)).string()));
}

}  // namespace

void WriteMeanCenterFiles(const Artifact& artifact, const ExportRequest& request,
                          const std::filesystem::path& output) {
  const std::vector<LayerMeans> layers = MeansOf(artifact);
  const std::string model = LaunchModel(artifact.manifest());
  std::vector<GgufEntry> identity = {{"general.name", model + ", key means"},
                                     {"oscar.model_id", model},
                                     {"oscar.artifact_sha256", artifact.identity()}};
  const Json imported = artifact.manifest().value("imported", Json::object());
  const bool of_gguf = imported.value("from", "") == "kv-mean-center";  // a row has all heads
  const std::optional<FittedGguf> fitted = FittedGgufOf(artifact);
  if (!request.model_gguf.empty()) {
    if (!of_gguf)
      CheckGgufModel(GgufFile::Open(request.model_gguf), artifact, /*all_layers=*/false);
    identity.push_back({"kv_mean_center.model_sha256", DigestFile(request.model_gguf).sha256});
  } else if (fitted) {
    identity.push_back({"kv_mean_center.model_sha256", fitted->sha256});
  }
  bool turned = std::ranges::all_of(
      layers, [](const LayerMeans& layer) { return layer.head_dim % kTurnedMultiple == 0; });
  AtomicDirectory directory(output);
  if (of_gguf) {
    turned = imported.value(Json::json_pointer("/header/k_rot"), Json()) == true;
    WriteMeans(directory.staging() / (turned ? kTurnedFile : kPlainFile), layers,
               turned ? Basis::kTurnedAlready : Basis::kPlain, identity);
  } else {
    WriteMeans(directory.staging() / kPlainFile, layers, Basis::kPlain, identity);
    if (turned) WriteMeans(directory.staging() / kTurnedFile, layers, Basis::kTurned, identity);
  }
  std::string file = fitted ? fitted->name : "";
  if (!request.model_gguf.empty()) file = std::filesystem::absolute(request.model_gguf).string();
  WriteFileAtomically(directory.staging() / "launch.txt",
                      MeanCenterLaunch(model, file, output, turned, turned && !of_gguf));
  directory.Commit();
}

}  // namespace oscar
