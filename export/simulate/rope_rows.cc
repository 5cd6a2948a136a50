// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See rope_rows.h.
#include "export/simulate/rope_rows.h"

#include <ATen/ATen.h>

#include <vector>

#include "linalg/check.h"

namespace oscar {
namespace {

// "half" layout: dimension i turns with i + rotary_dim / 2. `direction` 1: onwards, -1: back.
at::Tensor Turn(const at::Tensor& rows, const RopeSpec& rope, int direction) {
  OSCAR_CHECK_LE(rope.rotary_dim, rows.size(2));
  const std::vector<double> frequencies = InverseFrequencies(rope);
  const auto pairs = static_cast<int64_t>(frequencies.size());
  const auto float32 = rows.options().dtype(at::kFloat);
  const at::Tensor angles = at::arange(rows.size(0), float32)
                                .unsqueeze(1)
                                .mul(at::tensor(frequencies, at::kDouble).to(float32))
                                .to(rows.scalar_type())
                                .unsqueeze(1);  // [tokens, 1, pairs]
  const at::Tensor cos = angles.cos(), sin = direction > 0 ? angles.sin() : angles.sin().neg();
  const at::Tensor first = rows.narrow(2, 0, pairs), second = rows.narrow(2, pairs, pairs);
  return at::cat({first.mul(cos).sub(second.mul(sin)), second.mul(cos).add(first.mul(sin)),
                  rows.narrow(2, 2 * pairs, rows.size(2) - 2 * pairs)},
                 2);
}

}  // namespace

at::Tensor UndoRope(const at::Tensor& rows, const RopeSpec& rope) { return Turn(rows, rope, -1); }

at::Tensor ApplyRope(const at::Tensor& rows, const RopeSpec& rope) { return Turn(rows, rope, 1); }

}  // namespace oscar
