// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Adds tensors to a checkpoint without changing its own files. Writes an additional shard, an index
// of all tensors, and the configuration that makes a runtime look for the new ones. The files must
// be put into a copy of the model's directory, unless they are written with such a copy.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/files/strict_json.h"
#include "capture/model/spec/model_spec.h"
#include "export/artifact/artifact_reader.h"

namespace oscar {

// Returns the name of the checkpoint module that has a layer's cache, such as
// "model.layers.3.self_attn". Throws InputError if the model has no such layer, or one with another
// number of KV heads.
std::string AttentionModule(const ModelSpec& spec, const Artifact& artifact, int layer_id);

inline constexpr const char* kOverlayShard = "model-kvscales.safetensors";

struct OverlayTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;  // float32
};

// Writes into the directory `to`. `changed`: the new content of files, by name ("config.json").
// `whole_copy`: also copies the model's other files. Throws InputError if the checkpoint already
// has one of the tensors.
void WriteOverlay(const Checkpoint& checkpoint, const std::vector<OverlayTensor>& tensors,
                  const std::map<std::string, Json>& changed, bool whole_copy,
                  const std::filesystem::path& to);

}  // namespace oscar
