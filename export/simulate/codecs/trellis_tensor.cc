// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/codecs/trellis_tensor.h"

#include <ATen/ATen.h>

#include <cmath>
#include <vector>

#include "export/simulate/codecs/affine_family_tensor.h"  // RoundTo, TreeSum
#include "export/simulate/codecs/turboquant_tensor.h"     // RowNorms

namespace oscar {
namespace {

constexpr int64_t kRowsAtOnce = 512;  // limits the memory of paths

// Returns the levels on the path that minimizes the squared error of rows [rows, dim]. A step
// shifts two new bits into the state. So a state has four predecessors, which differ in their first
// two bits and end with the state's bits except its last two.
at::Tensor BestPath(const at::Tensor& rows, const at::Tensor& levels) {
  const int64_t count = rows.size(0), dim = rows.size(1), tails = levels.size(0) / 4;
  const auto error = [&](int64_t i) { return rows.narrow(1, i, 1).sub(levels).square_(); };
  std::vector<at::Tensor> heads;  // [rows, tails]: first two bits of the best predecessor
  at::Tensor cost = error(0);
  for (int64_t i = 1; i < dim; ++i) {
    const auto [least, head] = cost.view({count, 4, tails}).min(1);
    heads.push_back(head.to(at::kByte));
    cost = error(i).view({count, tails, 4}).add_(least.unsqueeze(2)).view({count, -1});
  }
  std::vector<at::Tensor> states(static_cast<size_t>(dim), cost.argmin(1, true));  // [rows, 1]
  for (size_t i = heads.size(); i > 0; --i) {
    const at::Tensor tail = states[i].bitwise_right_shift(2);
    states[i - 1] = heads[i - 1].gather(1, tail).to(at::kLong).mul_(tails).add_(tail);
  }
  return levels.take(at::cat(states, 1));
}

}  // namespace

at::Tensor TrellisRoundTrip(const at::Tensor& rows, int state_bits) {
  const at::Tensor flat = rows.reshape({-1, rows.size(-1)});
  const at::Tensor levels = at::tensor(TrellisLevels(state_bits), rows.options());
  const at::Tensor deviation = RowNorms(flat).div_(std::sqrt(static_cast<double>(flat.size(1))));
  const at::Tensor unit = flat.div(deviation).masked_fill_(deviation.eq(0), 0);
  std::vector<at::Tensor> paths;
  for (const at::Tensor& part : unit.split(kRowsAtOnce)) paths.push_back(BestPath(part, levels));
  const at::Tensor path = at::cat(paths);
  const at::Tensor fit = TreeSum(unit.mul(unit), -1).div_(TreeSum(path.mul(path), -1)).sqrt_();
  return path.mul(RoundTo(fit.mul_(deviation), StoredFloat::kFloat16)).view(rows.sizes());
}

}  // namespace oscar
