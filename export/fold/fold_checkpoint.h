// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes a copy of a checkpoint with transforms folded into its weights. The copy computes the same
// function as the original. It is the same bit for bit if every scale is a power of two and no
// number leaves the type's range. So runtimes that only load plain rotations can also profit from
// other transforms. Trap: rotations that were fitted to the original do not fit the copy; calibrate
// it again.
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

// Writes directory `to`, which must not exist. Weight files are written one at a time, with the
// same names and types. Other files of the model (configuration, tokenizer) are copied, and
// `record` becomes kFoldFile. `layers` has the order of spec.layers. `check` gets the finished copy
// before it is published. If anything throws, nothing remains.
//
// Throws what WeightEdits, ReadWeight and StoredWeight throw, and InputError if a tensor to change
// is quantized or shared by two layers.
using CheckCopy = std::function<void(const std::filesystem::path& copy)>;
void WriteFoldedCheckpoint(const Checkpoint& checkpoint, const ModelSpec& spec,
                           const std::vector<LayerFold>& layers, const Json& record,
                           const std::filesystem::path& to, const CheckCopy& check = {});

}  // namespace oscar
