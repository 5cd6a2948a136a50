// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// An artifact's bits by layer as other tools say them: TensorRT-LLM's dtype map (pull request
// 13695: "0-3:fp8,4-35:nvfp4"), ik_llama.cpp's flags (pull request 1599: -ctk-first TYPE,N),
// KVTuner's YAML (cmd2001/KVTuner: {layer: {nbits_key, nbits_value}}), vLLM's list of layers that
// stay in 16 bits.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "capture/files/atomic_file.h"
#include "export/formats/sglang.h"  // ShellWord
#include "export/runtimes/cache_bits.h"
#include "export/runtimes/exporter.h"
#include "linalg/error.h"

namespace oscar {
namespace {

struct NamedType {
  int bits;
  std::string_view name;
};

// The smallest that holds so many bits; the last holds all.
template <size_t N>
std::string_view TypeFor(int bits, const std::array<NamedType, N>& types) {
  return std::ranges::find_if(types, [&](const NamedType& type) { return type.bits >= bits; })
      ->name;
}

constexpr std::array<NamedType, 3> kFloatTypes = {{{4, "nvfp4"}, {8, "fp8"}, {16, "auto"}}};
constexpr std::array<NamedType, 4> kIkTypes = {
    {{4, "q4_0"}, {6, "q6_0"}, {8, "q8_0"}, {16, "f16"}}};

// One file and how to use it.
void WriteRecipe(const std::filesystem::path& output, std::string_view name, std::string_view text,
                 const Artifact& artifact, bool typed, std::string_view server,
                 std::string_view command) {
  AtomicDirectory directory(output);
  if (!name.empty()) WriteFileAtomically(directory.staging() / name, text);
  WriteFileAtomically(directory.staging() / "launch.txt",
                      fmt::format("#!/bin/sh\n"
                                  "# Starts {} with the bits by layer that were chosen for {}.\n"
                                  "# Keys and values are stored as they are, {}:\n"
                                  "# no rotations, no means, no clip ratios, no windows.\n{}",
                                  server, ShellWord(LaunchModel(artifact.manifest())),
                                  typed ? "in types shared out by what each costs the next token"
                                        : "each in the smallest type of so many bits",
                                  command));
  directory.Commit();
}

// A type of the first n layers, of the last m, and of those between.
struct Ends {
  std::string_view first, middle, last;
  size_t num_first = 0, num_last = 0;
};

Ends EndsOf(const std::vector<std::string_view>& types, const std::string& what) {
  Ends ends{.first = types.front(), .middle = types[types.size() / 2], .last = types.back()};
  const size_t count = types.size();
  // At the middle one both end.
  while (ends.first != ends.middle && types[ends.num_first] == ends.first) ++ends.num_first;
  while (ends.last != ends.middle && types[count - 1 - ends.num_last] == ends.last) ++ends.num_last;
  for (size_t i = ends.num_first; i + ends.num_last < count; ++i) {
    if (types[i] == ends.middle) continue;
    throw InputError(fmt::format(
        "{}: layer {} has {} and those around it {}, and ik_llama.cpp tells the first and the last "
        "layers apart from the others, not single ones; --to kvtuner says every layer's bits",
        what, i, types[i], ends.middle));
  }
  return ends;
}

std::string IkFlags(std::string_view side, const Ends& ends) {
  std::string flags = fmt::format("-ct{} {}", side, ends.middle);
  if (ends.num_first > 0)
    flags += fmt::format(" -ct{}-first {},{}", side, ends.first, ends.num_first);
  if (ends.num_last > 0) flags += fmt::format(" -ct{}-last {},{}", side, ends.last, ends.num_last);
  return flags;
}

}  // namespace

void WriteTrtllmFiles(const Artifact& artifact, const ExportRequest& request,
                      const std::filesystem::path& output) {
  const auto [bits, typed] = BitsFor(artifact, "trtllm", request.bits);
  const auto& layers = bits;  // clang 14 lets no lambda use a structured binding
  std::string map;
  for (size_t begin = 0, end = 0; begin < layers.size(); begin = end) {
    const auto type = [&](size_t i) {
      return TypeFor(std::max(layers[i].k, layers[i].v), kFloatTypes);
    };
    std::vector<int64_t> ids;
    for (end = begin; end < layers.size() && type(end) == type(begin) &&
                      (end == begin || layers[end].layer_id == layers[end - 1].layer_id + 1);
         ++end)
      ids.push_back(layers[end].layer_id);
    map += fmt::format("{}{}:{}", begin == 0 ? "" : ",", RangesText(ids), type(begin));
  }
  WriteRecipe(
      output, "extra_llm_api_options.yaml", fmt::format("kv_cache_config:\n  dtype: \"{}\"\n", map),
      artifact, typed, "TensorRT-LLM",
      fmt::format(
          "# A layer has one type for both sides, the wider; scales of FP8 and NVFP4 "
          "are the checkpoint's\n# (--to modelopt writes them). The map is of pull "
          "request 13695, which is open.\n"
          "trtllm-serve {} --extra_llm_api_options {}\n",
          ShellWord(LaunchModel(artifact.manifest())),
          ShellWord(std::filesystem::absolute(output / "extra_llm_api_options.yaml").string())));
}

void WriteIkLlamaFiles(const Artifact& artifact, const ExportRequest&,
                       const std::filesystem::path& output) {
  std::vector<std::string_view> k, v;
  const std::string what = artifact.directory().string();
  for (const LayerBits& layer : BitsFor(artifact, "ik-llama", 0).layers) {
    if (layer.layer_id != std::ssize(k)) {
      throw InputError(fmt::format(
          "{}: layer {} stands where layer {} should, and ik_llama.cpp counts all; --to kvtuner "
          "names layers",
          what, layer.layer_id, k.size()));
    }
    k.push_back(TypeFor(layer.k, kIkTypes));
    v.push_back(TypeFor(layer.v, kIkTypes));
  }
  const std::string flags =
      IkFlags("k", EndsOf(k, what + ", keys")) + " " + IkFlags("v", EndsOf(v, what + ", values"));
  WriteRecipe(output, "", "", artifact, false, "ik_llama.cpp",
              fmt::format("# The flags are of pull request 1599, which is merged.\n"
                          "llama-server -m MODEL.gguf -fa on {}\n",
                          flags));
}

void WriteKvtunerFiles(const Artifact& artifact, const ExportRequest& request,
                       const std::filesystem::path& output) {
  const auto [layers, typed] = BitsFor(artifact, "kvtuner", request.bits);
  std::string yaml;
  const auto power = [&](int64_t layer_id, int bits) {
    for (const int known : {2, 4, 8})
      if (bits <= known) return known;
    throw InputError(fmt::format(
        "{}: layer {} is not quantized on one side, and KVTuner has 2, 4 and 8 bits; --to "
        "vllm-skip-layers leaves layers out",
        artifact.directory().string(), layer_id));
  };
  for (const LayerBits& layer : layers) {
    yaml += fmt::format("{}:\n  nbits_key: {}\n  nbits_value: {}\n", layer.layer_id,
                        power(layer.layer_id, layer.k), power(layer.layer_id, layer.v));
  }
  WriteRecipe(output, "kvtuner.yaml", yaml, artifact, typed, "KVTuner's evaluation",
              fmt::format("# Its model arguments: per_layer_quant=True,per_layer_config_path={}\n",
                          std::filesystem::absolute(output / "kvtuner.yaml").string()));
}

void WriteVllmSkipLayersFiles(const Artifact& artifact, const ExportRequest& request,
                              const std::filesystem::path& output) {
  const BitsByLayer of_layers = BitsFor(artifact, "vllm-skip-layers", request.bits);
  const std::vector<LayerBits>& layers = of_layers.layers;
  const auto most = [](const LayerBits& layer) { return std::max(layer.k, layer.v); };
  // The type that most layers fit into; what needs more keeps 16 bits.
  const auto within = [&](int bits) {
    return std::ranges::count_if(layers,
                                 [&](const LayerBits& layer) { return most(layer) <= bits; });
  };
  // Decided types are one and 16 bits.
  const bool narrow = of_layers.typed ? within(4) > 0 : 2 * within(4) > std::ssize(layers);
  const int bits = narrow ? 4 : 8;
  std::string skipped;
  for (const LayerBits& layer : layers)
    if (most(layer) > bits) skipped += fmt::format(" {}", layer.layer_id);
  WriteRecipe(output, "", "", artifact, of_layers.typed, "vLLM",
              fmt::format("# The layers listed keep 16 bits. Scales are the checkpoint's (--to "
                          "kv-scales writes\n# them); without they are 1.\n"
                          "vllm serve {} --kv-cache-dtype {}{}{}\n",
                          ShellWord(LaunchModel(artifact.manifest())), narrow ? "nvfp4" : "fp8",
                          skipped.empty() ? "" : " --kv-cache-dtype-skip-layers", skipped));
}

}  // namespace oscar
