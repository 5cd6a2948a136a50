// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every operation rounds separately, as in the scalar code. Fusing or reordering changes codes.
#include "export/simulate/codecs/turboquant_tensor.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "export/simulate/codecs/affine_family_tensor.h"  // RoundedSqrt, RoundTo, TreeSum

namespace oscar {
namespace {

at::Tensor OfUnitVectors(std::vector<double> values, const at::Tensor& rows) {
  const double root = std::sqrt(static_cast<double>(rows.size(-1)));
  for (double& value : values) value /= root;
  return at::tensor(values, rows.options());
}

struct Direction {
  at::Tensor norm;   // [..., 1], not rounded
  at::Tensor unit;   // [..., dim]
  at::Tensor level;  // nearest levels of `unit`
};

Direction EncodeDirection(const at::Tensor& rows, const SphereRule& rule) {
  const at::Tensor norm = RowNorms(rows);
  const at::Tensor unit = rows.div(norm).masked_fill_(norm.eq(0), 0);
  const at::Tensor levels = OfUnitVectors(rule.table.levels, rows);
  if (rule.table.thresholds.empty()) return {norm, unit, levels.expand(rows.sizes())};
  const at::Tensor codes =
      at::bucketize(unit, OfUnitVectors(rule.table.thresholds, rows), false, true);
  return {norm, unit, levels.take(codes)};
}

}  // namespace

at::Tensor RowNorms(const at::Tensor& rows) {
  const at::Tensor largest = rows.abs().amax(-1, true);
  const at::Tensor scaled = rows.div(largest.masked_fill(largest.eq(0), 1));
  return RoundedSqrt(TreeSum(scaled.mul(scaled), -1)).mul_(largest);
}

at::Tensor SphereRoundTrip(const at::Tensor& rows, const SphereRule& rule) {
  const Direction direction = EncodeDirection(rows, rule);
  at::Tensor values = direction.level;
  if (rule.norm_correction) {
    const at::Tensor sum = TreeSum(values.mul(values), -1).add_(kNormCorrectionFloor);
    values = values.mul(at::ones_like(sum).div_(RoundedSqrt(sum)));
  }
  return values.mul(RoundTo(direction.norm, rule.norm_type));
}

at::Tensor ProductRoundTrip(const at::Tensor& rows, const SphereRule& rule, const at::Tensor& s) {
  const Direction direction = EncodeDirection(rows, rule);
  const at::Tensor residual = direction.unit.sub(direction.level);
  const at::Tensor signs = at::matmul(residual, s.t()).ge(0).to(rows.scalar_type()).mul_(2).sub_(1);
  const double root = std::sqrt(std::numbers::pi / 2) / static_cast<double>(rows.size(-1));
  const at::Tensor factor = RoundTo(RowNorms(residual), rule.norm_type).mul(root);
  return at::matmul(signs, s)
      .mul_(factor)
      .add_(direction.level)
      .mul_(RoundTo(direction.norm, rule.norm_type));
}

}  // namespace oscar
