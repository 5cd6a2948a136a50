// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the model's own GGUF with the files written for it: whether both are of one model, and
// the order of values in its keys. Trap: if llama.cpp rotates neighbours of a head and the
// checkpoint rotates halves, the converter reorders rows of W_Q and W_K (convert_hf_to_gguf.py,
// LlamaModel.permute). Keys of such a GGUF are the checkpoint's keys in another order.
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

// Returns order [dim]: value i of a GGUF's key is value order[i] of a checkpoint's key.
std::vector<int64_t> GgufKeyOrder(std::string_view model_type, int64_t dim);
std::vector<int64_t> SameOrder(int64_t dim);  // 0, 1, ...

// Returns the GGUF file to which the artifact was fitted; empty if there was none, or several.
struct FittedGguf {
  std::string name, sha256;
};
std::optional<FittedGguf> FittedGgufOf(const Artifact& artifact);

// Throws InputError if the header shows that this is another model than the artifact's.
// `all_layers`: the artifact must have a layer for every block, from 0 on.
void CheckGgufModel(const GgufFile& model, const Artifact& artifact, bool all_layers);

}  // namespace oscar
