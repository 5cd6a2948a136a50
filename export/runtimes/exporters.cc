// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// To add a runtime, put its writer into a file of its own in this folder. Add a declaration and a
// row below, and its loader in export/formats/loaders.cc. If it loads a choice, add its name as
// export_target in calib/consumers.cc.
#include <fmt/format.h>

#include <string_view>

#include "capture/files/atomic_file.h"
#include "capture/files/mapped_file.h"
#include "export/artifact/chosen_rotations.h"  // HoldsLatents
#include "export/formats/loaders.h"
#include "export/runtimes/exporter.h"
#include "linalg/base/error.h"

namespace oscar {

using Write = void(const Artifact&, const ExportRequest&, const std::filesystem::path&);
Write WriteSglangFiles, WriteSglangOctFiles, WriteVllmFiles, WriteLlamacppFiles, WriteOnnxFiles,
    WriteMeanCenterFiles, WriteKvScalesFiles, WriteModelOptFiles, WriteSglangScalesFiles,
    WriteTorchFiles, WriteTrtllmFiles, WriteUpstreamMomentsFiles, WriteSafetensorsFiles;

constexpr std::string_view kNoLatents =
    "its layers have latent attention (MLA), for which only sglang-oct has a 2-bit cache";
constexpr std::string_view kNoLatentScales =
    "its layers have latent attention (MLA), whose cache has a single scale for keys and values; "
    "use --to sglang-oct";
constexpr std::string_view kNoLatentBits =
    "its layers have latent attention (MLA), whose cache has a single number of bits; use --to "
    "sglang-oct";

std::span<const Exporter> AllExporters() {
  static constexpr Exporter kExporters[] = {
      {.name = "oscar-torch",
       .help = "the complete choice, with factors of error feedback and run.py, for oscar-kv in "
               "Hugging Face transformers",
       .any_bits = true,
       .why_no_latents = kNoLatents,
       .why_no_own_rotations = "always runs the choice, including its bits and groups",
       .write = WriteTorchFiles},
      {.name = "sglang",
       .help = "a pair of files in format 1; for OSCAR's own rotations also a pair per head in "
               "format 2",
       .why_no_latents = "its layers have latent attention (MLA), for which OSCAR's sglang has no "
                         "2-bit cache; use --to sglang-oct",
       .write = WriteSglangFiles},
      {.name = "sglang-oct",
       .help = "a pair of files in format 3 with key means and query matrices; for latent "
               "attention, a directory with a file for each layer",
       .why_no_own_rotations = "can load the files of --to sglang, which also have them per head",
       .of_latents = "a directory with a file for each layer's latent",
       .write = WriteSglangOctFiles},
      {.name = "vllm",
       .help = "the same pair of format 1, for vLLM's pull request 46774",
       .why_no_latents = kNoLatents,
       .write = WriteVllmFiles},
      {.name = "llamacpp",
       .help = "tensors attn_k_rot and attn_v_rot as a GGUF, or inside a copy of the model's GGUF "
               "with --merge-into, for OSCAR's branch of llama.cpp",
       .why_no_latents = kNoLatents,
       .write = WriteLlamacppFiles},
      {.name = "onnx",
       .help = "initializers R_K and R_V of GroupQueryAttention, for onnxruntime's pull request "
               "31726",
       .why_no_latents = kNoLatents,
       .write = WriteOnnxFiles},
      {.name = "kv-mean-center",
       .help = "key means as a GGUF for --kv-mean-center of llama.cpp (PrismML's fork), with and "
               "without its Hadamard rotation of the cache",
       .carries = "key means",
       .why_no_latents = "its layers have latent attention (MLA), which llama.cpp does not centre; "
                         "use --to sglang-oct for means of latents",
       .write = WriteMeanCenterFiles},
      {.name = "kv-scales",
       .help =
           "k_scale and v_scale of an FP8 cache as an extra shard of --model with its index and "
           "configuration, for vLLM and SGLang; with --copy, the whole model including them",
       .carries = "a scale per layer and side, or with --per-head per KV head",
       .needs_model = true,
       .why_no_latents = kNoLatentScales,
       .write = WriteKvScalesFiles},
      {.name = "modelopt",
       .help = "FP8 or NVFP4 for each layer, with scales, in the format of ModelOpt's checkpoints "
               "(kv_cache_schema_version 1), for TensorRT-LLM and vLLM; with --copy, the whole "
               "model including them",
       .carries = "a type for the keys and for the values of each layer, and scales",
       .any_bits = true,
       .needs_model = true,
       .why_no_latents = kNoLatentScales,
       .write = WriteModelOptFiles},
      {.name = "sglang-scales",
       .help = "factors of an FP8 cache for SGLang's --quantization-param-path",
       .carries = "a scale per layer, for keys and values together",
       .why_no_latents = kNoLatentScales,
       .write = WriteSglangScalesFiles},
      {.name = "trtllm",
       .help = "per-layer types for TensorRT-LLM's kv_cache_config.dtype (pull request 13695)",
       .carries = "a type per layer, for keys and values together",
       .any_bits = true,
       .why_no_latents = kNoLatentBits,
       .write = WriteTrtllmFiles},
      {.name = "upstream-moments",
       .help = "oscar_moments_rank0.pt, the input of OSCAR's fit_oscar2_variants.py",
       .carries = "moments of queries, keys and values",
       .why_no_latents = "its layers have latent attention (MLA), whose moments do not fit this "
                         "format; use --to sglang-oct for their rotations",
       .write = WriteUpstreamMomentsFiles},
      {.name = "safetensors",
       .help = "rotations with their means, scales and inverse matrices, also for a single side, "
               "in the format that oscar-validate --rotation reads",
       .carries =
           "the headline choice: rotations, means, scales and the matrices that undo the rotations",
       .of_latents = "the rotations of latents",
       .write = WriteSafetensorsFiles},
  };
  return kExporters;
}

namespace {

// Adds comments that name the runtimes that load the files, after the first line of the launch
// script.
void SayWhoLoads(const Exporter& exporter, const std::filesystem::path& output) {
  for (const char* name : {"launch.txt", "run.py"}) {
    const std::filesystem::path script = output / name;
    if (!std::filesystem::exists(script)) continue;
    const MappedFile file = MappedFile::Open(script);
    const std::span<const std::byte> bytes = file.bytes();
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size()), lines;
    for (const std::string& line : LoaderLines(LoaderOf(exporter.name)))
      lines += "# " + line + "\n";
    WriteFileAtomically(script, text.insert(text.find('\n') + 1, lines));
  }
}

}  // namespace

void WriteForRuntime(const Exporter& exporter, const Artifact& artifact,
                     const ExportRequest& request, const std::filesystem::path& output) {
  const auto refuse = [&](std::string_view why) {
    throw InputError(fmt::format("{}: {}", artifact.directory().string(), why));
  };
  if (artifact.layer_ids().empty())
    refuse(
        "contains no layers, but statistics of KVTC or kvpress, whose formats are no longer "
        "supported");
  if (HoldsLatents(artifact)) {
    if (!exporter.why_no_latents.empty()) refuse(exporter.why_no_latents);
    if (request.folded)
      refuse(
          "its layers have latent attention, for which there are no folded checkpoints; write it "
          "without --folded");
  }
  exporter.write(artifact, request, output);
  SayWhoLoads(exporter, output);
}

}  // namespace oscar
