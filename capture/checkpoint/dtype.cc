// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/dtype.h"

#include <array>

#include "linalg/check.h"

namespace oscar {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<Entry, 16> kTable = {{{DType::kBool, "BOOL", 1},
                                           {DType::kU8, "U8", 1},
                                           {DType::kI8, "I8", 1},
                                           {DType::kF8E5M2, "F8_E5M2", 1},
                                           {DType::kF8E4M3, "F8_E4M3", 1},
                                           {DType::kF8E8M0, "F8_E8M0", 1},
                                           {DType::kI16, "I16", 2},
                                           {DType::kU16, "U16", 2},
                                           {DType::kF16, "F16", 2},
                                           {DType::kBF16, "BF16", 2},
                                           {DType::kI32, "I32", 4},
                                           {DType::kU32, "U32", 4},
                                           {DType::kF32, "F32", 4},
                                           {DType::kI64, "I64", 8},
                                           {DType::kU64, "U64", 8},
                                           {DType::kF64, "F64", 8}}};

const Entry& Find(DType dtype) {
  for (const Entry& entry : kTable) {
    if (entry.dtype == dtype) return entry;
  }
  OSCAR_CHECK(false);
}

}  // namespace

std::string_view DTypeName(DType dtype) { return Find(dtype).name; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const Entry& entry : kTable) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

int64_t DTypeBytes(DType dtype) { return Find(dtype).bytes; }

}  // namespace oscar
