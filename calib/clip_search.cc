// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See clip_search.h.
#include "calib/clip_search.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "calib/affine_tensor.h"
#include "linalg/check.h"

namespace oscar {

at::Tensor RotationTensor(const SideResult& side, const at::Tensor& like) {
  const at::Tensor host = at::empty({side.num_rotations, side.dim, side.dim}, at::kDouble);
  OSCAR_CHECK_EQ(host.numel(), static_cast<int64_t>(side.rotation.size()));
  std::copy(side.rotation.begin(), side.rotation.end(), host.mutable_data_ptr<double>());
  return host.to(at::kFloat).to(like.device());
}

at::Tensor RotateRows(const at::Tensor& rows, const at::Tensor& rotation) {
  const at::Tensor heads =
      rows.permute({1, 0, 2}).to(at::kFloat).contiguous();  // [num_kv_heads, tokens, dim]
  return at::matmul(heads, rotation);
}

void SearchClip(const at::Tensor& rows, const std::vector<Matrix>& importance,
                const std::vector<double>& candidates, int64_t quant_group_size, SideResult& side) {
  const int64_t dim = side.dim, num_kv_heads = rows.size(1);
  OSCAR_CHECK_EQ(num_kv_heads, static_cast<int64_t>(importance.size()));
  // Importance in the rotated basis, Rᵀ C R per KV head.
  at::Tensor rotated_importance = at::empty({num_kv_heads, dim, dim}, at::kDouble);
  for (int64_t head = 0; head < num_kv_heads; ++head) {
    const int64_t which = side.num_rotations == 1 ? 0 : head;
    const Eigen::Map<const Matrix> r_transposed(side.rotation.data() + which * dim * dim, dim, dim);
    const Matrix c =
        r_transposed * importance[static_cast<size_t>(head)] * r_transposed.transpose();
    std::copy_n(c.data(), c.size(),
                rotated_importance.mutable_data_ptr<double>() + head * dim * dim);
  }
  rotated_importance = rotated_importance.to(rows.device());
  const auto energy = [&](const at::Tensor& x) {
    const at::Tensor x64 = x.to(at::kDouble);
    return x64.bmm(rotated_importance).mul_(x64).sum();
  };

  const at::Tensor y = RotateRows(rows, RotationTensor(side, rows));
  const at::Tensor sorted = std::get<0>(y.abs().sort(-1));
  std::vector<at::Tensor> errors;
  for (double ratio : candidates) {
    errors.push_back(
        energy(AffineRoundTrip(y, ClipThresholds(sorted, ratio), quant_group_size).sub_(y)));
  }
  const at::Tensor curve = at::stack(errors).div_(energy(y)).cpu();
  side.clip_error.assign(curve.const_data_ptr<double>(),
                         curve.const_data_ptr<double>() + curve.numel());
  size_t best = 0;
  for (size_t i = 1; i < candidates.size(); ++i) {
    if (side.clip_error[i] <= side.clip_error[best]) best = i;
  }
  side.clip_ratio = candidates[best];
}

void StaticThresholds(const std::vector<at::Tensor>& rows, SideResult& side) {
  const at::Tensor rotation = RotationTensor(side, rows.at(0));
  const int64_t num_kv_heads = rows[0].size(1);
  int64_t tokens = 0;
  for (const at::Tensor& sequence : rows) tokens += sequence.size(0);
  at::Tensor magnitudes =
      at::empty({num_kv_heads, tokens, side.dim}, rows[0].options().dtype(at::kFloat));
  int64_t from = 0;
  for (const at::Tensor& sequence : rows) {
    magnitudes.narrow(1, from, sequence.size(0)).copy_(RotateRows(sequence, rotation).abs_());
    from += sequence.size(0);
  }
  const int64_t n = tokens * side.dim;
  const auto index =
      std::min(static_cast<int64_t>(side.clip_ratio * static_cast<double>(n)), n - 1);
  const at::Tensor thresholds =
      std::get<0>(magnitudes.view({num_kv_heads, n}).kthvalue(index + 1, 1)).to(at::kDouble).cpu();
  side.clip_threshold.assign(thresholds.const_data_ptr<double>(),
                             thresholds.const_data_ptr<double>() + thresholds.numel());
}

}  // namespace oscar
