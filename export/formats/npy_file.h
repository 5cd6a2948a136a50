// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads arrays as numpy.save writes them (numpy.lib.format, versions 1.0 to 3.0): six bytes of
// magic, two of version, the length of the header, the header, and the values in row-major order.
// The header is a Python literal with the keys descr, fortran_order and shape. Only little-endian
// floats of 16, 32 and 64 bits are supported.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "capture/checkpoint/dtype.h"
#include "capture/files/mapped_file.h"

namespace oscar {

struct NpyFile {
  DType dtype{};
  std::vector<int64_t> shape;
  std::vector<float> values;  // product of shape, row-major
};

// Throws InputError naming the file if it is not an array of floats, is in column-major order, or
// has a size that does not match its shape.
NpyFile ReadNpyFile(const MappedFile& file);
inline NpyFile ReadNpyFile(const std::filesystem::path& path) {
  return ReadNpyFile(MappedFile::Open(path));
}

}  // namespace oscar
