// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Strict reading and writing of safetensors: 8 bytes little-endian header length, JSON header, raw
// row-major tensors. A file is accepted only if every byte is accounted for: no gaps, overlaps or
// trailing bytes, sizes checked against shape and dtype without overflow, no duplicate keys, at
// most 200,000 entries and a 32 MB header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/checkpoint/dtype.h"
#include "capture/files/atomic_file.h"
#include "capture/files/mapped_file.h"

namespace oscar {

struct TensorInfo {
  DType dtype{};
  std::vector<int64_t> shape;  // row-major; empty for a scalar
  uint64_t offset = 0;         // bytes from the start of the file
  uint64_t size = 0;           // bytes
};

// One tensor's bytes in a mapped file, valid while the file is open. Data may be unaligned for its
// dtype.
struct TensorView {
  DType dtype{};
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

// A mapped file with tensors, in any format.
class TensorFile {
 public:
  TensorFile() = default;
  TensorFile(MappedFile file, std::map<std::string, TensorInfo, std::less<>> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}

  const std::map<std::string, TensorInfo, std::less<>>& tensors() const { return tensors_; }
  const std::filesystem::path& path() const { return file_.path(); }
  uint64_t size() const { return file_.bytes().size(); }
  TensorView tensor(std::string_view name) const;  // throws InputError if absent
  void Release(std::string_view name) const;       // drops the tensor's resident pages
  // Makes a tensor available by another name; the file does not change.
  void Rename(const std::string& from, const std::string& to);

 private:
  MappedFile file_;
  std::map<std::string, TensorInfo, std::less<>> tensors_;
};

class SafetensorsFile : public TensorFile {
 public:
  // Throws InputError naming the file, the tensor if there is one, and what was expected and found.
  static SafetensorsFile Open(const std::filesystem::path& path);
  static SafetensorsFile Open(MappedFile file);

  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::map<std::string, std::string> metadata_;
};

// Writes a file whose tensors are declared first and written in that order, so it never holds all
// of them in memory. The bytes depend only on the declarations and data. Data starts at a multiple
// of 8 bytes (the header is padded with spaces).
class SafetensorsWriter {
 public:
  struct Declaration {
    std::string name;
    DType dtype{};
    std::vector<int64_t> shape;
  };
  SafetensorsWriter(const std::filesystem::path& path, std::vector<Declaration> tensors,
                    const std::map<std::string, std::string>& metadata = {});
  // OSCAR_CHECKs that `name` is the next declared tensor and `data` has its size.
  void Write(std::string_view name, std::span<const std::byte> data);
  void Commit();  // OSCAR_CHECKs that every tensor was written

 private:
  std::vector<Declaration> tensors_;
  size_t next_ = 0;
  AtomicFile file_;
};

}  // namespace oscar
