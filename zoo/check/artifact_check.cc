// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/check/artifact_check.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <set>

#include "capture/checkpoint/model_config.h"
#include "capture/checkpoint/safetensors.h"
#include "capture/files/quote.h"
#include "export/artifact/artifact_format.h"
#include "export/artifact/moment_check.h"
#include "linalg/base/error.h"
#include "zoo/store/blob_store.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

// The names that the tensors of a layer may have.
std::set<std::string> TensorNames(const Json& geometry, const std::vector<std::string>& choices,
                                  const std::string& what) {
  std::set<std::string> names;
  for (const Json& layer : geometry) {
    const auto id = JsonInt32(layer, "layer_id", what);
    for (const ArtifactTensor& tensor : kArtifactTensors) {
      for (const char side : tensor.own)
        names.insert(RotationTensorName(id, side, /*shared=*/false, tensor.name));
      for (const char side : tensor.shared)
        names.insert(RotationTensorName(id, side, /*shared=*/true, tensor.name));
      for (const std::string& choice : choices)
        for (const char side : tensor.of_choice)
          names.insert(ChoiceTensorName(id, side, choice, tensor.name));
    }
  }
  return names;
}

void CheckClip(const StoredSide& side, int layer_id, std::string_view which) {
  if (side.num_rotations > 0 && !(side.clip_ratio > 0 && side.clip_ratio <= 1)) {
    throw InputError(fmt::format("layer {}, {}: clip ratio {}, expected above 0 and at most 1",
                                 layer_id, which, side.clip_ratio));
  }
}

// Returns the files to publish: those that the manifest names, the manifest, and the timings.
// Throws InputError for any other file, which publishing would lose.
std::map<std::string, FileDigest> FilesOf(const Artifact& artifact, Digests digests) {
  const fs::path& directory = artifact.directory();
  const std::string manifest = (directory / kManifestFile).string();
  std::map<std::string, FileDigest> files =
      ParseFileDigests(JsonMember(artifact.manifest(), "files", manifest), manifest);
  const ArtifactFiles& there = artifact.files();
  for (const auto& [name, digest] : files) {
    if (digests == Digests::kCompared || Artifact::Checks(name)) continue;  // already done
    if (const std::string problem = ContentProblem(there.path(name), digest); !problem.empty())
      throw InputError(fmt::format("{}: {}", (directory / name).string(), problem));
  }
  files[kManifestFile] = DigestFile(there.path(kManifestFile));
  for (const std::string& name : there.names()) {
    if (name == kTimingsFile) {
      files[name] = DigestFile(there.path(name));
    } else if (files.count(name) == 0) {
      throw InputError(fmt::format("{}: {} is not listed in {}; move it away", directory.string(),
                                   Quoted(name), kManifestFile));
    }
  }
  return files;
}

void CheckReportIsOf(const Artifact& artifact, const Json& report) {
  const std::string what = (artifact.directory() / kReportFile).string();
  std::vector<int> ids;
  for (const Json& layer : JsonArray(report, "layers", what))
    ids.push_back(JsonInt32(layer, "layer_id", what));
  if (ids != artifact.layer_ids())
    throw InputError(what + ": its layers differ from those of " + kManifestFile);
  for (const char* member : {"model", "data", "calibration", "serving"}) {
    Json of_manifest = JsonMember(artifact.manifest(), member, what);
    if (of_manifest.is_object()) of_manifest.erase("fingerprints");  // only in the manifest
    if (JsonMember(report, member, what) != of_manifest) {
      throw InputError(
          fmt::format("{}: '{}' differs from {}; report and manifest belong to different runs",
                      what, member, kManifestFile));
    }
  }
}

// Compares each layer's rotations with what the report says about them.
void CheckReportSides(const Artifact& artifact, const std::vector<StoredLayer>& stored_layers,
                      const Json& report) {
  const std::string what = (artifact.directory() / kReportFile).string();
  const Json& layers = JsonMember(report, "layers", what);
  const Json& geometry = JsonMember(artifact.manifest(), "geometry", what);
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto expect = [&](std::string_view member, double found, double expected) {
      if (found == expected) return;
      throw InputError(fmt::format("{}: layer {}: {} is {}, the artifact has {}", what,
                                   JsonInt(layers.at(i), "layer_id", what), member, found,
                                   expected));
    };
    for (const char* key : {"num_q_heads", "num_kv_heads", "head_dim", "v_head_dim", "tokens"})
      expect(key, JsonDouble(layers.at(i), key, what), JsonDouble(geometry.at(i), key, what));
    const StoredLayer& stored = stored_layers.at(i);
    const Json& sides = JsonMember(layers.at(i), "sides", what);
    for (const auto& [name, side] :
         {std::pair("k", &stored.k), std::pair("v", &stored.v),
          std::pair("k_shared", &stored.k_shared), std::pair("v_shared", &stored.v_shared)}) {
      if (!sides.contains(name)) {
        expect(std::string(name) + ", rotations", 0, static_cast<double>(side->num_rotations));
        continue;
      }
      const Json& said = sides.at(name);
      expect(std::string(name) + ", rotations", JsonDouble(said, "num_rotations", what),
             static_cast<double>(side->num_rotations));
      expect(std::string(name) + ", dimension", JsonDouble(said, "dim", what),
             static_cast<double>(side->dim));
      expect(std::string(name) + ", clip ratio",
             static_cast<float>(JsonDouble(said, "clip_ratio", what)), side->clip_ratio);
    }
  }
}

[[noreturn]] void FailGeometry(const Artifact& artifact, std::string_view what, int64_t found,
                               int64_t expected) {
  throw InputError(
      fmt::format("{}: {} is {}, but the model has {}; the artifact belongs to another model",
                  artifact.directory().string(), what, found, expected));
}

}  // namespace

std::string ConfigDigest(const Json& manifest) {
  const Json model = manifest.value("model", Json::object());
  const Json config = model.is_object() ? model.value("config", Json()) : Json();
  return config.is_object() ? JsonString(config, "sha256", "", kManifestFile) : "";
}

ModelGeometry ReadModelGeometry(const fs::path& model_directory) {
  if (!HasModelConfig(model_directory)) {
    throw InputError(ModelConfigName(model_directory) +
                     ": no such file; give the directory of a model");
  }
  // Calibration decided what to do about unknown config fields, so they are ignored here.
  return {ReadModelSpec(model_directory, {.unknown_config = UnknownConfig::kIgnore}),
          DigestModelConfig(model_directory).sha256};
}

void CheckTensorsFinite(const fs::path& rotations, const Json& geometry,
                        const std::vector<std::string>& choices) {
  const SafetensorsFile file = SafetensorsFile::Open(rotations);
  // Each choice has at least one tensor per layer. This check limits the number of choice names in
  // a malicious manifest.
  if (geometry.size() * std::max<size_t>(choices.size(), 1) > file.tensors().size())
    throw InputError(
        fmt::format("{}: only {} tensors for {} layers and {} choices; the file is damaged",
                    rotations.string(), file.tensors().size(), geometry.size(), choices.size()));
  const std::set<std::string> known = TensorNames(geometry, choices, rotations.string());
  for (const auto& [name, info] : file.tensors()) {
    const std::string what = fmt::format("{}: tensor {}", rotations.string(), Quoted(name));
    if (known.count(name) == 0) throw InputError(what + " is not a tensor of an artifact");
    if (info.dtype != DType::kF32)
      throw InputError(fmt::format("{} is {}, expected F32", what, DTypeName(info.dtype)));
    const TensorView view = file.tensor(name);
    for (size_t i = 0; i < view.data.size() / sizeof(float); ++i) {
      float value = 0;
      std::memcpy(&value, view.data.data() + i * sizeof(float), sizeof(float));
      if (!std::isfinite(value))
        throw NumericalError(fmt::format("{} holds {} at element {}", what, value, i));
    }
  }
}

std::vector<StoredLayer> CheckLayers(const Artifact& artifact) {
  const std::vector<int> ids = artifact.layer_ids();
  const std::string where = artifact.directory().string();
  if (ids.empty()) throw InputError(where + ": has no layers");
  std::optional<bool> shared;
  std::vector<StoredLayer> layers;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || (i > 0 && ids[i] <= ids[i - 1])) {
      throw InputError(fmt::format("{}: layer ids are not ascending from 0: {} comes after {}",
                                   where, ids[i], i > 0 ? ids[i - 1] : -1));
    }
    StoredLayer layer = artifact.ReadLayer(ids[i]);
    const bool k_shared = layer.k_shared.num_rotations > 0;
    if (k_shared != (layer.v_shared.num_rotations > 0))
      throw InputError(fmt::format("{}: layer {} has a shared {} rotation without its partner",
                                   where, ids[i], k_shared ? "K" : "V"));
    if (shared.value_or(k_shared) != k_shared)
      throw InputError(fmt::format("{}: only some layers have shared rotations (layer {} differs)",
                                   where, ids[i]));
    shared = k_shared;
    CheckClip(layer.k, ids[i], "K");
    CheckClip(layer.v, ids[i], "V");
    CheckClip(layer.k_shared, ids[i], "shared K");
    CheckClip(layer.v_shared, ids[i], "shared V");
    for (const std::string& choice : artifact.choice_names())
      if (choice != kHeadlineChoice)  // ReadLayer has already read the headline choice
        (void)artifact.ReadChoice(ids[i], choice);
    layer.automatic.reset();
    for (StoredSide* side : {&layer.k, &layer.v, &layer.k_shared, &layer.v_shared})
      side->rotation = {};
    layers.push_back(std::move(layer));
  }
  return layers;
}

void CheckGeometry(const Artifact& artifact, const ModelGeometry& model) {
  const std::string calibrated = ConfigDigest(artifact.manifest());
  if (!calibrated.empty() && calibrated != model.config_sha256) {
    throw InputError(
        fmt::format("{}: calibrated for a model whose config.json has SHA-256 {}, but this model's "
                    "has {}; give the same revision",
                    artifact.directory().string(), Escaped(calibrated), model.config_sha256));
  }
  const Json& geometry = JsonMember(artifact.manifest(), "geometry", kManifestFile);
  const auto& layers = model.spec.layers;
  if (geometry.size() != layers.size()) {
    FailGeometry(artifact, "the number of layers", static_cast<int64_t>(geometry.size()),
                 static_cast<int64_t>(layers.size()));
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    const AttentionSpec& attention = layers[i].attention;
    const std::pair<const char*, int64_t> expected[] = {{"layer_id", layers[i].layer_id},
                                                        {"num_q_heads", attention.num_q_heads},
                                                        {"num_kv_heads", attention.num_kv_heads},
                                                        {"head_dim", attention.head_dim},
                                                        {"v_head_dim", attention.v_head_dim}};
    for (const auto& [key, value] : expected) {
      const int64_t found = JsonInt(geometry.at(i), key, kManifestFile);
      if (found != value) {
        FailGeometry(artifact, fmt::format("layer {}: {}", layers[i].layer_id, key), found, value);
      }
    }
  }
}

CheckedArtifact CheckArtifact(const ArtifactFiles& files, const std::optional<ModelGeometry>& model,
                              const ValidationDemands& demands, Digests digests) {
  const Artifact artifact = Artifact::Open(files, digests);
  const fs::path& directory = files.directory;
  CheckedArtifact out;
  out.identity = artifact.identity();
  out.manifest = artifact.manifest();
  out.files = FilesOf(artifact, digests);
  if (out.files.at(kManifestFile).sha256 != out.identity)
    throw InputError((directory / kManifestFile).string() + ": changed while it was read");
  if (!JsonMember(out.manifest, "model", kManifestFile).is_object())
    throw InputError((directory / kManifestFile).string() + ": 'model' is not an object");
  CheckTensorsFinite(files.path(kRotationsFile),
                     JsonMember(out.manifest, "geometry", kManifestFile), artifact.choice_names());
  const std::vector<StoredLayer> layers = CheckLayers(artifact);
  CheckRotationsFitMoments(artifact);
  if (model) CheckGeometry(artifact, *model);
  const Json report = artifact.report();
  CheckReportIsOf(artifact, report);
  CheckReportSides(artifact, layers, report);
  out.validation = CheckValidation(report, out.manifest, out.files.at(kRotationsFile), demands,
                                   (directory / kReportFile).string());
  return out;
}

CheckedArtifact CheckArtifact(const fs::path& directory, const std::optional<ModelGeometry>& model,
                              const ValidationDemands& demands) {
  return CheckArtifact(ArtifactFiles{directory}, model, demands);
}

}  // namespace oscar
