// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes .pt files that torch.load(weights_only=True) and our own reader load: plain dicts with int
// or str keys, lists, numbers, strings, None and tensors. The bytes depend only on the value. Trap:
// tensors with the same FloatTensorPtr share a storage in the file. A TensorBytes does not own its
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "capture/files/strict_json.h"
#include "export/formats/pt/pt_file.h"

namespace oscar {

// A tensor of any storage type. The values must stay valid until the file is written.
struct TensorBytes {
  DType dtype{};
  std::vector<int64_t> shape;
  std::span<const std::byte> values;  // row-major, little-endian
};

struct PtOut;
using PtOutList = std::vector<PtOut>;
using PtOutDict = std::vector<std::pair<PtKey, PtOut>>;  // entries in order

struct PtOut {
  std::variant<PtNone, bool, int64_t, double, std::string, PtOutList, PtOutDict, FloatTensorPtr,
               TensorBytes>
      data;

  PtOut() = default;
  template <typename T>
  PtOut(T value) : data(std::move(value)) {}            // NOLINT(google-explicit-constructor)
  PtOut(const char* text) : data(std::string(text)) {}  // NOLINT(google-explicit-constructor)
};

// Converts JSON to the types that Python's json.load returns. Throws InputError for integers beyond
// int64.
PtOut PtFromJson(const Json& json);

// Writes `value` atomically. The names of records begin with `prefix`; torch uses the stem of the
// file's name. Throws InputError if the value nests deeper than readers accept or is too large for
// the format.
void WritePt(const std::filesystem::path& path, const PtOut& value, std::string_view prefix);

}  // namespace oscar
