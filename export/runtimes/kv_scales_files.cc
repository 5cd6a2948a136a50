// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes the k_scale and v_scale of an FP8 cache as additional files of a checkpoint, as vLLM and
// SGLang load them (maybe_remap_kv_scale_name; vLLM's CompressedTensorsKVCacheMethod,
// Fp8KVCacheMethod and ModelOpt's). Trap: both look for scales only if config.json names a
// quantization method that can have them. For a model without such a method, it is set to
// compressed-tensors, with a kv_cache_scheme and no quantized weights.
#include <fmt/format.h>

#include "capture/checkpoint/checkpoint.h"
#include "capture/files/atomic_file.h"
#include "capture/model/spec/model_spec.h"
#include "export/formats/sglang.h"  // ShellWord
#include "export/runtimes/cache_scales.h"
#include "export/runtimes/checkpoint_overlay.h"
#include "export/runtimes/exporter.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr const char* kConfigFile = "config.json";
constexpr const char* kModelOptFile = "hf_quant_config.json";

// The names of scales for a weight format (suffixes of the attention module's name), and the
// configuration files that change.
struct ScaleFormat {
  std::string_view k_name = ".k_scale", v_name = ".v_scale";
  std::map<std::string, Json> changed = {};
};

ScaleFormat FormatOf(const Checkpoint& checkpoint, bool per_head) {
  const fs::path directory = checkpoint.directory();
  Json config = ReadJsonFile((directory / kConfigFile).string());
  const std::string& method = checkpoint.quantization().method();
  ScaleFormat format;
  if (per_head && !method.empty() && method != "compressed-tensors") {
    throw InputError(
        fmt::format("{}: with weights in format {}, runtimes load one scale per layer and side; "
                    "write it without --per-head",
                    directory.string(), method));
  }
  const Json scheme = {{"num_bits", 8},        {"type", "float"},
                       {"symmetric", true},    {"strategy", per_head ? "attn_head" : "tensor"},
                       {"dynamic", false},     {"observer", "minmax"},
                       {"group_size", Json()}, {"block_structure", Json()}};
  Json& quantization = config["quantization_config"];
  if (method.empty()) {
    quantization = {{"quant_method", "compressed-tensors"}, {"format", "dense"},
                    {"config_groups", Json::object()},      {"ignore", Json::array()},
                    {"quantization_status", "compressed"},  {"kv_cache_scheme", scheme}};
  } else if (method == "compressed-tensors") {
    quantization["kv_cache_scheme"] = scheme;
  } else if (method == "modelopt") {
    format.k_name = ".k_proj.k_scale";
    format.v_name = ".v_proj.v_scale";
    if (quantization.is_object()) {
      quantization["kv_cache_scheme"] = {{"dynamic", false}, {"num_bits", 8}, {"type", "float"}};
    } else {
      config.erase("quantization_config");
    }
    if (fs::exists(directory / kModelOptFile)) {
      Json own = ReadJsonFile((directory / kModelOptFile).string());
      own["quantization"]["kv_cache_quant_algo"] = "FP8";
      format.changed[kModelOptFile] = own;
    }
  } else if (method != "fp8") {
    throw InputError(
        fmt::format("{}: with weights in format {}, no runtime loads cache scales from the "
                    "checkpoint; use --to sglang-scales, which writes a separate file for SGLang",
                    directory.string(), method));
  }
  format.changed[kConfigFile] = config;
  return format;
}

std::vector<OverlayTensor> ScaleTensors(const Artifact& artifact, const ModelSpec& spec,
                                        const ScaleFormat& format, bool per_head) {
  std::vector<OverlayTensor> tensors;
  for (const LayerMaxima& layer : MaximaOf(artifact)) {
    const std::string module = AttentionModule(spec, artifact, static_cast<int>(layer.layer_id));
    const auto add = [&](std::string_view name, const std::vector<double>& maxima) {
      OverlayTensor tensor{.name = module + std::string(name), .shape = {1}, .values = {}};
      if (per_head) {
        tensor.shape = {std::ssize(maxima), 1, 1};
        for (const double largest : maxima)
          tensor.values.push_back(ScaleOf({largest}, kLargestE4m3));
      } else {
        tensor.values = {ScaleOf(maxima, kLargestE4m3)};
      }
      tensors.push_back(std::move(tensor));
    };
    add(format.k_name, layer.k);
    add(format.v_name, layer.v);
  }
  return tensors;
}

std::string ScalesLaunch(const std::string& model, const fs::path& output,
                         const ExportRequest& request) {
  const std::string served =
      request.whole_copy ? ShellWord(fs::absolute(output).string()) : "MODEL_WITH_SCALES";
  std::string text = fmt::format(
      "#!/bin/sh\n"
      "# Starts vLLM with an FP8 cache of {} and the scales in this directory.\n"
      "# Keys and values are stored as they are: no rotations, no means, no windows.\n",
      ShellWord(model));
  if (!request.whole_copy) {
    text += fmt::format(
        "# MODEL_WITH_SCALES is a copy of the model's directory with these files laid over it:\n"
        "# cp -rL {} MODEL_WITH_SCALES && cp {}/*.json {}/*.safetensors MODEL_WITH_SCALES/\n",
        ShellWord(fs::absolute(request.checkpoint).string()),
        ShellWord(fs::absolute(output).string()), ShellWord(fs::absolute(output).string()));
  }
  if (request.per_head)
    text +=
        "# A scale per KV head needs vLLM's FlashAttention backend; SGLang does not support it.\n";
  text += fmt::format("vllm serve {} --kv-cache-dtype fp8\n", served);
  if (!request.per_head) {
    text += fmt::format(
        "# SGLang: python -m sglang.launch_server --model-path {} --kv-cache-dtype fp8_e4m3\n",
        served);
  }
  return text;
}

}  // namespace

void WriteKvScalesFiles(const Artifact& artifact, const ExportRequest& request,
                        const fs::path& output) {
  const Checkpoint checkpoint = Checkpoint::Open(request.checkpoint);
  const ModelSpec spec =
      ReadModelSpec(request.checkpoint, {.unknown_config = UnknownConfig::kIgnore});
  const ScaleFormat format = FormatOf(checkpoint, request.per_head);
  const std::vector<OverlayTensor> tensors = ScaleTensors(artifact, spec, format, request.per_head);
  AtomicDirectory directory(output);
  WriteOverlay(checkpoint, tensors, format.changed, request.whole_copy, directory.staging());
  WriteFileAtomically(directory.staging() / "launch.txt",
                      ScalesLaunch(LaunchModel(artifact.manifest()), output, request));
  directory.Commit();
}

}  // namespace oscar
