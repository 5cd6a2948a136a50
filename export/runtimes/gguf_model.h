// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares a model's GGUF with an artifact: whether both are of the same model, and in which order
// the GGUF has the dims of keys. Trap: if llama.cpp's rope rotates neighbouring dims and the
// checkpoint's rotates halves, the converter reorders rows of W_Q and W_K (convert_hf_to_gguf.py,
// LlamaModel.permute). Keys of such a GGUF are the checkpoint's keys with their dims in another
// order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/gguf_file.h"
#include "export/artifact/artifact_reader.h"

namespace oscar {

std::string ModelTypeOf(const Artifact& artifact);  // from its config.json; empty if unknown

// Returns the order [dim] of dims in a GGUF's keys: its dim i is dim order[i] of the checkpoint's
// keys.
std::vector<int64_t> GgufKeyOrder(std::string_view model_type, int64_t dim);
std::vector<int64_t> SameOrder(int64_t dim);  // 0, 1, ...

// The GGUF file to which the artifact was fitted. FittedGgufOf returns nullopt if there was none,
// or several.
struct FittedGguf {
  std::string name, sha256;
};
std::optional<FittedGguf> FittedGgufOf(const Artifact& artifact);

// Throws InputError if the GGUF's header differs from the model of the artifact. `all_layers`: the
// artifact must have a layer for every block of the GGUF, from 0 on.
void CheckGgufModel(const GgufFile& model, const Artifact& artifact, bool all_layers);

}  // namespace oscar
