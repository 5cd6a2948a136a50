// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes a folder for oscar-kv (export/runtimes/torch), which its reader accepts like an artifact.
// The folder has only the choice that oscar-kv loads, with the names of
// export/artifact/artifact_format.h.
#include <fmt/format.h>

#include <span>

#include "capture/checkpoint/safetensors.h"
#include "capture/files/atomic_file.h"
#include "capture/files/digest_json.h"
#include "export/artifact/artifact_format.h"
#include "export/formats/sglang.h"  // LaunchModel
#include "export/runtimes/exporter.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr std::string_view kTorchSchema = "oscar-torch";
constexpr int kTorchVersion = 1;

struct NamedTensor {
  SafetensorsWriter::Declaration declaration;
  std::vector<float> values;
};

void AddLayer(const Artifact& artifact, int layer_id, std::string_view choice_name,
              std::vector<NamedTensor>& tensors) {
  const StoredChoice choice = artifact.ReadChoice(layer_id, choice_name);
  const int64_t heads = artifact.NumKvHeads(layer_id);
  const auto add = [&](char side, const char* what, std::vector<int64_t> shape,
                       const auto& values) {
    if (values.empty()) return;
    tensors.push_back(
        {{ChoiceTensorName(layer_id, side, kHeadlineChoice, what), DType::kF32, std::move(shape)},
         {values.begin(), values.end()}});
  };
  const auto add_side = [&](char name, const CacheSide& side, const AffineQuantizer& codes) {
    const std::vector<int64_t> matrices = {side.num_rotations, side.dim, side.dim};
    add(name, "rotation", matrices, side.rotation);
    add(name, "query_rotation", matrices, side.query_rotation);
    add(name, "mean", {heads, side.dim}, side.mean);
    add(name, "feedback", {heads, side.dim, side.dim}, side.feedback);
    add(name, "clip_ratio", {std::ssize(codes.clip)}, codes.clip);
  };
  add_side('k', choice.k, choice.k_codes);
  add_side('v', choice.v, choice.v_codes);
}

std::string RunScript(const std::string& model) {
  return fmt::format(
      "#!/usr/bin/env python3\n# Talks to {} with the cache in this folder: python3 run.py [MODEL] "
      "[--device cuda]\n# It needs the package oscar-kv (export/runtimes/torch of oscar), torch "
      "and transformers.\nimport pathlib\nimport sys\n\nmodel = {}\narguments = sys.argv[1:]\nif "
      "arguments and not arguments[0].startswith(\"-\"):\n    model = arguments.pop(0)\nelif \"/\" "
      "not in model and not pathlib.Path(model).is_dir():  # no name of the Hub\n    "
      "sys.exit(f\"run.py: there is no directory {{model}} here; give the model's directory: "
      "python3 run.py MODEL\")\n\nfrom oscar_kv.__main__ import main\n\nmain([\"chat\", model, "
      "str(pathlib.Path(__file__).resolve().parent), *arguments])\n",
      model, Json(model).dump());
}

}  // namespace

void WriteTorchFiles(const Artifact& artifact, const ExportRequest& request,
                     const std::filesystem::path& output) {
  if (artifact.imported()) {
    throw InputError(
        fmt::format("{}: imported from published files, which do not specify bits or windows; "
                    "calibrate the model",
                    artifact.directory().string()));
  }
  const std::string name = request.bits > 0 ? artifact.ChoiceAt(request.bits)
                                            : artifact.ChoiceFor("any", request.folded);
  const Json& manifest = artifact.manifest();
  Json choice = artifact.Choice(name);
  for (Json& layer : choice.at("layers")) {
    layer.erase("k_of");
    layer.erase("v_of");
  }
  std::vector<NamedTensor> tensors;
  for (const int layer_id : artifact.layer_ids()) AddLayer(artifact, layer_id, name, tensors);
  std::vector<SafetensorsWriter::Declaration> declared;
  for (const NamedTensor& tensor : tensors) declared.push_back(tensor.declaration);

  AtomicDirectory directory(output);
  const std::filesystem::path rotations = directory.staging() / kRotationsFile;
  SafetensorsWriter file(rotations, declared);
  for (const NamedTensor& tensor : tensors)
    file.Write(tensor.declaration.name, std::as_bytes(std::span(tensor.values)));
  file.Commit();
  const Json& serving = manifest.at("serving");
  const Json written = {
      {"$schema", {{"name", kTorchSchema}, {"version", kTorchVersion}}},
      {"artifact", artifact.identity()},
      {"auto", choice},
      {"files", {{kRotationsFile, DigestToJson(DigestFile(rotations))}}},
      {"geometry", manifest.at("geometry")},
      {"model", manifest.at("model")},
      {"serving",
       {{"sink_tokens", JsonInt(serving, "sink_tokens", kManifestFile)},
        {"recent_tokens", JsonInt(serving, "recent_tokens", kManifestFile)},
        {"runtimes",
         {{{"runtime", "any"}, {"fold_checkpoint", false}, {"choice", kHeadlineChoice}}}}}}};
  WriteFileAtomically(directory.staging() / kManifestFile, written.dump(2) + "\n");
  WriteFileAtomically(directory.staging() / "run.py", RunScript(LaunchModel(manifest)));
  directory.Commit();
}

}  // namespace oscar
