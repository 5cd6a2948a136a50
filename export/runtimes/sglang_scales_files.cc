// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes files for SGLang's --quantization-param-path (QuantParamSchema of
// python/sglang/srt/model_loader/weight_utils.py). A file has a factor for every tensor-parallel
// rank and layer, which keys and values share. SGLang requires the server's number of ranks and
// layers. So there is a file for each number of ranks, and layers without a cache have the factor
// 1.
#include <fmt/format.h>

#include <algorithm>

#include "capture/files/atomic_file.h"
#include "export/artifact/artifact_format.h"
#include "export/formats/sglang.h"  // ShellWord
#include "export/runtimes/cache_scales.h"
#include "export/runtimes/exporter.h"

namespace oscar {
namespace {

std::string ScalesName(int ranks) { return fmt::format("kv_cache_scales_tp{}.json", ranks); }

}  // namespace

void WriteSglangScalesFiles(const Artifact& artifact, const ExportRequest&,
                            const std::filesystem::path& output) {
  const std::vector<LayerMaxima> layers = MaximaOf(artifact);
  const Json model = artifact.manifest().value("model", Json::object());
  int64_t num_layers = JsonInt(model, "num_layers", 0, kManifestFile);
  for (const LayerMaxima& layer : layers) num_layers = std::max(num_layers, layer.layer_id + 1);
  Json factors = Json::object();
  for (int64_t id = 0; id < num_layers; ++id) factors[std::to_string(id)] = 1.0;
  for (const LayerMaxima& layer : layers) {
    factors[std::to_string(layer.layer_id)] =
        std::max(ScaleOf(layer.k, kLargestE4m3), ScaleOf(layer.v, kLargestE4m3));
  }
  AtomicDirectory directory(output);
  for (const int ranks : {1, 2, 4, 8}) {
    Json content = {{"kv_cache", {{"dtype", "float8_e4m3fn"}, {"scaling_factor", Json::object()}}}};
    for (int rank = 0; rank < ranks; ++rank)
      content["kv_cache"]["scaling_factor"][std::to_string(rank)] = factors;
    if (model.contains("model_type")) content["model_type"] = model["model_type"];
    WriteFileAtomically(directory.staging() / ScalesName(ranks), CanonicalJson(content));
  }
  const std::string name = LaunchModel(artifact.manifest());
  WriteFileAtomically(
      directory.staging() / "launch.txt",
      fmt::format(
          "#!/bin/sh\n"
          "# Starts SGLang with an FP8 cache of {} and a factor for each layer.\n"
          "# Keys and values share one factor, the larger; no rotations, no windows.\n"
          "# With --tp-size 2, 4 or 8, use the file for that many ranks. Some releases load\n"
          "# factors and never use them (sgl-project/sglang, issue 18818); --to kv-scales\n"
          "# writes them as tensors, which all load.\n"
          "python -m sglang.launch_server --model-path {} --kv-cache-dtype fp8_e4m3 "
          "--quantization-param-path {}\n",
          ShellWord(name), ShellWord(LaunchPath(artifact.manifest())),
          ShellWord(std::filesystem::absolute(output / ScalesName(1)).string())));
  directory.Commit();
}

}  // namespace oscar
