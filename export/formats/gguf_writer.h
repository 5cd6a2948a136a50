// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes GGUF (capture/checkpoint/gguf_file.h has the layout): a file of its own, or entries and
// tensors appended to a copy of a model's file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "capture/checkpoint/gguf_file.h"
#include "export/formats/pt/pt_file.h"  // FloatTensorPtr

namespace oscar {

struct GgufEntry {
  std::string key;
  std::variant<bool, uint32_t, float, std::string> value;
};

struct GgufTensor {
  std::string name;
  FloatTensorPtr values;  // row-major
};

// Writes version 3, aligned to 32 bytes, and reads it back before publishing. Throws ResourceError.
void WriteGguf(const std::filesystem::path& path, const std::vector<GgufEntry>& entries,
               const std::vector<GgufTensor>& tensors);

// Copies `model` and adds `entries` and `tensors` after its own. Every byte of its entries, tensor
// infos and values stays the same, although the longer header moves some. Throws InputError if the
// model already has one of the names.
void AppendToGguf(const GgufFile& model, const std::filesystem::path& path,
                  const std::vector<GgufEntry>& entries, const std::vector<GgufTensor>& tensors);

}  // namespace oscar
