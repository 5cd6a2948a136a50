// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every operation rounds separately, as in the scalar code. Fusing or reordering changes codes.
#include "export/simulate/codecs/variance_tensor.h"

#include <ATen/ATen.h>

#include "export/simulate/codecs/affine_family_tensor.h"
#include "linalg/variance_normalization.h"

namespace oscar {
namespace {

constexpr int64_t kRowDim = -2, kColumnDim = -1;

// Returns the sample standard deviation (divisor n - 1) along `dim`, which stays with size 1.
at::Tensor SampleStd(const at::Tensor& x, int64_t dim) {
  const int64_t count = x.size(dim);
  const at::Tensor mean = DividedBy(TreeSum(x, dim), count);
  return RoundedSqrt(DividedBy(TreeSum(x.sub(mean).square_(), dim), count - 1));
}

// Standard deviations of columns are taken along rows, and those of rows along columns.
at::Tensor ColumnStds(const at::Tensor& x) { return SampleStd(x, kRowDim); }
at::Tensor RowStds(const at::Tensor& x) { return SampleStd(x, kColumnDim); }

at::Tensor Imbalance(const at::Tensor& divided) {
  const auto spread = [](const at::Tensor& stds, int64_t dim) {
    return stds.amax(dim, true).div(stds.amin(dim, true).clamp_min(kVarianceLeastDivisor));
  };
  return spread(ColumnStds(divided), kColumnDim).add_(spread(RowStds(divided), kRowDim));
}

// Returns the logarithms after one step.
at::Tensor Step(const at::Tensor& logs, const at::Tensor& stds) {
  return RoundedLog(stds.clamp(kVarianceStdFloor, kVarianceStdCeiling))
      .add_(logs)
      .clamp_(kVarianceLogFloor, kVarianceLogCeiling);
}

}  // namespace

VarianceFactorTensors NormalizeVariance(const at::Tensor& tiles, int iterations) {
  at::Tensor a = at::zeros_like(tiles.narrow(kRowDim, 0, 1)),
             b = at::zeros_like(tiles.narrow(kColumnDim, 0, 1));
  VarianceFactorTensors best = {at::ones_like(a), at::ones_like(b), Imbalance(tiles)};
  at::Tensor columns = best.columns, rows = best.rows, divided = tiles;
  for (int i = 0; i < iterations; ++i) {
    a = Step(a, ColumnStds(divided));
    columns = RoundedExp(a);
    divided = tiles.div(columns).div_(rows);
    b = Step(b, RowStds(divided));
    rows = RoundedExp(b);
    divided = tiles.div(columns).div_(rows);
    const at::Tensor imbalance = Imbalance(divided);
    const at::Tensor better = imbalance.le(best.imbalance);
    best = {at::where(better, columns, best.columns), at::where(better, rows, best.rows),
            at::where(better, imbalance, best.imbalance)};
  }
  return best;
}

KvarnTileTensors EncodeKvarnTiles(const at::Tensor& tiles, int bits, int iterations,
                                  StoredFloat metadata) {
  const VarianceFactorTensors factors = NormalizeVariance(tiles, iterations);
  const AffineFamilyCodes rows =
      EncodeAffineFamily(tiles.div(factors.columns).div_(factors.rows), KvarnRowRule(bits));
  return {rows.codes, RoundTo(factors.rows.mul(rows.scales), metadata),
          RoundTo(factors.rows.mul(rows.offsets), metadata), RoundTo(factors.columns, metadata)};
}

at::Tensor DecodeKvarnTiles(const KvarnTileTensors& encoded) {
  return encoded.codes.mul(encoded.scales).add_(encoded.zeros).mul_(encoded.columns);
}

}  // namespace oscar
