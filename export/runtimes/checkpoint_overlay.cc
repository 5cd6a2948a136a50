// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/runtimes/checkpoint_overlay.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/checkpoint/safetensors.h"
#include "capture/files/atomic_file.h"
#include "capture/files/quote.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

constexpr const char* kIndexFile = "model.safetensors.index.json";
// A loader that finds kOnlyFile ignores the index, so a copy of the model stores that file under
// another name.
constexpr const char *kOnlyFile = "model.safetensors",
                     *kOnlyShard = "model-00001-of-00001.safetensors";

}  // namespace

std::string AttentionModule(const ModelSpec& spec, const Artifact& artifact, int layer_id) {
  const auto layer = std::ranges::find(spec.layers, layer_id, &LayerSpec::layer_id);
  const int64_t heads = artifact.NumKvHeads(layer_id);
  if (layer == spec.layers.end() || layer->attention.num_kv_heads != heads) {
    throw InputError(fmt::format(
        "{}: layer {} has {} KV heads, but the model's has {}; give the model that was calibrated",
        artifact.directory().string(), layer_id, heads,
        layer == spec.layers.end() ? std::string("none with a cache")
                                   : std::to_string(layer->attention.num_kv_heads)));
  }
  std::string module = layer->attention.o.weight;  // like "model.layers.3.self_attn.o_proj.weight"
  for (int part = 0; part < 2; ++part) module.resize(std::min(module.size(), module.rfind('.')));
  return module;
}

void WriteOverlay(const Checkpoint& checkpoint, const std::vector<OverlayTensor>& tensors,
                  const std::map<std::string, Json>& changed, bool whole_copy, const fs::path& to) {
  checkpoint.RequireOwnNames();
  const std::vector<std::string> files = checkpoint.files();
  const auto copied_as = [&](const std::string& file) {
    return whole_copy && file == kOnlyFile ? kOnlyShard : file;
  };
  Json weight_map = Json::object();
  for (const std::string& name : checkpoint.names())
    weight_map[name] = copied_as(files[checkpoint.file_index(name)]);
  std::vector<SafetensorsWriter::Declaration> declarations;
  uint64_t bytes = checkpoint.total_bytes();
  for (const OverlayTensor& tensor : tensors) {
    if (weight_map.contains(tensor.name)) {
      throw InputError(fmt::format("{}: already has a tensor {}; use a checkpoint without it",
                                   checkpoint.directory().string(), Quoted(tensor.name)));
    }
    weight_map[tensor.name] = kOverlayShard;
    declarations.push_back({tensor.name, DType::kF32, tensor.shape});
    bytes += tensor.values.size() * sizeof(float);
  }
  SafetensorsWriter shard(to / kOverlayShard, declarations, {{"format", "pt"}});
  for (const OverlayTensor& tensor : tensors)
    shard.Write(tensor.name, std::as_bytes(std::span(tensor.values)));
  shard.Commit();
  WriteFileAtomically(to / kIndexFile, CanonicalJson({{"metadata", {{"total_size", bytes}}},
                                                      {"weight_map", weight_map}}));
  for (const auto& [name, content] : changed)
    WriteFileAtomically(to / name, CanonicalJson(content));
  if (!whole_copy) return;
  for (const auto& entry : fs::directory_iterator(checkpoint.directory())) {
    const fs::path target = to / copied_as(entry.path().filename().string());
    if (entry.is_regular_file() && !fs::exists(target)) fs::copy_file(entry.path(), target);
  }
}

}  // namespace oscar
