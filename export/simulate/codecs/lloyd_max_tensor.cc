// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Every operation rounds separately, as in the scalar code. Fusing or reordering changes codes.
// Divisors are tensors, because a GPU would multiply by the reciprocal of a scalar divisor.
#include "export/simulate/codecs/lloyd_max_tensor.h"

#include <ATen/ATen.h>

#include "export/simulate/codecs/affine_family_tensor.h"  // DividedBy, RoundedSqrt, RoundTo, TreeSum
#include "linalg/base/check.h"

namespace oscar {
namespace {

// Returns the standard deviation of groups [..., values] whose mean was subtracted.
at::Tensor Deviation(const at::Tensor& centred, LloydMaxForm form) {
  const int64_t count = centred.size(-1);
  const at::Tensor sum = TreeSum(centred.mul(centred), -1);
  switch (form) {
    case LloydMaxForm::kExact:
      return RoundedSqrt(DividedBy(sum, count - 1)).clamp_min_(kMinDeviation);
    case LloydMaxForm::kServing:
      return RoundedSqrt(DividedBy(sum, count).add_(kServingVariance));
    case LloydMaxForm::kLlamaCpp:
      return RoundedSqrt(DividedBy(sum, count));
  }
  OSCAR_CHECK(!"a LloydMaxForm without a deviation");
  return {};
}

}  // namespace

at::Tensor LloydMaxRoundTrip(const at::Tensor& rows, LloydMaxForm form, StoredFloat metadata) {
  const LloydMaxGroups groups = LloydMaxGroupsOf(form, rows.size(-1));
  const LloydMaxTable& table = LloydMaxTableOf(form);
  const at::Tensor by_mean = rows.unflatten(-1, {-1, groups.mean});
  const at::Tensor mean = DividedBy(TreeSum(by_mean, -1), groups.mean);
  const auto by_scale = [&](const at::Tensor& x) {  // [..., means, scales, values]
    return x.unflatten(-1, {-1, groups.scale});
  };
  const at::Tensor centred = by_scale(by_mean.sub(mean));
  const at::Tensor sigma = Deviation(centred, form);
  const at::Tensor z = centred.div(sigma).masked_fill_(sigma.eq(0), 0);
  const at::Tensor thresholds =
      at::tensor(at::ArrayRef<double>(table.thresholds.data(), 3), rows.options());
  const at::Tensor codes = at::bucketize(z, thresholds, false, table.inclusive);
  at::Tensor values;
  if (form == LloydMaxForm::kServing) {
    const at::Tensor scale = sigma.mul(kServingScale);
    const at::Tensor zero = mean.unsqueeze(-1).div(scale).neg_().add_(1.5);
    values =
        codes.to(rows.scalar_type()).sub_(RoundTo(zero, metadata)).mul_(RoundTo(scale, metadata));
  } else {
    const StoredFloat stored = form == LloydMaxForm::kLlamaCpp ? StoredFloat::kFloat16 : metadata;
    const at::Tensor levels =
        at::tensor(at::ArrayRef<double>(table.levels.data(), 4), rows.options());
    values =
        levels.take(codes).mul_(RoundTo(sigma, stored)).add_(RoundTo(mean.unsqueeze(-1), stored));
  }
  return values.reshape(rows.sizes());
}

}  // namespace oscar
