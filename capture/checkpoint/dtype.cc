// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/checkpoint/dtype.h"

#include <array>

#include "linalg/base/check.h"

namespace oscar {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
  int64_t bits;
};

constexpr std::array<Entry, 22> kTable = {{{DType::kBool, "BOOL", 8},
                                           {DType::kU8, "U8", 8},
                                           {DType::kI8, "I8", 8},
                                           {DType::kF8E5M2, "F8_E5M2", 8},
                                           {DType::kF8E4M3, "F8_E4M3", 8},
                                           {DType::kF8E8M0, "F8_E8M0", 8},
                                           {DType::kI16, "I16", 16},
                                           {DType::kU16, "U16", 16},
                                           {DType::kF16, "F16", 16},
                                           {DType::kBF16, "BF16", 16},
                                           {DType::kI32, "I32", 32},
                                           {DType::kU32, "U32", 32},
                                           {DType::kF32, "F32", 32},
                                           {DType::kI64, "I64", 64},
                                           {DType::kU64, "U64", 64},
                                           {DType::kF64, "F64", 64},
                                           {DType::kC64, "C64", 64},
                                           {DType::kF4, "F4", 4},
                                           {DType::kF6E2M3, "F6_E2M3", 6},
                                           {DType::kF6E3M2, "F6_E3M2", 6},
                                           {DType::kF8E4M3Fnuz, "F8_E4M3FNUZ", 8},
                                           {DType::kF8E5M2Fnuz, "F8_E5M2FNUZ", 8}}};

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

int64_t DTypeBits(DType dtype) { return Find(dtype).bits; }

int64_t DTypeBytes(DType dtype) {
  OSCAR_CHECK_EQ(DTypeBits(dtype) % 8, 0);
  return DTypeBits(dtype) / 8;
}

}  // namespace oscar
