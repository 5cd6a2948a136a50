// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// GGUF, the model files of llama.cpp (ggml, docs/gguf.md), versions 2 and 3, little-endian:
//
//   "GGUF", u32 version, u64 num_tensors, u64 num_entries
//   num_entries x {string key, u32 value type, value}          string: u64 bytes, then those
//   num_tensors x {string name, u32 num_dims, u64 dims, u32 type, u64 offset}
//   zeros up to the alignment ("general.alignment", bytes; 32 if absent)
//   the tensors one behind another, each padded to the alignment; offsets count from the first
//
// Trap: dims are innermost first, so a row-major matrix [rows, cols] has dims {cols, rows}.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "capture/files/mapped_file.h"
#include "export/formats/pt/pt_file.h"  // FloatTensorPtr

namespace oscar {

inline constexpr uint32_t kGgufMagic = 0x46554747;  // "GGUF"
inline constexpr uint64_t kGgufHeaderSize = 24;     // bytes, before the entries
inline constexpr std::string_view kGgufAlignmentKey = "general.alignment";

// Of an entry's value.
enum GgufType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// `alignment` is a power of two and `bytes` within a file's size.
constexpr uint64_t GgufPadded(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

// Of a file that was read: an array is std::monostate, and a string lies in the mapped file.
using GgufValue = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string_view>;

struct GgufTensorInfo {
  std::string_view name;
  std::vector<uint64_t> dims;  // innermost first
  uint32_t type = 0;           // of ggml; 0: float32
  uint64_t offset = 0;         // bytes from data_begin
  uint64_t size = 0;           // bytes; up to the next tensor where ggml's type is unknown here
};

struct GgufFile {
  // Throws InputError naming the file, the place and what is wrong there. Files that llama.cpp
  // refuses are refused: tensors that overlap or leave gaps, names given twice, other byte orders.
  static GgufFile Open(const std::filesystem::path& path) { return Open(MappedFile::Open(path)); }
  static GgufFile Open(MappedFile file);

  const GgufTensorInfo* Find(std::string_view name) const;  // null: not there
  std::span<const std::byte> Bytes(const GgufTensorInfo& tensor) const;

  MappedFile file;
  uint32_t version = 0;
  uint64_t alignment = 32;  // bytes, a power of two
  std::map<std::string_view, GgufValue, std::less<>> entries;
  std::vector<GgufTensorInfo> tensors;
  // Bytes from the start of the file. Entries begin at byte 24, tensor infos where those end.
  uint64_t entries_end = 0, infos_end = 0;
  uint64_t data_begin = 0;  // up to the end of the file, which may lack the last one's padding
};

struct GgufEntry {
  std::string key;
  std::variant<bool, uint32_t, float, std::string> value;
};

struct GgufTensor {
  std::string name;
  FloatTensorPtr values;  // row-major
};

// Version 3, aligned to 32 bytes; read back before it is published. Throws ResourceError.
void WriteGguf(const std::filesystem::path& path, const std::vector<GgufEntry>& entries,
               const std::vector<GgufTensor>& tensors);

// A copy of `model` with `entries` and `tensors` behind its own: every byte of its entries, tensor
// infos and values is the same, and only those move whose header grew. Throws InputError where
// the model has one of the names.
void AppendToGguf(const GgufFile& model, const std::filesystem::path& path,
                  const std::vector<GgufEntry>& entries, const std::vector<GgufTensor>& tensors);

}  // namespace oscar
