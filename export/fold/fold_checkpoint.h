// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes a copy of a checkpoint with transforms folded into its weights. It computes the same
// function (bit for bit if every scale is a power of two and nothing leaves the type's range). So
// runtimes that load plain rotations also profit from transforms that they cannot apply. Trap:
// rotations fitted to the original do not fit the copy; calibrate it again.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/files/strict_json.h"
#include "capture/model/spec/model_spec.h"
#include "export/fold/weight_edits.h"

namespace oscar {

inline constexpr const char* kFoldFile = "oscar_fold.json";  // says what was folded

// Writes directory `to`, which must not exist, completely or not at all. Weight files are written
// one at a time with the same names and types, other files of the model (configuration, tokenizer)
// unchanged, and `record` as kFoldFile. `layers` has the order of spec.layers. `check` gets the
// finished copy before it is published; if it throws, nothing remains. Throws what WeightEdits,
// ReadWeight and StoredWeight throw, and InputError if a tensor to change is shared by two layers
// or quantized.
using CheckCopy = std::function<void(const std::filesystem::path& copy)>;
void WriteFoldedCheckpoint(const Checkpoint& checkpoint, const ModelSpec& spec,
                           const std::vector<LayerFold>& layers, const Json& record,
                           const std::filesystem::path& to, const CheckCopy& check = {});

}  // namespace oscar
