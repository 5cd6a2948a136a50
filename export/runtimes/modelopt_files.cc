// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Describes a cache with FP8 and NVFP4 layers as NVIDIA/Model-Optimizer does in checkpoints (pull
// request 2272; kv_cache_schema_version 1). The types of layers, by attention module, are in
// kv_cache_quantized_layers of hf_quant_config.json and of quantization_config in config.json. The
// scales k_proj.k_scale and v_proj.v_scale are the largest magnitude divided by 448 for FP8, or by
// 6 * 448 for NVFP4.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "capture/files/atomic_file.h"
#include "capture/model/spec/model_spec.h"
#include "export/formats/sglang.h"  // ShellWord
#include "export/runtimes/cache_bits.h"
#include "export/runtimes/cache_scales.h"
#include "export/runtimes/checkpoint_overlay.h"
#include "export/runtimes/exporter.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr int kNvfp4Bits = 4, kFp8Bits = 8;
constexpr const char *kConfigName = "config.json", *kModelOptName = "hf_quant_config.json";

// Returns the smallest algorithm that has enough bits for keys and for values; empty if the layer
// keeps 16 bits. No algorithm combines NVFP4 keys with FP8 values.
std::string_view AlgorithmOf(const LayerBits& layer) {
  const int most = std::max(layer.k, layer.v);
  if (most > kFp8Bits) return "";
  if (most <= kNvfp4Bits) return "NVFP4";
  return layer.v <= kNvfp4Bits && layer.equal_widths ? "FP8_K_NVFP4_V" : "FP8";
}

void AddCache(Json& quantization, const Json& layers, std::string_view algorithm) {
  quantization["kv_cache_quant_algo"] = algorithm;
  quantization["kv_cache_schema_version"] = 1;
  quantization["kv_cache_quantized_layers"] = layers;
  if (!quantization.contains("quant_algo")) quantization["quant_algo"] = nullptr;
}

}  // namespace

void WriteModelOptFiles(const Artifact& artifact, const ExportRequest& request,
                        const fs::path& output) {
  const Checkpoint checkpoint = Checkpoint::Open(request.checkpoint);
  const ModelSpec spec =
      ReadModelSpec(request.checkpoint, {.unknown_config = UnknownConfig::kIgnore});
  const std::string& method = checkpoint.quantization().method();
  if (!method.empty() && method != "modelopt") {
    throw InputError(fmt::format(
        "{}: has weights in format {}, but ModelOpt's configuration only works with its own "
        "checkpoints and with those that are not quantized; use --to kv-scales for other formats",
        request.checkpoint.string(), method));
  }
  const std::vector<LayerMaxima> maxima = MaximaOf(artifact);
  std::vector<OverlayTensor> tensors;
  Json layers = Json::object();
  std::set<std::string_view> algorithms;
  const auto [of_layers, typed] = BitsFor(artifact, "modelopt", request.bits);
  for (const LayerBits& layer : of_layers) {
    const std::string_view algorithm = AlgorithmOf(layer);
    algorithms.insert(algorithm);
    if (algorithm.empty()) continue;
    const std::string module = AttentionModule(spec, artifact, static_cast<int>(layer.layer_id));
    layers[module] = {{"quant_algo", algorithm}};
    const auto of = std::ranges::find(maxima, layer.layer_id, &LayerMaxima::layer_id);
    const double k_type = algorithm == "NVFP4" ? kLargestNvfp4 : kLargestE4m3;
    const double v_type = algorithm == "FP8" ? kLargestE4m3 : kLargestNvfp4;
    tensors.push_back({module + ".k_proj.k_scale", {}, {ScaleOf(of->k, k_type)}});
    tensors.push_back({module + ".v_proj.v_scale", {}, {ScaleOf(of->v, v_type)}});
  }
  if (layers.empty()) {
    throw InputError(artifact.directory().string() +
                     ": no layer has 8 bits or less, so nothing is quantized");
  }
  const std::string_view algorithm =
      algorithms.size() == 1 ? *algorithms.begin() : std::string_view("MIXED_PRECISION");
  Json config = ReadJsonFile((request.checkpoint / kConfigName).string());
  Json own = {{"producer", {{"name", "oscar"}}}, {"quantization", Json::object()}};
  if (fs::exists(request.checkpoint / kModelOptName))
    own = ReadJsonFile((request.checkpoint / kModelOptName).string());
  AddCache(own["quantization"], layers, algorithm);
  Json& quantization = config["quantization_config"];
  if (!quantization.is_object()) quantization = Json::object();
  quantization["quant_method"] = "modelopt";
  AddCache(quantization, layers, algorithm);

  AtomicDirectory directory(output);
  WriteOverlay(checkpoint, tensors, {{kConfigName, config}, {kModelOptName, own}},
               request.whole_copy, directory.staging());
  const std::string model = LaunchModel(artifact.manifest());
  WriteFileAtomically(
      directory.staging() / "launch.txt",
      fmt::format(
          "#!/bin/sh\n# Starts TensorRT-LLM with a cache of {} layer by layer, of {}.\n# {}: a "
          "copy of the model with the files of this directory.\n# {} Keys and values as they are: "
          "no rotations,\n# no means, no windows. vLLM needs pull requests 56155 and 56156, which "
          "are open.\ntrtllm-serve {}\n# vLLM: vllm serve {} --kv-cache-dtype auto\n",
          algorithm, ShellWord(model), request.whole_copy ? "It has" : "MODEL_WITH_SCALES",
          typed ? "Types are chosen by the next-token KL that each causes."
                : "Fewer than 4 bits are stored in 4 (NVFP4).",
          request.whole_copy ? ShellWord(fs::absolute(output).string()) : "MODEL_WITH_SCALES",
          request.whole_copy ? ShellWord(fs::absolute(output).string()) : "MODEL_WITH_SCALES"));
  directory.Commit();
}

}  // namespace oscar
