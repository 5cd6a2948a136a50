// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads arrays that numpy.save wrote (numpy.lib.format, versions 1.0 to 3.0). A file consists of
// six bytes of magic, two bytes of version, the header's length, the header, and the values. The
// header is a Python dict literal with the keys descr, fortran_order and shape. Only row-major
// arrays of little-endian 16, 32 or 64-bit floats are supported.
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

// Throws InputError naming the file if it is not such an array, or if its size does not match its
// shape.
NpyFile ReadNpyFile(const MappedFile& file);
inline NpyFile ReadNpyFile(const std::filesystem::path& path) {
  return ReadNpyFile(MappedFile::Open(path));
}

}  // namespace oscar
