// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Divisors are tensors, because a GPU would multiply by the reciprocal of a scalar divisor.
#include "export/simulate/codecs/float4_tensor.h"

#include <ATen/ATen.h>

#include "export/simulate/codecs/float8_tensor.h"

namespace oscar {
namespace {

// Neighbouring levels differ by .5 below 2, by 1 below 4 and by 2 above.
at::Tensor RoundToE2M1(const at::Tensor& x) {
  const at::Tensor y = x.clamp(-kE2M1Max, kE2M1Max), size = y.abs();
  const at::Tensor step = size.ge(2).to(y.scalar_type()).add_(size.ge(4)).exp2_().mul_(0.5);
  return y.div(step).round_().mul_(step);
}

}  // namespace

at::Tensor Nvfp4RoundTrip(const at::Tensor& rows, float scale) {
  const auto number = [&](float x) { return at::full({}, x, rows.options()); };
  const at::Tensor runs = rows.unflatten(-1, {-1, kNvfp4Values});
  const at::Tensor scales = Float8RoundTrip(runs.abs().amax(-1, true).div(number(kE2M1Max)),
                                            number(scale), Float8Type::kE4M3);
  return RoundToE2M1(runs.div(scales)).mul_(scales).masked_fill_(scales.eq(0), 0).flatten(-2);
}

}  // namespace oscar
