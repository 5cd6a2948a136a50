// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// VLLM_NVFP4_MLA_SCALES_FILE of local-inference-lab/vllm (vllm/model_executor/layers/mla.py): a
// scale for the latents of each layer of an NVFP4 cache. Trap: that reader takes 78 layers of 512
// values, which is GLM-5.2, and nothing else.
#include <fmt/format.h>

#include <algorithm>

#include "capture/files/atomic_file.h"
#include "export/artifact/chosen_rotations.h"  // HoldsLatents
#include "export/formats/sglang.h"             // ShellWord
#include "export/runtimes/cache_scales.h"
#include "export/runtimes/exporter.h"
#include "linalg/error.h"

namespace oscar {
namespace {

constexpr int64_t kLayers = 78, kLatentDim = 512;
constexpr const char* kScalesFile = "nvfp4_mla_scales.json";

}  // namespace

void WriteNvfp4MlaScalesFiles(const Artifact& artifact, const ExportRequest&,
                              const std::filesystem::path& output) {
  const std::string where = artifact.directory().string();
  if (!HoldsLatents(artifact)) {
    throw InputError(where +
                     ": its layers have no latent attention (MLA), which these scales are of; --to "
                     "modelopt writes scales of NVFP4 caches of keys and values");
  }
  const std::vector<LayerMaxima> layers = MaximaOf(artifact);
  Json scales = Json::array(), maxima = Json::array();
  for (const LayerMaxima& layer : layers) {
    if (layer.layer_id != std::ssize(scales)) break;  // counted from 0
    scales.push_back(ScaleOf(layer.k, kLargestNvfp4));
    maxima.push_back(std::ranges::max(layer.k));
  }
  const int64_t dim = JsonInt(artifact.manifest().at("geometry").at(0), "head_dim", where);
  if (std::ssize(scales) < kLayers || dim != kLatentDim) {
    throw InputError(fmt::format(
        "{}: {} layers from 0 on with latents of {} values, and the reader of these scales takes "
        "{} of {} (GLM-5.2) alone; --to sglang-oct writes the 2-bit cache of any",
        where, scales.size(), dim, kLayers, kLatentDim));
  }
  scales.erase(scales.begin() + kLayers, scales.end());  // a draft layer keeps 1
  maxima.erase(maxima.begin() + kLayers, maxima.end());
  AtomicDirectory directory(output);
  WriteFileAtomically(directory.staging() / kScalesFile,
                      CanonicalJson({{"format", "nvfp4_ds_mla_outer_scale_v1"},
                                     {"num_layers", kLayers},
                                     {"latent_dim", kLatentDim},
                                     {"denominator", kLargestNvfp4},
                                     {"scales", scales},
                                     {"max_abs", maxima},
                                     {"artifact_sha256", artifact.identity()}}));
  const std::string model = LaunchModel(artifact.manifest());
  WriteFileAtomically(
      directory.staging() / "launch.txt",
      fmt::format(
          "#!/bin/sh\n"
          "# Starts vLLM (local-inference-lab's fork) with an NVFP4 cache of latents of {}.\n"
          "# Rotated keys stay as they are; no rotations, no means, no windows.\n"
          "VLLM_NVFP4_MLA_SCALES_FILE={} \\\n"
          "vllm serve {} --kv-cache-dtype nvfp4_ds_mla\n",
          ShellWord(model), ShellWord(std::filesystem::absolute(output / kScalesFile).string()),
          ShellWord(model)));
  directory.Commit();
}

}  // namespace oscar
