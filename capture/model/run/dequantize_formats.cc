// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/dequantize_formats.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <vector>

#include "linalg/base/check.h"

namespace oscar {
namespace {

at::TensorOptions On(const at::Tensor& x, at::ScalarType dtype) {
  return at::TensorOptions().dtype(dtype).device(x.device());
}

at::Tensor None(const MatrixParts& /*parts*/) { return {}; }

// Unpacks codes of `bits` bits from int32 or int64 words along the last dimension, lowest bits
// first. A code may straddle words. The result has the type of the words.
// [.., W] -> [.., 32 W / bits]
at::Tensor Unpack(const at::Tensor& words, int bits) {
  const int64_t mask = (int64_t{1} << bits) - 1;
  if (32 % bits == 0) {
    const at::Tensor shifts = at::arange(0, 32, bits, words.options());
    return words.unsqueeze(-1).bitwise_right_shift(shifts).bitwise_and_(mask).flatten(-2);
  }
  // `bits` words hold 32 codes; code j begins in word j bits / 32.
  const int64_t count = words.size(-1), padding = (bits - count % bits) % bits;
  at::Tensor wide = words.to(at::kLong).bitwise_and(int64_t{0xFFFFFFFF});
  if (padding > 0) wide = at::constant_pad_nd(wide, {0, padding});
  wide = wide.unflatten(-1, {-1, bits});
  const at::Tensor bit = at::arange(0, int64_t{32} * bits, bits, On(words, at::kLong));
  const at::Tensor word = bit.div(32, "floor");
  const at::Tensor low = wide.index_select(-1, word);
  const at::Tensor high = wide.index_select(-1, word.add(1).clamp_max_(bits - 1));
  return low.bitwise_or(high.bitwise_left_shift(32))
      .bitwise_right_shift(bit.remainder(32))
      .bitwise_and_(mask)
      .flatten(-2)
      .to(words.scalar_type());
}

// ---- kScaled

at::Tensor ScaledCodes(const MatrixParts& parts, int64_t first, int64_t count) {
  return parts.codes.narrow(0, first, count).to(at::kFloat);
}

// Returns 2^(e - 127) exactly, as float32 numbers assembled from their bits. An e of 255 gives NaN
// (OCP microscaling formats, section 5.4.1).
at::Tensor PowersOfTwo(const at::Tensor& exponents) {
  constexpr int kHalfStep = 1 << 22;  // 2^-127 is subnormal; an infinity plus this is a NaN
  const at::Tensor e = exponents.to(at::kInt);
  const at::Tensor bits = e.bitwise_left_shift(23).clamp_min_(kHalfStep);
  return bits.add_(e.eq(255).to(at::kInt), kHalfStep).view(at::kFloat);
}

at::Tensor ScaledScales(const MatrixParts& parts) {
  const bool exponents = parts.scales.scalar_type() == at::kByte;
  return exponents ? PowersOfTwo(parts.scales) : parts.scales.to(at::kFloat);
}

at::Tensor ScaledZeros(const MatrixParts& parts) {
  return parts.zeros.defined() ? parts.zeros.to(at::kFloat) : at::Tensor();
}

// ---- kPacked: unsigned codes with an offset of 2^(bits - 1)

at::Tensor Signed(const at::Tensor& codes, int bits) {
  return codes.to(at::kFloat).sub_(static_cast<double>(1 << (bits - 1)));
}

at::Tensor PackedCodes(const MatrixParts& parts, int64_t first, int64_t count) {
  const int bits = parts.storage.scheme.bits;
  const at::Tensor codes = Unpack(parts.codes.narrow(0, first, count), bits);
  return Signed(codes.narrow(1, 0, parts.columns), bits);
}

at::Tensor PackedZeros(const MatrixParts& parts) {
  if (!parts.zeros.defined()) return {};
  if (parts.zeros.scalar_type() == at::kChar) return parts.zeros.to(at::kFloat);
  const int bits = parts.storage.scheme.bits;
  const at::Tensor codes = Unpack(parts.zeros.t(), bits);
  return Signed(codes.narrow(1, 0, parts.scales.size(0)).t(), bits);
}

// ---- kGptq

at::Tensor GptqCodes(const MatrixParts& parts, int64_t first, int64_t count) {
  const at::Tensor words = parts.codes.narrow(1, first, count).t();
  return Unpack(words, parts.storage.scheme.bits).to(at::kFloat);
}

at::Tensor TransposedScales(const MatrixParts& parts) { return parts.scales.t().to(at::kFloat); }

at::Tensor GptqZeros(const MatrixParts& parts) {
  at::Tensor words = parts.zeros.to(at::kLong).bitwise_and_(int64_t{0xFFFFFFFF});
  const std::vector<uint32_t>& increments = parts.storage.zero_word_increments;
  if (!increments.empty()) {
    const auto period = static_cast<int64_t>(increments.size());
    at::Tensor table = at::empty({period}, words.options());
    for (int64_t i = 0; i < period; ++i)
      table.select(0, i).fill_(static_cast<int64_t>(increments[static_cast<size_t>(i)]));
    table = table.index_select(0, at::arange(words.size(1), words.options()).remainder_(period));
    words = words.add(table).bitwise_and_(int64_t{0xFFFFFFFF});
  }
  const int bits = parts.storage.scheme.bits;
  const at::Tensor zeros = Unpack(words, bits).add_(parts.storage.zero_increment);
  return zeros.bitwise_and_((int64_t{1} << bits) - 1).t().to(at::kFloat);
}

// ---- kAwq

// Columns 8 c + j of words [.., W] begin at bit 0 16 4 20 8 24 12 28 of word c.
at::Tensor UnpackAwq(const at::Tensor& words) {
  const at::Tensor shifts = at::arange(0, 16, 4, words.options())
                                .unsqueeze(1)
                                .add(at::arange(0, 32, 16, words.options()))
                                .flatten();
  return words.unsqueeze(-1).bitwise_right_shift(shifts).bitwise_and_(15).flatten(-2);
}

at::Tensor AwqCodes(const MatrixParts& parts, int64_t first, int64_t count) {
  return UnpackAwq(parts.codes.narrow(1, first / 8, count / 8)).t().to(at::kFloat);
}

at::Tensor AwqZeros(const MatrixParts& parts) { return UnpackAwq(parts.zeros).t().to(at::kFloat); }

// ---- kMxfp4, kNvfp4

// Values of the sixteen E2M1 codes: 0 0.5 1 1.5 2 3 4 6 and their negatives. The low three bits of
// a code become a float32's low exponent bits and top mantissa bit. 0.5 is subnormal in E2M1 and is
// computed separately.
at::Tensor Fp4Values(const at::Tensor& on) {
  constexpr int kExponentOffset = 126 << 23;
  const at::Tensor code = at::arange(0, 16, On(on, at::kInt)), low = code.bitwise_and(7);
  const at::Tensor normal = low.bitwise_left_shift(22).add_(kExponentOffset).view(at::kFloat);
  const at::Tensor magnitude = at::where(low.lt(2), low.to(at::kFloat).mul_(0.5), normal);
  return at::where(code.lt(8), magnitude, magnitude.neg());
}

// Splits bytes into two codes each, low nibble first.  // [count, K / 2] -> [count, K]
at::Tensor Fp4Codes(const MatrixParts& parts, int64_t first, int64_t count) {
  const at::Tensor values = Fp4Values(parts.codes);
  const at::Tensor byte = at::arange(0, 256, On(parts.codes, at::kInt));
  const at::Tensor pairs = at::stack({values.index_select(0, byte.bitwise_and(15)),
                                      values.index_select(0, byte.bitwise_right_shift(4))},
                                     1);
  const at::Tensor bytes = parts.codes.narrow(0, first, count).flatten().to(at::kInt);
  return pairs.index_select(0, bytes).view({count, parts.columns});
}

at::Tensor Mxfp4Scales(const MatrixParts& parts) { return PowersOfTwo(parts.scales); }

// The scale is rounded to float32 before it multiplies a code.
at::Tensor Nvfp4Scales(const MatrixParts& parts) {
  const at::Tensor scales = parts.scales.to(at::kFloat);
  return parts.storage.scheme.global_scale_divides ? scales.div(parts.global_scale)
                                                   : scales.mul(parts.global_scale);
}

constexpr FormatArithmetic kFormats[] = {
    {WeightFormat::kScaled, ScaledCodes, ScaledScales, ScaledZeros, 1},
    {WeightFormat::kPacked, PackedCodes, ScaledScales, PackedZeros, 1},
    {WeightFormat::kGptq, GptqCodes, TransposedScales, GptqZeros, 1},
    {WeightFormat::kAwq, AwqCodes, TransposedScales, AwqZeros, 8},
    {WeightFormat::kMxfp4, Fp4Codes, Mxfp4Scales, None, 1},
    {WeightFormat::kNvfp4, Fp4Codes, Nvfp4Scales, None, 1},
};

}  // namespace

const FormatArithmetic& FindArithmetic(WeightFormat format) {
  const auto* found = std::ranges::find(kFormats, format, &FormatArithmetic::format);
  OSCAR_CHECK(found != std::end(kFormats));
  return *found;
}

}  // namespace oscar
