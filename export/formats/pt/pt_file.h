// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// A .pt file, whose archive, pickle and storages are checked together when it is opened. Trap:
// tensors are views. They may share a storage, be strided or have an offset, so read values through
// this class and never directly from a record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "export/formats/pt/pickle_reader.h"
#include "export/formats/pt/pt_value.h"
#include "export/formats/pt/zip_reader.h"

namespace oscar {

// The values of one tensor in logical row-major order.
struct FloatTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;  // product of shape
};
using FloatTensorPtr = std::shared_ptr<const FloatTensor>;

class PtFile {
 public:
  // Opens a file. Throws InputError naming it unless archive, pickle, byte order, version and
  // storages are as torch.save writes them and all tensors lie inside their storages. All tensors
  // together may be at most 16 times as large as the file, or 1 MiB.
  static PtFile Open(const std::filesystem::path& path) { return Open(MappedFile::Open(path)); }
  static PtFile Open(MappedFile file);

  const std::filesystem::path& path() const { return archive_.path(); }
  const ZipReader& archive() const { return archive_; }
  const std::vector<std::string>& globals() const { return globals_; }
  const PtValue& root() const { return *tree_.root; }

  static int64_t Count(const PtTensor& tensor);  // number of elements
  // Returns the elements in logical row-major order, in the tensor's own dtype, little-endian.
  std::vector<std::byte> RawBytes(const PtTensor& tensor) const;
  // These convert the elements. They throw InputError naming `what` unless the dtype is a float of
  // 16, 32 or 64 bits.
  std::vector<float> Floats(const PtTensor& tensor, std::string_view what) const;
  std::vector<double> Doubles(const PtTensor& tensor, std::string_view what) const;

 private:
  void CheckTensors() const;

  ZipReader archive_;
  PtTree tree_;
  std::vector<std::string> globals_;
};

}  // namespace oscar
