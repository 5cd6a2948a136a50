// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes initializers for onnxruntime's pull request 31726: the inputs R_K and R_V [num_kv_heads,
// d, d] of each layer's GroupQueryAttention node. launch.txt lists the attributes that the node
// needs.
#include <fmt/format.h>

#include "capture/files/atomic_file.h"
#include "export/artifact/chosen_rotations.h"
#include "export/formats/onnx_initializers.h"
#include "export/formats/sglang_choice.h"
#include "export/runtimes/exporter.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr std::string_view kLaunch =
    R"(#!/bin/sh
# Puts R_K and R_V of {model} into an ONNX model, for GroupQueryAttention as onnxruntime's pull
# request 31726 has it, which is open: sh launch.txt MODEL.onnx OUT.onnx
# The initializers are [num_kv_heads, head_dim, head_dim], float32, used as x * R on row vectors
# after the rotary embedding. The node of layer i takes the inputs
#     R_K = model.layers.i.attn.R_K, R_V = model.layers.i.attn.R_V
# and the attributes k_quant_type = v_quant_type = "PER_GROUP", kv_cache_bit_width = 2, as released
# exporters do not set them. Clip ratios per layer, group, windows and what each rotation was fitted
# to are JSON in the file's metadata "oscar".
python3 - "$1" "$2" <<'END'
import sys
import onnx
model, rotations = onnx.load(sys.argv[1]), onnx.load({file})
model.graph.initializer.extend(rotations.graph.initializer)
onnx.save(model, sys.argv[2])
END
)";

}  // namespace

void WriteOnnxFiles(const Artifact& artifact, const ExportRequest& request,
                    const std::filesystem::path& output) {
  const SglangChoice choice = request.chosen
                                  ? ChosenForRuntime(artifact, Consumer::kOnnx, request.folded)
                                  : OwnRotations(artifact);
  std::vector<OnnxInitializer> initializers;
  Json layers = Json::object();
  for (const SglangChoiceLayer& layer : choice.layers) {
    const std::string name = fmt::format("model.layers.{}.attn.", layer.layer_id);
    initializers.push_back({name + "R_K", MatrixPerHead(layer.k, layer.num_kv_heads)});
    initializers.push_back({name + "R_V", MatrixPerHead(layer.v, layer.num_kv_heads)});
    layers[std::to_string(layer.layer_id)] = {{"k_clip_ratio", layer.k_clip},
                                              {"v_clip_ratio", layer.v_clip}};
  }
  const Json settings = {{"layers", layers},
                         {"layout", "x * R"},
                         {"quant_group_size", choice.serving.quant_group_size},
                         {"sink_tokens", choice.serving.sink_tokens},
                         {"recent_tokens", choice.serving.recent_tokens},
                         {"folded_checkpoint", choice.folded},
                         {"calibration", choice.calibration}};
  AtomicDirectory directory(output);
  WriteOnnxInitializers(directory.staging() / "rotations.onnx", "oscar_rotations", initializers,
                        {{"oscar", settings.dump()}});
  const std::string file = fs::absolute(output / "rotations.onnx").string();
  WriteFileAtomically(
      directory.staging() / "launch.txt",
      fmt::format(fmt::runtime(kLaunch), fmt::arg("model", LaunchModel(choice.calibration)),
                  fmt::arg("file", Json(file).dump())));
  directory.Commit();
}

}  // namespace oscar
