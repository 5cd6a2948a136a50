// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/imported_artifact.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "calib/consumers.h"
#include "capture/checkpoint/safetensors.h"
#include "capture/files/atomic_file.h"
#include "capture/files/digest_json.h"
#include "capture/files/quote.h"
#include "export/artifact/artifact_format.h"
#include "export/artifact/artifact_reader.h"
#include "export/formats/sglang.h"  // SglangServing
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

struct NamedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

// Adds a head dimension of size one to a shape of less than `rank` dimensions.
std::vector<int64_t> HeadsShape(const FloatTensor& tensor, size_t rank) {
  std::vector<int64_t> shape = tensor.shape;
  if (shape.size() < rank) shape.insert(shape.begin(), 1);
  return shape;
}

void AddSide(const RotationLayer& layer, char side, std::vector<NamedTensor>& tensors) {
  if (!layer.rotation) return;
  const auto add = [&](const char* what, const FloatTensorPtr& tensor, size_t rank) {
    if (!tensor) return;
    tensors.push_back(
        {ChoiceTensorName(static_cast<int>(layer.layer_id), side, kHeadlineChoice, what),
         HeadsShape(*tensor, rank), tensor->values});
  };
  const FloatTensorPtr clip = std::make_shared<const FloatTensor>(FloatTensor{{1}, {1.0F}});
  add("rotation", layer.rotation, 3);
  add("query_rotation", layer.o_rotation ? layer.o_rotation : layer.q_rotation, 3);
  add("eigenvalues", layer.eigenvalues, 2);
  add("pair_scale", layer.pair_scale, 2);
  if (side == 'k') add("mean", layer.k_mean ? layer.k_mean : layer.mean, 2);
  add("clip_ratio", clip, 1);
}

Json LayerRecord(const ImportedLayer& layer) {
  return {{"layer_id", layer.layer_id},
          {"keys", layer.k.rotation ? "imported" : "none"},
          {"values", layer.v.rotation ? "imported" : "none"},
          {"k_bits", 2},
          {"v_bits", 2},
          {"quant_group_size", 0}};
}

std::string Card(const ImportedFiles& imported) {
  std::string text = fmt::format(
      "---\ntags: [oscar, kv-cache]\n---\n\n# Imported, unverified\n\nThis directory contains the "
      "values of published files in the format {}, unchanged. Nothing was measured; "
      "`oscar-validate ARTIFACT --model MODEL --rotation NAME=FILES` compares rotation files with "
      "OSCAR's.\n\n",
      imported.from);
  for (const fs::path& file : imported.files)
    text += fmt::format("- {}\n", Escaped(file.filename().string()));
  return text;
}

}  // namespace

void WriteImported(const fs::path& output, const ImportedFiles& imported, const Json& program) {
  if (imported.layers.empty()) throw InputError("the files contain no layers to import");
  std::vector<NamedTensor> tensors;
  Json geometry = Json::array(), choice = Json::array(), latents = Json::array();
  bool chosen = false, kv_heads_known = true;
  for (const ImportedLayer& layer : imported.layers) {
    const int id = static_cast<int>(layer.layer_id);
    AddSide(layer.k, 'k', tensors);
    AddSide(layer.v, 'v', tensors);
    geometry.push_back({{"layer_id", id},
                        {"num_kv_heads", std::max<int64_t>(layer.num_kv_heads, 1)},
                        {"head_dim", layer.head_dim},
                        {"v_head_dim", layer.v_head_dim}});
    choice.push_back(LayerRecord(layer));
    kv_heads_known = kv_heads_known && layer.num_kv_heads > 0;
    chosen = chosen || layer.k.rotation || layer.v.rotation;
    if (imported.latents) latents.push_back(id);
  }
  Json files = Json::array(), runtimes = Json::array();
  for (const fs::path& file : imported.files) {
    Json digest = DigestToJson(DigestFile(file));
    digest["name"] = file.filename().string();
    files.push_back(std::move(digest));
  }
  for (const ConsumerRules& rules : AllConsumers()) {
    if (imported.latents && !rules.latents) continue;
    runtimes.push_back(
        {{"runtime", rules.name}, {"fold_checkpoint", false}, {"choice", kHeadlineChoice}});
  }
  AtomicDirectory directory(output);
  const fs::path& staging = directory.staging();
  std::vector<SafetensorsWriter::Declaration> declared;
  for (const NamedTensor& tensor : tensors)
    declared.push_back({tensor.name, DType::kF32, tensor.shape});
  SafetensorsWriter writer(staging / kRotationsFile, declared,
                           {{"schema", fmt::format("{} {}", kArtifactSchema, kArtifactVersion)}});
  for (const NamedTensor& tensor : tensors)
    writer.Write(tensor.name, std::as_bytes(std::span(tensor.values)));
  writer.Commit();
  WriteFileAtomically(staging / kCardFile, Card(imported));
  const SglangServing serving;
  Json manifest = {{"$schema", {{"name", kArtifactSchema}, {"version", kArtifactVersion}}},
                   {"imported",
                    {{"from", imported.from},
                     {"verified", false},
                     {"kv_heads_known", kv_heads_known},
                     {"header", imported.header}}},
                   {"geometry", geometry},
                   {"model", {{"id", imported.model_id}}},
                   {"data", {{"name", "imported, unverified"}, {"files", files}}},
                   {"calibration", {{"latent_layers", latents}}},
                   {"program", program},
                   {"serving",
                    {{"sink_tokens", serving.sink_tokens},
                     {"recent_tokens", serving.recent_tokens},
                     {"quant_group_size", 0},
                     {"runtimes", runtimes}}}};
  if (chosen) {
    manifest["auto"] = {{"for", "any"}, {"fold_checkpoint", false}, {"layers", choice}};
    manifest["choices"] = Json::object();
  }
  for (const char* file : {kRotationsFile, kCardFile})
    manifest["files"][file] = DigestToJson(DigestFile(staging / file));
  WriteFileAtomically(staging / kManifestFile, CanonicalJson(manifest));
  const Artifact written = Artifact::OpenImported(staging);
  for (const ImportedLayer& layer : imported.layers) {
    if (layer.k.rotation || layer.v.rotation)
      (void)written.ReadChoice(static_cast<int>(layer.layer_id), kHeadlineChoice);
  }
  directory.Commit();
}

}  // namespace oscar
