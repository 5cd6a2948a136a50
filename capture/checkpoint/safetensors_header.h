// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The safetensors layout, once for reader and writer:
//
//     8 bytes   n, little-endian, unsigned: bytes of the header
//     n bytes   JSON {"__metadata__": {string: string}, name: {"dtype", "shape", "data_offsets"}}
//     rest      the data; data_offsets are bytes from here, [begin, end)
//
// Trap: do not trust any number in a header before it is checked against the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/safetensors.h"

namespace oscar {

inline constexpr size_t kSafetensorsLengthBytes = 8;
inline constexpr size_t kSafetensorsMaxHeaderBytes = 32'000'000;
inline constexpr size_t kSafetensorsMaxTensors = 200'000;
inline constexpr size_t kSafetensorsMaxRank = 64;
inline constexpr std::string_view kSafetensorsMetadataKey = "__metadata__";

// Returns the size of a tensor in bytes. Returns nothing if the product of its non-zero dimensions
// and the element size exceeds int64, even if the tensor is empty, because its strides would
// overflow. Also returns nothing if packed elements do not fill their last byte.
std::optional<uint64_t> TensorBytes(DType dtype, std::span<const int64_t> shape);

struct SafetensorsHeader {
  std::map<std::string, TensorInfo, std::less<>> tensors;  // offsets from the start of the file
  std::map<std::string, std::string> metadata;
};

// Parses and checks the header of a whole file. Throws InputError naming `what`.
SafetensorsHeader ParseSafetensorsHeader(std::span<const std::byte> file, std::string_view what);

// Length and JSON, padded to align the data. Keys are in the order of the data, metadata first.
std::string EncodeSafetensorsHeader(const std::vector<SafetensorsWriter::Declaration>& tensors,
                                    const std::map<std::string, std::string>& metadata);

}  // namespace oscar
