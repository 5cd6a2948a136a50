// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A new runtime: its writer in a file of its own beside this one, a declaration and a row here, and
// its name as export_target in calib/consumers.cc.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "export/artifact/chosen_rotations.h"  // HoldsLatents
#include "export/runtimes/exporter.h"
#include "linalg/error.h"

namespace oscar {

using Write = void(const Artifact&, const ExportRequest&, const std::filesystem::path&);
Write WriteSglangFiles, WriteSglangOctFiles, WriteVllmFiles, WriteLlamacppFiles, WriteOnnxFiles;

constexpr std::string_view kNoLatents =
    "its layers have latent attention (MLA), which sglang-oct alone has a 2-bit cache for";

std::span<const Exporter> AllExporters() {
  static constexpr std::array<Exporter, 5> kExporters = {{
      {.name = "sglang",
       .help = "a pair of format 1, of OSCAR's own rotations one of format 2 per head too",
       .why_no_latents = "its layers have latent attention (MLA), and OSCAR's main tree has no "
                         "2-bit cache of latents; the October tree, sglang-oct, has one",
       .write = WriteSglangFiles},
      {.name = "sglang-oct",
       .help = "format 3 with key means and query matrices, of latent attention a directory with a "
               "file for each layer",
       .why_no_own_rotations = "loads the files of sglang, which hold them per head too",
       .of_latents = "a directory with a file for each layer's latent",
       .write = WriteSglangOctFiles},
      {.name = "vllm",
       .help = "the same pair of format 1, for vLLM's pull request 46774",
       .why_no_latents = kNoLatents,
       .write = WriteVllmFiles},
      {.name = "llamacpp",
       .help = "tensors attn_k_rot and attn_v_rot as a GGUF, or with --merge-into in a copy of a "
               "model's, for OSCAR's branch of llama.cpp",
       .why_no_latents = kNoLatents,
       .write = WriteLlamacppFiles},
      {.name = "onnx",
       .help = "initializers R_K and R_V of GroupQueryAttention, for onnxruntime's pull request "
               "31726",
       .why_no_latents = kNoLatents,
       .write = WriteOnnxFiles},
  }};
  return kExporters;
}

void WriteForRuntime(const Exporter& exporter, const Artifact& artifact,
                     const ExportRequest& request, const std::filesystem::path& output) {
  if (HoldsLatents(artifact)) {
    const auto refuse = [&](std::string_view why) {
      throw InputError(fmt::format("{}: {}", artifact.directory().string(), why));
    };
    if (!exporter.why_no_latents.empty()) refuse(exporter.why_no_latents);
    if (request.folded)
      refuse(
          "its layers have latent attention, into which nothing is folded; write it without "
          "--folded");
  }
  exporter.write(artifact, request, output);
}

}  // namespace oscar
