// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/dequantize_gguf.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "capture/model/run/dequantize.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

// Reads the fields of the stored groups of one GGML type. Offsets and sizes are in bytes within a
// group.
class Runs {
 public:
  Runs(const at::Tensor& bytes, const GgmlType& type)
      : bytes_(bytes.reshape({-1, static_cast<int64_t>(type.bytes)})) {}

  int64_t count() const { return bytes_.size(0); }
  at::Tensor Bytes(int64_t begin, int64_t size) const { return bytes_.narrow(1, begin, size); }
  at::Tensor Signed(int64_t begin, int64_t size) const {
    return Bytes(begin, size).contiguous().view(at::kChar).to(at::kFloat);
  }
  at::Tensor Half(int64_t begin) const {  // [count, 1] float32
    return Bytes(begin, 2).contiguous().view(at::kHalf).to(at::kFloat);
  }
  // Reads codes of `bits` bits. In each run of `width` bytes, the lowest bits of all bytes are the
  // first `width` codes, the next bits are the next `width` codes, and so on.
  at::Tensor Codes(int64_t begin, int64_t size, int64_t width, int64_t bits) const {
    return Unpack(Bytes(begin, size), width, bits);
  }
  at::Tensor Unpack(const at::Tensor& bytes, int64_t width, int64_t bits) const {
    const at::Tensor shifts = at::arange(0, 8, bits, bytes_.options()).view({1, 1, -1, 1});
    return bytes.reshape({count(), -1, 1, width})
        .bitwise_right_shift(shifts)
        .bitwise_and_((1 << bits) - 1)
        .view({count(), -1});
  }

 private:
  at::Tensor bytes_;  // [count, bytes of a run]
};

at::Tensor Float(const at::Tensor& codes) { return codes.to(at::kFloat); }

// Returns a + b * 2^shift for bytes.
at::Tensor Joined(const at::Tensor& a, const at::Tensor& b, int64_t shift) {
  return a.bitwise_or(b.bitwise_left_shift(shift));
}

// Splits each group's values into `groups` equal parts and multiplies each part by its scale.
at::Tensor Scaled(const at::Tensor& scales, const at::Tensor& values, int64_t groups) {
  return values.view({values.size(0), groups, -1}).mul(scales.view({-1, groups, 1}));
}

at::Tensor Looked(const std::array<float, 16>& table, const at::Tensor& codes) {
  const at::Tensor values = at::tensor(at::ArrayRef<float>(table)).to(codes.device());
  return values.index_select(0, codes.to(at::kLong).view({-1})).view(codes.sizes());
}

constexpr std::array<float, 16> kIq4 = {-127, -104, -83, -65, -49, -35, -22, -10,
                                        1,    13,   25,  38,  53,  69,  89,  113};
// Twice the values of E2M1.
constexpr std::array<float, 16> kE2M1 = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

at::Tensor Q4_0(const Runs& in) { return Float(in.Codes(2, 16, 16, 4)).sub_(8).mul_(in.Half(0)); }

at::Tensor Q4_1(const Runs& in) {
  return Float(in.Codes(4, 16, 16, 4)).mul_(in.Half(0)).add_(in.Half(2));
}

// The fifth bits of all codes are stored as 32 consecutive bits.
at::Tensor FiveBits(const Runs& in, int64_t high) {
  return Float(Joined(in.Codes(high + 4, 16, 16, 4), in.Codes(high, 4, 1, 1), 4));
}

at::Tensor Q5_0(const Runs& in) { return FiveBits(in, 2).sub_(16).mul_(in.Half(0)); }

at::Tensor Q5_1(const Runs& in) { return FiveBits(in, 4).mul_(in.Half(0)).add_(in.Half(2)); }

at::Tensor Q8_0(const Runs& in) { return in.Signed(2, 32).mul_(in.Half(0)); }

at::Tensor Q2_K(const Runs& in) {
  const at::Tensor scales = in.Bytes(0, 16);
  const at::Tensor scale = Float(scales.bitwise_and(15)).mul_(in.Half(80));
  const at::Tensor least = Float(scales.bitwise_right_shift(4)).mul_(in.Half(82));
  return Scaled(scale, Float(in.Codes(16, 64, 32, 2)), 16).sub_(least.unsqueeze(-1));
}

// Subtracts 4 from codes whose third bit is clear.
at::Tensor Q3_K(const Runs& in) {
  const at::Tensor scales =
      Float(Joined(in.Codes(96, 8, 8, 4), in.Codes(104, 4, 4, 2), 4)).sub_(32).mul_(in.Half(108));
  const at::Tensor high = in.Codes(0, 32, 32, 1).bitwise_xor(1).bitwise_left_shift(2);
  return Scaled(scales, Float(in.Codes(32, 64, 32, 2)).sub_(Float(high)), 16);
}

// Scales and minima of Q4_K and Q5_K: 8 of each, of 6 bits, in 12 bytes.
struct SixBits {
  at::Tensor scale, least;  // [count, 8] float32
};
SixBits ReadSixBits(const Runs& in) {
  const at::Tensor scale = in.Bytes(4, 4), least = in.Bytes(8, 4), low = in.Bytes(12, 4);
  const auto of = [](const at::Tensor& first, const at::Tensor& last) {
    const at::Tensor high = first.bitwise_right_shift(2).bitwise_and_(0x30);
    return Float(at::cat({first.bitwise_and(0x3F), last.bitwise_or(high)}, 1));
  };
  return {of(scale, low.bitwise_and(15)).mul_(in.Half(0)),
          of(least, low.bitwise_right_shift(4)).mul_(in.Half(2))};
}

at::Tensor Q4_K(const Runs& in) {
  const SixBits scales = ReadSixBits(in);
  return Scaled(scales.scale, Float(in.Codes(16, 128, 32, 4)), 8).sub_(scales.least.unsqueeze(-1));
}

at::Tensor Q5_K(const Runs& in) {
  const SixBits scales = ReadSixBits(in);
  const at::Tensor codes = Joined(in.Codes(48, 128, 32, 4), in.Codes(16, 32, 32, 1), 4);
  return Scaled(scales.scale, Float(codes), 8).sub_(scales.least.unsqueeze(-1));
}

at::Tensor Q6_K(const Runs& in) {
  const at::Tensor codes = Joined(in.Codes(0, 128, 64, 4), in.Codes(128, 64, 32, 2), 4);
  return Scaled(in.Signed(192, 16).mul_(in.Half(208)), Float(codes).sub_(32), 16);
}

at::Tensor Iq4Nl(const Runs& in) { return Looked(kIq4, in.Codes(2, 16, 16, 4)).mul_(in.Half(0)); }

at::Tensor Iq4Xs(const Runs& in) {
  const at::Tensor scales = Joined(in.Codes(4, 4, 1, 4), in.Codes(2, 2, 1, 2), 4);
  return Scaled(Float(scales).sub_(32).mul_(in.Half(0)), Looked(kIq4, in.Codes(8, 128, 16, 4)), 8);
}

// The scale is half of 2^(e - 127), because kE2M1 has twice the values. It is assembled as the bits
// of a float32; 2^-128 and 2^-127 are subnormal.
at::Tensor Mxfp4(const Runs& in) {
  const at::Tensor e = in.Bytes(0, 1).to(at::kInt);
  const at::Tensor subnormal = e.clamp_max(1).add_(1).mul_(0x00200000);
  const at::Tensor normal = e.sub(1).clamp_min_(0).bitwise_left_shift_(23);
  const at::Tensor scale = at::where(e.lt(2), subnormal, normal).view(at::kFloat);
  return Looked(kE2M1, in.Codes(1, 16, 16, 4)).mul_(scale);
}

struct Arithmetic {
  uint32_t type;
  at::Tensor (*values)(const Runs& in);
};
constexpr Arithmetic kArithmetic[] = {
    {kGgmlQ4_0, Q4_0},   {kGgmlQ4_1, Q4_1}, {kGgmlQ5_0, Q5_0},    {kGgmlQ5_1, Q5_1},
    {kGgmlQ8_0, Q8_0},   {kGgmlQ2_K, Q2_K}, {kGgmlQ3_K, Q3_K},    {kGgmlQ4_K, Q4_K},
    {kGgmlQ5_K, Q5_K},   {kGgmlQ6_K, Q6_K}, {kGgmlIQ4_NL, Iq4Nl}, {kGgmlIQ4_XS, Iq4Xs},
    {kGgmlMXFP4, Mxfp4},
};

at::Tensor Change(GgufChange change, at::Tensor values) {
  if (change == GgufChange::kMinusOne) return values.sub_(1);
  if (change == GgufChange::kLogOfMinus) return values.neg_().log_();
  return values;
}

// Copies rows of one part to their places in `to` [rows, columns]. Row r of `to` comes from row
// `order[r]`, counted over the rows of all parts; this part's rows begin at `first`.
class PartRows {
 public:
  PartRows(const GgufWeight& weight, const GgufWeight::Part& part, const at::Tensor& columns)
      : weight_(weight), part_(part), columns_(columns) {}

  void Put(const at::Tensor& bytes, int64_t first, std::span<const int64_t> order,
           const at::Tensor& to) const {
    std::vector<int64_t> from, at;
    for (size_t r = 0; r < order.size(); ++r) {
      if (order[r] < first || order[r] >= first + part_.dense_rows()) continue;
      from.push_back(order[r] - first);
      at.push_back(static_cast<int64_t>(r));
    }
    const auto index = [&](const std::vector<int64_t>& values, size_t begin, size_t count) {
      return at::tensor(at::ArrayRef<int64_t>(values).slice(begin, count)).to(to.device());
    };
    const at::Tensor rows = part_.heads == 0 ? bytes.reshape({part_.rows, -1}) : Turned(bytes);
    const int64_t values = to.device().is_cpu() ? kDequantizeValuesCpu : kDequantizeValuesGpu;
    const auto step =
        static_cast<size_t>(std::max<int64_t>(1, values / std::max<int64_t>(1, to.size(1))));
    for (size_t begin = 0; begin < from.size(); begin += step) {
      const size_t count = std::min(step, from.size() - begin);
      // Consecutive rows need no index.
      const bool run = from[begin + count - 1] - from[begin] == static_cast<int64_t>(count) - 1 &&
                       at[begin + count - 1] - at[begin] == static_cast<int64_t>(count) - 1 &&
                       std::ranges::is_sorted(from.begin() + static_cast<int64_t>(begin),
                                              from.begin() + static_cast<int64_t>(begin + count));
      at::Tensor taken = run ? rows.narrow(0, from[begin], static_cast<int64_t>(count))
                             : rows.index_select(0, index(from, begin, count));
      if (part_.heads == 0) taken = Values(taken);
      if (columns_.defined()) taken = taken.index_select(1, columns_);
      if (run) {
        to.narrow(0, at[begin], static_cast<int64_t>(count)).copy_(taken);
      } else {
        to.index_copy_(0, index(at, begin, count), taken.to(to.scalar_type()));
      }
    }
  }

 private:
  at::Tensor Values(const at::Tensor& bytes) const {
    return Change(weight_.change, GgmlValues(bytes, *part_.type).view({bytes.size(0), -1}));
  }
  // Reorders [heads, rows / heads, columns] to [heads * columns, rows / heads].
  at::Tensor Turned(const at::Tensor& bytes) const {
    const at::Tensor values = Values(bytes.reshape({part_.rows, -1}));
    return values.view({part_.heads, -1, part_.columns})
        .transpose(1, 2)
        .reshape({part_.dense_rows(), part_.dense_columns()});
  }

  const GgufWeight& weight_;
  const GgufWeight::Part& part_;
  at::Tensor columns_;  // [columns] int64
};

}  // namespace

at::Tensor GgmlValues(const at::Tensor& bytes, const GgmlType& type) {
  const Runs runs(bytes, type);
  const auto values = static_cast<int64_t>(type.values);
  if (type.values == 1) {
    const at::ScalarType stored = type.id == kGgmlF32   ? at::kFloat
                                  : type.id == kGgmlF16 ? at::kHalf
                                                        : at::kBFloat16;
    const at::Tensor floats = runs.Bytes(0, static_cast<int64_t>(type.bytes)).contiguous();
    return floats.view(stored).to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  }
  const auto* const found = std::ranges::find(kArithmetic, type.id, &Arithmetic::type);
  OSCAR_CHECK(found != std::end(kArithmetic));
  return found->values(runs).view({runs.count(), values});
}

void DequantizeGguf(const WeightStorage& storage, std::span<const at::Tensor> parts,
                    const at::Tensor& result) {
  const GgufWeight& weight = *storage.gguf;
  int64_t all_rows = 0;
  for (const GgufWeight::Part& part : weight.parts) all_rows += part.dense_rows();
  std::vector<int64_t> order = weight.row_order;
  if (order.empty()) {
    order.resize(static_cast<size_t>(all_rows));
    std::iota(order.begin(), order.end(), 0);
  }
  const bool stacked = weight.matrices > 1;
  const int64_t matrices = stacked ? result.size(0) : 1;
  const int64_t columns = weight.parts.front().dense_columns();
  const at::Tensor column_order =
      weight.column_order.empty()
          ? at::Tensor()
          : at::tensor(at::ArrayRef<int64_t>(weight.column_order)).to(result.device());
  at::Tensor all = result;
  if (weight.transposed) all = all.transpose(1, 2);
  if (!weight.transposed) all = all.view({matrices, -1, columns});
  const auto rows = std::span(order).subspan(static_cast<size_t>(stacked ? 0 : storage.first_row),
                                             static_cast<size_t>(all.size(1)));
  for (int64_t m = 0; m < matrices; ++m) {
    int64_t first = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      const GgufWeight::Part& part = weight.parts[p];
      PartRows(weight, part, column_order)
          .Put(parts[p].select(0, m), first, rows, all.select(0, m));
      first += part.dense_rows();
    }
  }
}

}  // namespace oscar
