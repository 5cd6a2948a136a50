// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// How codes of a few bits lie in bytes:
//
//   dense   a little-endian bit stream: code k in bits [b k, b k + b); any b up to 8. P-le; with
//           b = 4 P-pair4, in words of 32 bits KIVI's and GPTQ's layout
//   sliced  byte i = q[i] | q[i + n] << b | q[i + 2n] << 2b ..., n bytes in all; b divides 8.
//           P-quarter2 (b = 2) and P-half4 (b = 4)
//
// Both have the same number of bytes where both apply, so a size says nothing of the layout.
#pragma once

#include <cstdint>
#include <span>

namespace oscar {

enum class CodePacking { kDense, kSliced };

// Bytes of `count` codes, the last one filled up with zero bits.
constexpr int64_t PackedBytes(int64_t count, int bits) { return (count * bits + 7) / 8; }

// codes [count] to packed [PackedBytes] and back. Sliced: 8 / bits divides count.
void PackCodes(std::span<const uint8_t> codes, int bits, CodePacking packing,
               std::span<uint8_t> packed);
void UnpackCodes(std::span<const uint8_t> packed, int bits, CodePacking packing,
                 std::span<uint8_t> codes);

}  // namespace oscar
