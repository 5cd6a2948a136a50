// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/formats/loaders.h"

#include <fmt/format.h>

#include <algorithm>

#include "linalg/base/check.h"

namespace oscar {
namespace {

constexpr Loader kLoaders[] = {
    {.target = "oscar-torch",
     .source = "oscar-kv (export/runtimes/torch of oscar, same version) in Hugging Face "
               "transformers",
     .released = "transformers 5.17 and later; no released version of oscar-kv is known, but "
                 "tools/wheel.sh builds its wheel",
     .hardware = "CPUs; NVIDIA GPUs of compute capability 8.0 to 12.0"},
    {.target = "sglang",
     .source = "github.com/FutureMLS-Lab/OSCAR before 3 October 2026 (commit 473ff3f, folder "
               "sglang-research), and pull request 32129 of sgl-project/sglang, which is open",
     .released = kNotReleased,
     .hardware = "NVIDIA GPUs; tested on H100; fa3 was reported to fail on compute capability 8.9"},
    {.target = "sglang-oct",
     .source =
         "github.com/FutureMLS-Lab/OSCAR, branch main since 3 October 2026, on SGLang's commit "
         "67eab57057; docker/Dockerfile.oscar there builds an image",
     .released = kNotReleased,
     .hardware = "NVIDIA GPUs; tested on B200"},
    {.target = "vllm",
     .source = "pull request 46774 of vllm-project/vllm, which is open",
     .released = kNotReleased,
     .hardware = "NVIDIA GPUs; it is not known which"},
    {.target = "llamacpp",
     .source = "github.com/FutureMLS-Lab/OSCAR, branch zhongzhu/llamacpp; not llama.cpp itself",
     .released = kNotReleased,
     .hardware = "Apple GPUs (Metal), NVIDIA GPUs (CUDA); CPUs, slowly"},
    {.target = "onnx",
     .source = "pull request 31726 of microsoft/onnxruntime, which is open",
     .released = kNotReleased,
     .hardware = "CPUs"},
    {.target = "kv-mean-center",
     .source = "github.com/PrismML-Eng/llama.cpp with its pull requests 51 and 53 (July 2026)",
     .released = "no released version of llama.cpp is known; the fork since July 2026",
     .hardware = "all that llama.cpp supports"},
    {.target = "kv-scales",
     .source = "vLLM and SGLang, tensors k_scale and v_scale of the checkpoint",
     .released = "vLLM (documented for 0.11.2 to 0.25.0) and SGLang; models of Qwen3.5 drop the "
                 "scales in vLLM (issue 54623)",
     .hardware = "GPUs with an FP8 cache: NVIDIA, AMD MI300"},
    {.target = "modelopt",
     .source =
         "TensorRT-LLM if all layers have the same type (scales since its pull request 10745); for "
         "different types per layer, vLLM with pull requests 56155 and 56156, which are open",
     .released = "TensorRT-LLM for one type in all layers; no released version is known for "
                 "different types per layer",
     .hardware = "NVIDIA GPUs: FP8 from Ada and Hopper on, NVFP4 from Blackwell on"},
    {.target = "sglang-scales",
     .source = "SGLang's --quantization-param-path, which reads the factors but does not use them "
               "(issue 18818; the fix, pull request 20705, was closed)",
     .released = "no released version is known to use them; use --to kv-scales instead",
     .hardware = "GPUs with an FP8 cache in SGLang"},
    {.target = "trtllm",
     .source = "pull request 13695 of NVIDIA/TensorRT-LLM, which is open",
     .released = kNotReleased,
     .hardware = "NVIDIA GPUs: FP8 from Ada and Hopper on, NVFP4 from Blackwell on"},
    {.target = "upstream-moments",
     .source = "github.com/FutureMLS-Lab/OSCAR, branch main since 3 October 2026, "
               "rotation/tools/fit_oscar2_variants.py",
     .released = kNotReleased,
     .hardware = "any machine with PyTorch"},
    {.target = "safetensors",
     .source = "oscar-validate --rotation, and any program that reads safetensors; no server",
     .released = "no server reads them",
     .hardware = "any"},
};

}  // namespace

const Loader& LoaderOf(std::string_view target) {
  const auto row = std::ranges::find(kLoaders, target, &Loader::target);
  OSCAR_CHECK(row != std::end(kLoaders));
  return *row;
}

std::array<std::string, 3> LoaderLines(const Loader& loader) {
  return {fmt::format("loaded by: {}", loader.source),
          fmt::format("released ({}): {}", kLoadersAsOf, loader.released),
          fmt::format("hardware: {}", loader.hardware)};
}

}  // namespace oscar
