// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/search/clip_search.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "calib/cache/affine_tensor.h"
#include "calib/cache/side_tensors.h"
#include "linalg/base/check.h"

namespace oscar {

namespace {

// Returns [num_rotations, dim, dim] float64 on the device of `like`.
at::Tensor Rotations(const SideResult& side, const at::Tensor& like) {
  const at::Tensor host = at::empty({side.num_rotations, side.dim, side.dim}, at::kDouble);
  OSCAR_CHECK_EQ(host.numel(), static_cast<int64_t>(side.rotation.size()));
  std::copy(side.rotation.begin(), side.rotation.end(), host.mutable_data_ptr<double>());
  return host.to(like.device());
}

// Returns Rᵀ C R per KV head: [num_kv_heads, dim, dim] float64 on the device of `like`.
at::Tensor RotatedImportance(const std::vector<Matrix>& importance, const SideResult& side,
                             const at::Tensor& like) {
  const int64_t num_kv_heads = static_cast<int64_t>(importance.size()), dim = side.dim;
  const at::Tensor host = at::empty({num_kv_heads, dim, dim}, at::kDouble);
  double* to = host.mutable_data_ptr<double>();
  for (const Matrix& c : importance)  // symmetric: column-major and row-major agree
    to = std::copy_n(c.data(), c.size(), to);
  const at::Tensor r = Rotations(side, like).expand({num_kv_heads, dim, dim});
  return r.transpose(1, 2).bmm(host.to(like.device())).bmm(r);
}

// Returns element `index` (from 0) of each row of x [rows, n] in ascending order.  -> [rows]
at::Tensor OrderStatistic(const at::Tensor& x, int64_t index) {
  if (x.is_cpu()) return std::get<0>(x.kthvalue(index + 1, 1));
  // On a GPU, kthvalue processes a row with one thread block, topk with as many as are free.
  const int64_t n = x.size(1);
  if (index < n / 2) return std::get<0>(x.topk(index + 1, 1, /*largest=*/false, false)).amax(1);
  return std::get<0>(x.topk(n - index, 1, /*largest=*/true, false)).amin(1);
}

// Sums x [n, m] in pieces whose size does not depend on the number of threads.  -> [n]
at::Tensor SumInFixedOrder(at::Tensor x) {
  constexpr int64_t kPiece = 1024;
  while (x.size(1) > kPiece) {
    x = at::constant_pad_nd(x, {0, (kPiece - x.size(1) % kPiece) % kPiece});
    x = x.unflatten(1, {-1, kPiece}).sum(2);
  }
  return x.sum(1);
}

}  // namespace

at::Tensor RotateRows(const at::Tensor& rows, const at::Tensor& rotation) {
  const at::Tensor heads =
      rows.permute({1, 0, 2}).to(at::kFloat).contiguous();  // [num_kv_heads, tokens, dim]
  return at::matmul(heads, rotation);
}

int64_t CandidatesAtOnce(int64_t values, at::DeviceType device) {
  constexpr int64_t kValues = int64_t{16} << 20;  // fills a GPU; fewer values suit a CPU's cache
  return device == at::kCPU ? 1 : std::max<int64_t>(1, kValues / std::max<int64_t>(1, values));
}

void SearchClip(const at::Tensor& rows, const std::vector<Matrix>& importance,
                const std::vector<double>& candidates, int64_t quant_group_size, SideResult& side) {
  OSCAR_CHECK_EQ(rows.size(1), static_cast<int64_t>(importance.size()));
  const at::Tensor rotated_importance = RotatedImportance(importance, side, rows);
  const auto energy = [&](const at::Tensor& x) {  // [n, num_kv_heads, tokens, dim] -> [n]
    const at::Tensor x64 = x.to(at::kDouble);
    return SumInFixedOrder(x64.matmul(rotated_importance).mul_(x64).flatten(1));
  };

  const at::Tensor y = RotateRows(rows, RotationTensor(side, rows.device())).unsqueeze(0);
  const at::Tensor sorted = SortedMagnitudes(y);
  std::vector<at::Tensor> errors, thresholds;
  const auto step = static_cast<size_t>(CandidatesAtOnce(y.numel(), y.device().type()));
  for (size_t i = 0; i < candidates.size(); ++i) {
    const at::Tensor threshold = ClipThresholds(sorted, candidates[i]);
    thresholds.push_back(threshold.defined() ? threshold
                                             : at::full_like(sorted.narrow(-1, 0, 1), INFINITY));
    if (thresholds.size() < step && i + 1 < candidates.size()) continue;
    const at::Tensor several = y.expand({std::ssize(thresholds), -1, -1, -1});
    errors.push_back(
        energy(AffineRoundTrip(several, at::cat(thresholds), {2, quant_group_size}).sub_(several)));
    thresholds.clear();
  }
  const at::Tensor curve = at::cat(errors).div_(energy(y)).cpu();
  side.clip_error.assign(curve.const_data_ptr<double>(),
                         curve.const_data_ptr<double>() + curve.numel());
  size_t best = 0;
  for (size_t i = 1; i < candidates.size(); ++i) {
    if (side.clip_error[i] <= side.clip_error[best]) best = i;
  }
  side.clip_ratio = candidates[best];
}

void StaticThresholds(const std::vector<at::Tensor>& rows, SideResult& side) {
  const at::Tensor rotation = RotationTensor(side, rows.at(0).device());
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
  const at::Tensor thresholds = OrderStatistic(magnitudes.flatten(1), index).to(at::kDouble).cpu();
  side.clip_threshold.assign(thresholds.const_data_ptr<double>(),
                             thresholds.const_data_ptr<double>() + thresholds.numel());
}

}  // namespace oscar
