// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// GGUF, the model files of llama.cpp (ggml, docs/gguf.md), versions 2 and 3, little-endian:
//
//   "GGUF", u32 version, u64 num_tensors, u64 num_entries
//   num_entries x {string key, u32 value type, value}          string: u64 size in bytes, bytes
//   num_tensors x {string name, u32 num_dims, u64 dims, u32 type, u64 offset}
//   zeros up to the alignment ("general.alignment", bytes; 32 if absent)
//   the tensors one after another, each padded to the alignment; offsets count from the first
//
// Trap: dims are innermost first, so a row-major matrix [rows, cols] has dims {cols, rows}.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "capture/files/mapped_file.h"

namespace oscar {

inline constexpr uint32_t kGgufMagic = 0x46554747;  // "GGUF"
inline constexpr uint64_t kGgufHeaderSize = 24;     // bytes, before the entries
inline constexpr std::string_view kGgufAlignmentKey = "general.alignment";

// Type of an entry's value.
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

// Ids of ggml's tensor types that are read as weights.
enum GgmlTypeId : uint32_t {
  kGgmlF32 = 0,
  kGgmlF16 = 1,
  kGgmlQ4_0 = 2,
  kGgmlQ4_1 = 3,
  kGgmlQ5_0 = 6,
  kGgmlQ5_1 = 7,
  kGgmlQ8_0 = 8,
  kGgmlQ2_K = 10,
  kGgmlQ3_K = 11,
  kGgmlQ4_K = 12,
  kGgmlQ5_K = 13,
  kGgmlQ6_K = 14,
  kGgmlIQ4_NL = 20,
  kGgmlIQ4_XS = 23,
  kGgmlBF16 = 30,
  kGgmlMXFP4 = 39,
};

// A tensor type of ggml: `values` numbers take `bytes`, and a row consists of whole groups of them.
struct GgmlType {
  uint32_t id;
  std::string_view name;  // "Q4_K"
  uint64_t values, bytes;
};
const GgmlType* FindGgmlType(uint32_t id);  // nullptr if not known here

// Requires that `alignment` is a power of two and `bytes` is at most a file's size.
constexpr uint64_t GgufPadded(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

// A checked array in a file: `count` values of `type` (not arrays), in the mapped file.
struct GgufArray {
  uint32_t type = 0;
  uint64_t count = 0;
  std::string_view bytes;

  bool operator==(const GgufArray&) const = default;
};

// A value in a file. Strings and arrays refer to the mapped file; float32 and float64 become
// double.
using GgufValue = std::variant<GgufArray, bool, int64_t, uint64_t, double, std::string_view>;

struct GgufTensorInfo {
  std::string_view name;
  std::vector<uint64_t> dims;  // innermost first
  uint32_t type = 0;           // a ggml type; 0: float32
  uint64_t offset = 0;         // bytes from data_begin
  uint64_t size = 0;           // bytes; for a type unknown here, up to the next tensor
};

struct GgufFile {
  // Throws InputError naming the file, the place and the problem. Refuses everything that llama.cpp
  // refuses: tensors that overlap or leave gaps, duplicate names, other byte orders.
  static GgufFile Open(const std::filesystem::path& path) { return Open(MappedFile::Open(path)); }
  static GgufFile Open(MappedFile file);

  // Return the value of `key`, or nullopt if there is no such key. Throw InputError naming the
  // file, the key and the type found if the type is wrong. Count and Counts refuse negative
  // numbers; Number and Numbers also accept integers. Views are valid while the file is open.
  std::optional<std::string_view> String(std::string_view key) const;
  std::optional<bool> Bool(std::string_view key) const;
  std::optional<uint64_t> Count(std::string_view key) const;
  std::optional<double> Number(std::string_view key) const;
  std::optional<std::vector<std::string_view>> Strings(std::string_view key) const;
  std::optional<std::vector<bool>> Bools(std::string_view key) const;
  std::optional<std::vector<uint64_t>> Counts(std::string_view key) const;
  std::optional<std::vector<double>> Numbers(std::string_view key) const;

  const GgufTensorInfo* Find(std::string_view name) const;  // null if absent
  std::span<const std::byte> Bytes(const GgufTensorInfo& tensor) const;

  MappedFile file;
  uint32_t version = 0;
  uint64_t alignment = 32;  // bytes, a power of two
  std::map<std::string_view, GgufValue, std::less<>> entries;
  std::vector<GgufTensorInfo> tensors;
  // Bytes from the start of the file. Entries begin at byte 24, tensor infos at entries_end.
  uint64_t entries_end = 0, infos_end = 0;
  uint64_t data_begin = 0;  // extends to the end of the file, which may lack the final padding
};

}  // namespace oscar
