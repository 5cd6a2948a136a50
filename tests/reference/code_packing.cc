// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/code_packing.h"

#include <algorithm>

#include "linalg/base/check.h"

namespace oscar {
namespace {

struct BitAddress {
  size_t byte;
  int shift;
};

// Returns the address of the first bit of code k.
BitAddress AddressOf(size_t k, int bits, CodePacking packing, size_t num_bytes) {
  if (packing == CodePacking::kSliced)
    return {k % num_bytes, bits * static_cast<int>(k / num_bytes)};
  const size_t bit = k * static_cast<size_t>(bits);
  return {bit / 8, static_cast<int>(bit % 8)};
}

void CheckSizes(size_t count, int bits, CodePacking packing, size_t num_bytes) {
  OSCAR_CHECK(bits >= 1 && bits <= 8);
  OSCAR_CHECK_EQ(static_cast<int64_t>(num_bytes), PackedBytes(static_cast<int64_t>(count), bits));
  if (packing == CodePacking::kDense) return;
  OSCAR_CHECK_EQ(8 % bits, 0);
  OSCAR_CHECK_EQ(count % static_cast<size_t>(8 / bits), size_t{0});
}

}  // namespace

void PackCodes(std::span<const uint8_t> codes, int bits, CodePacking packing,
               std::span<uint8_t> packed) {
  CheckSizes(codes.size(), bits, packing, packed.size());
  std::fill(packed.begin(), packed.end(), uint8_t{0});
  for (size_t k = 0; k < codes.size(); ++k) {
    OSCAR_CHECK_LT(int{codes[k]}, 1 << bits);
    const BitAddress at = AddressOf(k, bits, packing, packed.size());
    const unsigned shifted = unsigned{codes[k]} << at.shift;
    packed[at.byte] |= static_cast<uint8_t>(shifted);
    if (at.shift + bits > 8) packed[at.byte + 1] |= static_cast<uint8_t>(shifted >> 8);
  }
}

void UnpackCodes(std::span<const uint8_t> packed, int bits, CodePacking packing,
                 std::span<uint8_t> codes) {
  CheckSizes(codes.size(), bits, packing, packed.size());
  for (size_t k = 0; k < codes.size(); ++k) {
    const BitAddress at = AddressOf(k, bits, packing, packed.size());
    unsigned word = packed[at.byte];
    if (at.shift + bits > 8) word |= unsigned{packed[at.byte + 1]} << 8;
    codes[k] = static_cast<uint8_t>((word >> at.shift) & ((1U << bits) - 1));
  }
}

}  // namespace oscar
