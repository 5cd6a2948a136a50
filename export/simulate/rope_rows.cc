// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/rope_rows.h"

#include <ATen/ATen.h>

#include <vector>

#include "capture/model/run/decoder_layer.h"  // PairsOf
#include "linalg/base/check.h"

namespace oscar {
namespace {

// `direction`: 1 applies rope, -1 undoes it. `rows` must be a whole sequence, because a rope's
// frequencies may depend on its length.
at::Tensor Turn(const at::Tensor& rows, const RopeSpec& rope, int direction) {
  OSCAR_CHECK_LE(rope.rotary_dim, rows.size(2));
  const std::vector<double> frequencies = InverseFrequencies(rope, rows.size(0));
  if (frequencies.empty()) return rows;
  const auto float32 = rows.options().dtype(at::kFloat);
  const at::Tensor angles =
      at::arange(rope.first_position, rope.first_position + rows.size(0), float32)
          .unsqueeze(1)
          .mul(at::tensor(frequencies, at::kDouble).to(float32))
          .to(rows.scalar_type())
          .unsqueeze(1);  // [tokens, 1, pairs]
  at::Tensor cos = angles.cos(), sin = direction > 0 ? angles.sin() : angles.sin().neg();
  if (rope.attention_factor != 1) {
    const double factor = direction > 0 ? rope.attention_factor : 1 / rope.attention_factor;
    cos.mul_(factor);
    sin.mul_(factor);
  }
  const PairViews from = PairsOf(rows, rope);
  at::Tensor turned = rows.clone();
  const PairViews to = PairsOf(turned, rope);
  to.first.copy_(from.first.mul(cos).sub_(from.second.mul(sin)));
  to.second.copy_(from.second.mul(cos).add_(from.first.mul(sin)));
  return turned;
}

}  // namespace

at::Tensor UndoRope(const at::Tensor& rows, const RopeSpec& rope) { return Turn(rows, rope, -1); }

at::Tensor ApplyRope(const at::Tensor& rows, const RopeSpec& rope) { return Turn(rows, rope, 1); }

}  // namespace oscar
