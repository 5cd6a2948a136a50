// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Element types of safetensors files, with their names in that format. The list covers the whole
// format, so that any file can be listed. Trap: elements of F4 and F6_* are packed, so they have a
// size in bits but not in bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace oscar {

enum class DType {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kI64,
  kU64,
  kF64,
  kC64,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz
};

std::string_view DTypeName(DType dtype);                    // "BF16"
std::optional<DType> DTypeFromName(std::string_view name);  // exact, case-sensitive
int64_t DTypeBits(DType dtype);                             // bits per element
int64_t DTypeBytes(DType dtype);  // bytes per element; OSCAR_CHECKs that they are whole

}  // namespace oscar
