// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/codecs/higgs_tensor.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "export/simulate/codecs/affine_family_tensor.h"
#include "export/simulate/codecs/vector_codebook.h"
#include "export/simulate/random_rotation.h"
#include "export/simulate/token_blocks.h"
#include "linalg/base/check.h"
#include "linalg/hadamard.h"

namespace oscar {
namespace {

constexpr int64_t kHiggsWidth = 2;  // values per code

at::Tensor FittedGrid(int64_t entries) {
  constexpr int64_t kSide = 256;  // kSide^2 draws: 128 points for each of 256 entries
  const Matrix draws = RandomGaussian(kSide, /*seed=*/1, /*stream=*/static_cast<uint64_t>(entries));
  const at::Tensor points = at::from_blob(const_cast<double*>(draws.data()),
                                          {kSide * kSide / kHiggsWidth, kHiggsWidth}, at::kDouble);
  return VectorCodebook(points, {.entries = entries});
}

}  // namespace

int64_t HiggsGroup(int64_t channels) {
  return std::min<int64_t>(1024, HadamardBlockSize(channels));
}

const at::Tensor& HiggsGrid(int64_t entries) {
  OSCAR_CHECK(entries == 16 || entries == 256);
  static const at::Tensor small = FittedGrid(16), large = FittedGrid(256);
  return entries == 16 ? small : large;
}

at::Tensor HiggsRoundTrip(const at::Tensor& rows, int64_t entries) {
  const int64_t group = HiggsGroup(rows.size(-1));
  const at::Tensor turned = HadamardRows(rows.unflatten(-1, {-1, group}));
  const at::Tensor scales =
      RoundTo(RoundedSqrt(TreeSum(turned.square(), -1).div(static_cast<double>(group))),
              StoredFloat::kFloat16);
  const at::Tensor normal = turned.div(scales.masked_fill(scales.le(0), 1));
  const at::Tensor read =
      NearestEntries(normal.unflatten(-1, {-1, kHiggsWidth}), HiggsGrid(entries)).flatten(-2);
  return HadamardRows(read.mul(scales)).flatten(-2);
}

}  // namespace oscar
