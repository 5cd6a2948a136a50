// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes rotations and the tensors that belong to them as safetensors, for any reader. The names
// are those of export/formats/given_rotations.h, which oscar-validate --rotation reads.
#include <fmt/format.h>

#include <span>

#include "capture/checkpoint/safetensors.h"
#include "capture/files/atomic_file.h"
#include "export/artifact/chosen_rotations.h"
#include "export/formats/sglang_choice.h"
#include "export/runtimes/exporter.h"

namespace oscar {

void WriteSafetensorsFiles(const Artifact& artifact, const ExportRequest& request,
                           const std::filesystem::path& output) {
  const SglangChoice choice = request.chosen
                                  ? ChosenForRuntime(artifact, Consumer::kAny, request.folded)
                                  : OwnRotations(artifact);
  std::vector<std::pair<std::string, FloatTensorPtr>> tensors;
  for (const SglangChoiceLayer& layer : choice.layers) {
    const auto add = [&](std::string_view name, const FloatTensorPtr& tensor) {
      if (tensor) tensors.emplace_back(fmt::format("layer.{}.{}", layer.layer_id, name), tensor);
    };
    add("k.rotation", layer.k);
    add("k.query_rotation", layer.q);
    add("k.mean", layer.k_mean);
    add("k.pair_scale", layer.k_pair_scale);
    add("v.rotation", layer.v);
    add("v.output_rotation", layer.o);
  }
  std::vector<SafetensorsWriter::Declaration> declared;
  for (const auto& [name, tensor] : tensors) declared.push_back({name, DType::kF32, tensor->shape});
  AtomicDirectory directory(output);
  SafetensorsWriter file(directory.staging() / "rotations.safetensors", declared,
                         {{"oscar", choice.calibration.dump()}});
  for (const auto& [name, tensor] : tensors)
    file.Write(name, std::as_bytes(std::span(tensor->values)));
  file.Commit();
  const std::string model = LaunchModel(choice.calibration);
  WriteFileAtomically(
      directory.staging() / "launch.txt",
      fmt::format(
          "#!/bin/sh\n"
          "# Compares the rotations in this directory with OSCAR's, for {}.\n"
          "# The cache stores (k * pair_scale - mean) rotation. Where a matrix is not orthogonal,\n"
          "# multiply queries by query_rotation and outputs by output_rotation.\n"
          "oscar-validate {} --model {} --rotation exported={}\n",
          ShellWord(model), ShellWord(std::filesystem::absolute(artifact.directory()).string()),
          ShellWord(LaunchPath(choice.calibration)),
          ShellWord(std::filesystem::absolute(output / "rotations.safetensors").string())));
  directory.Commit();
}

}  // namespace oscar
