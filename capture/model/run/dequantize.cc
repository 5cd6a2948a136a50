// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/run/dequantize.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/index_select.h>
#include <fmt/format.h>

#include <algorithm>

#include "capture/model/run/dequantize_formats.h"
#include "capture/model/run/dequantize_gguf.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Returns entry m of a part that holds stacked matrices; otherwise the whole part.
at::Tensor Matrix(const at::Tensor& part, bool stacked, int64_t m) {
  return stacked && part.defined() ? part.select(0, m) : part;
}

// i / size for i = first, first + 1, ...  // [count] int64
at::Tensor Quotients(int64_t first, int64_t count, int64_t size, at::Device device) {
  const auto options = at::TensorOptions().dtype(at::kLong).device(device);
  return at::arange(first, first + count, options).div_(size, "floor");
}

// Expands a grid of scales or zero points [rows, G] to one number per value, for some rows: selects
// rows and repeats columns.
class Spread {
 public:
  Spread(const WeightStorage& storage, const MatrixParts& parts)
      : scale_rows_(storage.scale_rows), rows_(parts.rows), whole_rows_(true) {
    if (storage.scale_columns >= parts.columns && !parts.group_index.defined()) return;
    whole_rows_ = false;
    columns_ = parts.group_index.defined()
                   ? parts.group_index.to(at::kLong)
                   : Quotients(0, parts.columns, storage.scale_columns, parts.codes.device());
  }

  // Returns [count, K], or a tensor that broadcasts to it.
  at::Tensor operator()(const at::Tensor& grid, int64_t first, int64_t count) const {
    at::Tensor rows = grid;
    if (scale_rows_ == 1) {
      rows = grid.narrow(0, first, count);
    } else if (scale_rows_ < rows_) {
      rows = grid.index_select(0, Quotients(first, count, scale_rows_, grid.device()));
    }
    return whole_rows_ ? rows : rows.index_select(1, columns_);
  }

 private:
  int64_t scale_rows_, rows_;
  bool whole_rows_;     // one scale for a whole row
  at::Tensor columns_;  // [K] int64
};

// Dequantizes rows [first_row, first_row + N) of one matrix to `result` [N, K].
void DequantizeMatrix(const MatrixParts& parts, int64_t first_row, const at::Tensor& result) {
  const FormatArithmetic& format = FindArithmetic(parts.storage.scheme.format);
  const Spread spread(parts.storage, parts);
  const at::Tensor scales = format.scales(parts), zeros = format.zeros(parts);
  const int64_t values = result.device().is_cpu() ? kDequantizeValuesCpu : kDequantizeValuesGpu;
  const int64_t step =
      std::max<int64_t>(1, values / (parts.columns * format.row_step)) * format.row_step;
  const int64_t end = first_row + result.size(0);
  // Starts at a multiple of row_step, because a word may hold codes of several rows. Drops rows
  // before the first requested one.
  for (int64_t first = first_row / format.row_step * format.row_step; first < end; first += step) {
    const int64_t count = std::min(step, parts.rows - first);
    at::Tensor w = format.codes(parts, first, count);
    if (zeros.defined()) w.sub_(spread(zeros, first, count));
    w.mul_(spread(scales, first, count));
    const int64_t from = std::max(first, first_row), to = std::min(first + count, end);
    result.narrow(0, from - first_row, to - from).copy_(w.narrow(0, from - first, to - from));
  }
}

}  // namespace

at::ScalarType PartScalarType(DType dtype, std::string_view what) {
  switch (dtype) {
    case DType::kBF16:
      return at::kBFloat16;
    case DType::kF16:
      return at::kHalf;
    case DType::kF32:
      return at::kFloat;
    case DType::kF8E4M3:
      return at::kFloat8_e4m3fn;
    case DType::kI8:
      return at::kChar;
    case DType::kU8:
    case DType::kF8E8M0:
      return at::kByte;
    case DType::kI32:
      return at::kInt;
    default:
      throw InputError(
          fmt::format("{} is stored as {}, which no weight format uses", what, DTypeName(dtype)));
  }
}

void Dequantize(const WeightStorage& storage, std::span<const at::Tensor> parts,
                const at::Tensor& result) {
  OSCAR_CHECK_EQ(parts.size(), storage.parts.size());
  if (storage.gguf != nullptr) return DequantizeGguf(storage, parts, result);
  const auto part = [&](PartRole role) {
    const WeightPart* found = storage.Find(role);
    return found == nullptr ? at::Tensor()
                            : parts[static_cast<size_t>(found - storage.parts.data())];
  };
  const bool stacked = storage.shape.size() == 3;
  const int64_t matrices = stacked ? storage.shape[0] : 1;
  for (int64_t m = 0; m < matrices; ++m) {
    at::Tensor to = Matrix(result, stacked, m);
    if (storage.transposed) to = to.t();
    const MatrixParts one{storage,
                          Matrix(part(PartRole::kCodes), stacked, m),
                          Matrix(part(PartRole::kScales), stacked, m),
                          Matrix(part(PartRole::kZeros), stacked, m),
                          part(PartRole::kGroupIndex),
                          part(PartRole::kGlobalScale),
                          storage.stored_rows,
                          to.size(1)};
    DequantizeMatrix(one, storage.first_row, to);
  }
}

}  // namespace oscar
