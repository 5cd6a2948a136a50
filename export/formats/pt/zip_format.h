// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of the ZIP format that torch.save uses (APPNOTE 6.3.10), defined once for reader and
// writer: signatures, sizes and flags. Multi-byte fields are little-endian and unaligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace oscar::zip {

inline constexpr uint32_t kLocalSignature = 0x04034b50;
inline constexpr uint32_t kDescriptorSignature = 0x08074b50;
inline constexpr uint32_t kCentralSignature = 0x02014b50;
inline constexpr uint32_t kEnd64Signature = 0x06064b50;
inline constexpr uint32_t kEnd64LocatorSignature = 0x07064b50;
inline constexpr uint32_t kEndSignature = 0x06054b50;

// Size of the fixed part of each structure, in bytes.
inline constexpr size_t kLocalBytes = 30;
inline constexpr size_t kDescriptorBytes = 16;
inline constexpr size_t kDescriptor64Bytes = 24;
inline constexpr size_t kCentralBytes = 46;
inline constexpr size_t kEnd64Bytes = 56;
inline constexpr size_t kEnd64LocatorBytes = 20;
inline constexpr size_t kEndBytes = 22;

inline constexpr uint16_t kFlagDescriptor = 1 << 3;  // sizes and CRC follow the data
inline constexpr uint16_t kFlagUtf8 = 1 << 11;
inline constexpr uint16_t kMethodStored = 0;

inline constexpr uint16_t kExtraZip64 = 0x0001;
inline constexpr uint16_t kExtraPadding = 0x4246;  // "FB": torch.save uses it to align data
inline constexpr char kPaddingByte = 'Z';
inline constexpr uint64_t kTorchAlignment = 64;  // bytes, for the data of every record

inline constexpr uint16_t kMax16 = 0xffff;
inline constexpr uint32_t kMax32 = 0xffffffff;

// The caller must have checked that [offset, offset + sizeof(T)) lies inside `bytes`.
template <typename T>
T Load(std::span<const std::byte> bytes, size_t offset) {
  static_assert(std::is_unsigned_v<T>);
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(static_cast<T>(bytes[offset + i]) << (8 * i));
  }
  return value;
}

}  // namespace oscar::zip
