// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/int2_codec.h"

#include <algorithm>
#include <vector>

#include "linalg/base/check.h"

namespace oscar {
namespace {

AffineFormat Affine(const Int2Format& format) {
  OSCAR_CHECK(IsValid(format));
  return {kInt2Bits, format.quant_group_size, format.metadata};
}

}  // namespace

void EncodeRow(std::span<const float> x, const Int2Format& format, std::span<uint8_t> packed,
               std::span<float> scales_zeros) {
  OSCAR_CHECK_EQ(static_cast<int64_t>(x.size()), format.head_dim);
  std::vector<uint8_t> codes(x.size());
  EncodeAffineRow(x, Affine(format), codes, scales_zeros);
  PackCodes(codes, format, packed);
}

void DecodeRow(std::span<const uint8_t> packed, std::span<const float> scales_zeros,
               const Int2Format& format, std::span<float> y) {
  std::vector<uint8_t> codes(y.size());
  UnpackCodes(packed, format, codes);
  DecodeAffineRow(codes, scales_zeros, Affine(format), y);
}

void PackCodes(std::span<const uint8_t> codes, const Int2Format& format,
               std::span<uint8_t> packed) {
  OSCAR_CHECK(IsValid(format));
  OSCAR_CHECK_EQ(static_cast<int64_t>(codes.size()), format.head_dim);
  OSCAR_CHECK_EQ(static_cast<int64_t>(packed.size()), Int2PackedBytesPerRow(format));
  std::fill(packed.begin(), packed.end(), uint8_t{0});
  for (int64_t i = 0; i < format.head_dim; ++i) {
    OSCAR_CHECK_LE(int{codes[i]}, kInt2MaxCode);
    packed[Int2ByteOfElement(format, i)] |=
        static_cast<uint8_t>(codes[i] << Int2ShiftOfElement(format, i));
  }
}

void UnpackCodes(std::span<const uint8_t> packed, const Int2Format& format,
                 std::span<uint8_t> codes) {
  OSCAR_CHECK(IsValid(format));
  OSCAR_CHECK_EQ(static_cast<int64_t>(codes.size()), format.head_dim);
  OSCAR_CHECK_EQ(static_cast<int64_t>(packed.size()), Int2PackedBytesPerRow(format));
  for (int64_t i = 0; i < format.head_dim; ++i) {
    codes[i] = (packed[Int2ByteOfElement(format, i)] >> Int2ShiftOfElement(format, i)) & 3;
  }
}

template <typename T>
T QuantizeDequantizeRow(std::span<const T> x, const Int2Format& format, const RowClip& clip,
                        std::span<T> y) {
  OSCAR_CHECK_EQ(static_cast<int64_t>(x.size()), format.head_dim);
  return QuantizeDequantizeAffineRow(x, Affine(format), clip, y);
}

template float QuantizeDequantizeRow(std::span<const float>, const Int2Format&, const RowClip&,
                                     std::span<float>);
template double QuantizeDequantizeRow(std::span<const double>, const Int2Format&, const RowClip&,
                                      std::span<double>);

}  // namespace oscar
