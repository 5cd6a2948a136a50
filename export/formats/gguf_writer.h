// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes GGUF files (capture/checkpoint/gguf_file.h has the layout): new ones, or copies of a
// model's file with appended entries and tensors.
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

// Writes a file of GGUF version 3, aligned to 32 bytes, and reads it back. Throws ResourceError if
// that fails or finds other values.
void WriteGguf(const std::filesystem::path& path, const std::vector<GgufEntry>& entries,
               const std::vector<GgufTensor>& tensors);

// Writes a copy of `model` in which `entries` and `tensors` follow the model's own. The model's
// entries, tensor infos and values keep their bytes, although the longer header moves some of them.
// Throws InputError if the model already has one of the names.
void AppendToGguf(const GgufFile& model, const std::filesystem::path& path,
                  const std::vector<GgufEntry>& entries, const std::vector<GgufTensor>& tensors);

}  // namespace oscar
