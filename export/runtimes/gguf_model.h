// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The model's own GGUF beside what is written for it: whether both are of one model, and in which
// order its keys' values stand. Trap: where llama.cpp turns neighbours of a head and the checkpoint
// halves, the converter reorders rows of W_Q and W_K (convert_hf_to_gguf.py, LlamaModel.permute),
// so keys of such a GGUF are not the checkpoint's keys, value by value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/gguf_file.h"
#include "export/artifact/artifact_reader.h"

namespace oscar {

std::string ModelTypeOf(const Artifact& artifact);  // of its config.json; empty: not known

// order[i]: where the value that a GGUF's keys have at i stands in a key of the checkpoint. [dim]
std::vector<int64_t> GgufKeyOrder(std::string_view model_type, int64_t dim);
std::vector<int64_t> SameOrder(int64_t dim);  // 0, 1, ...

// The GGUF file that the artifact was fitted to; nothing where that was no GGUF, or several files.
struct FittedGguf {
  std::string name, sha256;
};
std::optional<FittedGguf> FittedGgufOf(const Artifact& artifact);

// InputError where the header says another model than the artifact's, as far as it tells.
// `all_layers`: the artifact has to have every block's, from 0 on.
void CheckGgufModel(const GgufFile& model, const Artifact& artifact, bool all_layers);

}  // namespace oscar
