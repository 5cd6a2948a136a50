// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes files for vLLM's pull request 46774: a pair of .pt files (version 1) with one rotation per
// layer.
#include <fmt/format.h>

#include "export/artifact/chosen_rotations.h"
#include "export/artifact/foreign_rotations.h"
#include "export/formats/sglang_choice.h"
#include "export/runtimes/exporter.h"

namespace oscar {
namespace {

std::string VllmLaunch(const SglangServing& serving, const std::filesystem::path& k_path,
                       const std::filesystem::path& v_path, std::string_view model) {
  return fmt::format(
      "VLLM_OSCAR_K_ROTATION_PATH={} \\\n"
      "VLLM_OSCAR_V_ROTATION_PATH={} \\\n"
      "VLLM_OSCAR_K_CLIP_RATIO={} \\\n"
      "VLLM_OSCAR_V_CLIP_RATIO={} \\\n"
      "VLLM_OSCAR_GROUP_SIZE={} \\\n"
      "VLLM_OSCAR_SINK_TOKENS={} \\\n"
      "VLLM_OSCAR_RECENT_TOKENS={} \\\n"
      "vllm serve {} --kv-cache-dtype oscar_int2\n",
      ShellWord(std::filesystem::absolute(k_path).string()),
      ShellWord(std::filesystem::absolute(v_path).string()), serving.k_clip_ratio,
      serving.v_clip_ratio, serving.quant_group_size, serving.sink_tokens, serving.recent_tokens,
      ShellWord(model));
}

const PairServer& VllmServer() {
  static const PairServer server = {
      "vLLM",
      VllmLaunch,
      {"They need pull request 46774, which is open. Scale and zero are rounded to fp16",
       "there, the first two and the last two layers are not quantized, and its first revisions",
       "have no SINK_TOKENS and RECENT_TOKENS."}};
  return server;
}

}  // namespace

void WriteVllmFiles(const Artifact& artifact, const ExportRequest& request,
                    const std::filesystem::path& output) {
  if (request.chosen) {
    return WriteSglangChoice(output, ChosenForRuntime(artifact, Consumer::kVllm, request.folded),
                             SglangVersion::kV1, VllmServer());
  }
  SglangExport rotations = ToSglang(artifact);
  for (SglangLayer& layer : rotations.layers)  // vLLM refuses per-head files
    layer.k.per_head = layer.v.per_head = nullptr;
  WriteSglang(output, rotations, VllmServer());
}

}  // namespace oscar
