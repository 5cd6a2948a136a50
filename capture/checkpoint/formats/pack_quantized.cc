// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// compressed-tensors' pack-quantized: unsigned codes u = q + 2^(b-1) in int32 words along K, and
// zero points packed along N in the same way. Old releases began a new word if a code did not fit
// into the current one; new releases let it straddle two words. If the two layouts differ, only the
// new one is read, and a tensor whose size fits both is refused.
#include <fmt/format.h>

#include <cstring>

#include "capture/checkpoint/formats/formats.h"

namespace oscar {
namespace {

constexpr int64_t kMostColumns = int64_t{1} << 24;

// Returns the K of [N, K]. The packed codes do not give it, because their last word may be half
// empty. If there are groups, K follows from their number; otherwise it is read from weight_shape.
// A model with many experts has many weight_shape tensors, and reading each would make a page
// resident.
int64_t ReadColumns(PartFinder& finder, const std::string& name, const std::string& scales) {
  if (!finder.Has(name)) finder.Fail(name, "is missing");
  const TensorInfo& info = finder.checkpoint().info(name);
  const bool wide = info.dtype == DType::kI64;
  if ((!wide && info.dtype != DType::kI32) || info.shape != std::vector<int64_t>{2})
    finder.Fail(name, "must be two integers, I64 or I32");
  if (finder.scheme().scales == ScaleKind::kGroup) {
    finder.ExpectRank(scales, 2);
    const int64_t groups = finder.checkpoint().info(scales).shape[1];
    if (groups <= kMostColumns / finder.scheme().group_size)
      return groups * finder.scheme().group_size;
    finder.Fail(scales, fmt::format("has {} groups of {} values, which does not match the weight",
                                    groups, finder.scheme().group_size));
  }
  int64_t columns = 0;
  int32_t narrow = 0;
  const TensorView view = finder.checkpoint().tensor(name);
  if (wide) {
    std::memcpy(&columns, view.data.data() + sizeof columns, sizeof columns);
  } else {
    std::memcpy(&narrow, view.data.data() + sizeof narrow, sizeof narrow);
    columns = narrow;
  }
  if (columns < 1 || columns > kMostColumns)
    finder.Fail(name, fmt::format("holds {} columns, expected 1 .. 2^24", columns));
  return columns;
}

// Number of words that hold `count` codes.
int64_t Words(PartFinder& finder, const std::string& name, int64_t count) {
  const int64_t bits = finder.scheme().bits;
  const int64_t dense = CeilDivide(count * bits, 32);
  if (32 % bits != 0 && CeilDivide(count, 32 / bits) == dense)
    finder.Fail(
        name,
        fmt::format("holds {}-bit codes in one of two layouts that cannot be told apart", bits));
  return dense;
}

}  // namespace

std::string PackedCodes(const PartFinder& finder) { return finder.weight() + "_packed"; }

void FindPacked(PartFinder& finder) {
  const WeightScheme& scheme = finder.scheme();
  WeightStorage& storage = finder.storage();
  const std::string codes = PackedCodes(finder), scales = finder.weight() + "_scale";
  const std::string shape = finder.weight() + "_shape", zeros = finder.weight() + "_zero_point";
  const TensorInfo& words = finder.Add(PartRole::kCodes, codes, {DType::kI32});
  finder.ExpectRank(codes, 2);
  finder.Add(PartRole::kScales, scales, {DType::kF32, DType::kBF16, DType::kF16});
  const int64_t rows = words.shape[0], columns = ReadColumns(finder, shape, scales);
  storage.shape = {rows, columns};
  storage.also_read.push_back(shape);
  finder.Expect(codes, {rows, Words(finder, codes, columns)});

  storage.scale_rows = scheme.scales == ScaleKind::kTensor ? rows : 1;
  storage.scale_columns = scheme.scales == ScaleKind::kGroup ? scheme.group_size : columns;
  const int64_t groups = columns / storage.scale_columns;
  const int64_t scale_rows = CeilDivide(rows, storage.scale_rows);
  finder.Expect(scales, {scale_rows, groups}, /*squeezed=*/true);
  storage.parts.back().shape = {scale_rows, groups};
  if (!scheme.symmetric) {
    // Zero points were plain bytes before compressed-tensors 0.9.4 (its #296).
    const bool bytes =
        finder.Add(PartRole::kZeros, zeros, {DType::kI32, DType::kI8}).dtype == DType::kI8;
    finder.Expect(zeros, {bytes ? scale_rows : Words(finder, zeros, scale_rows), groups});
  }
  const std::string index = finder.weight() + "_g_idx";
  if (scheme.ordered || finder.Has(index)) {
    finder.Add(PartRole::kGroupIndex, index, {DType::kI32});
    finder.Expect(index, {columns});
  }
}

}  // namespace oscar
