// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes an artifact's per-layer bits as TensorRT-LLM's dtype map (pull request 13695:
// "0-3:fp8,4-35:nvfp4").
#include <fmt/format.h>

#include <algorithm>

#include "capture/files/atomic_file.h"
#include "export/formats/sglang.h"  // ShellWord
#include "export/runtimes/cache_bits.h"
#include "export/runtimes/exporter.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Returns the smallest type with at least this many bits.
std::string_view TypeFor(int bits) { return bits <= 4 ? "nvfp4" : bits <= 8 ? "fp8" : "auto"; }

}  // namespace

void WriteTrtllmFiles(const Artifact& artifact, const ExportRequest& request,
                      const std::filesystem::path& output) {
  const auto [bits, typed] = BitsFor(artifact, "trtllm", request.bits);
  const auto& layers = bits;  // clang 14 cannot use structured bindings in lambdas
  std::string map;
  for (size_t begin = 0, end = 0; begin < layers.size(); begin = end) {
    const auto type = [&](size_t i) { return TypeFor(std::max(layers[i].k, layers[i].v)); };
    std::vector<int64_t> ids;
    for (end = begin; end < layers.size() && type(end) == type(begin) &&
                      (end == begin || layers[end].layer_id == layers[end - 1].layer_id + 1);
         ++end)
      ids.push_back(layers[end].layer_id);
    map += fmt::format("{}{}:{}", begin == 0 ? "" : ",", RangesText(ids), type(begin));
  }
  AtomicDirectory directory(output);
  WriteFileAtomically(directory.staging() / "extra_llm_api_options.yaml",
                      fmt::format("kv_cache_config:\n  dtype: \"{}\"\n", map));
  const std::string model = ShellWord(LaunchModel(artifact.manifest()));
  WriteFileAtomically(
      directory.staging() / "launch.txt",
      fmt::format(
          "#!/bin/sh\n# Starts TensorRT-LLM with the per-layer bits that were chosen for {}.\n# "
          "Keys and values are stored as they are, {}:\n# no rotations, no means, no clip ratios, "
          "no windows.\n# Both sides of a layer have the same type, the wider one; the checkpoint "
          "holds scales of FP8\n# and NVFP4 (--to modelopt writes them). The map needs pull "
          "request 13695, which is open.\ntrtllm-serve {} --extra_llm_api_options {}\n",
          model,
          typed ? "in types chosen by the next-token KL that each causes"
                : "each in the smallest type with at least that many bits",
          ShellWord(LaunchPath(artifact.manifest())),
          ShellWord(std::filesystem::absolute(output / "extra_llm_api_options.yaml").string())));
  directory.Commit();
}

}  // namespace oscar
