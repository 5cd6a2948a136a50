// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares refinement on a GPU with refinement on the CPU. Codes on a rounding boundary differ
// between devices, and Adam's first steps depend only on the gradient's sign, so rotations differ
// and only losses are compared.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "calib/search/rotation_refinement.h"
#include "capture/model/run/device.h"

namespace oscar {
namespace {

RefinementProblem Problem(at::Device device) {
  constexpr int64_t kHeads = 2, kDim = 64, kTokens = 200;
  RefinementProblem problem;
  problem.attention.num_q_heads = 2 * kHeads;
  problem.attention.num_kv_heads = kHeads;
  problem.attention.head_dim = problem.attention.v_head_dim = kDim;
  problem.attention.scale = 1 / std::sqrt(double{kDim});
  at::manual_seed(7);
  const auto draw = [](std::initializer_list<int64_t> shape) {
    return at::randn(shape, at::kFloat);
  };
  const at::Tensor scale = at::exp(draw({kHeads, kDim}));
  problem.key_mean = draw({kHeads, kDim});
  problem.output_projection = draw({100, 2 * kHeads * kDim});
  std::vector<RefinementSequence> sequences;
  for (int i = 0; i < 4; ++i) {
    const at::Tensor q = draw({kTokens, 2 * kHeads, kDim}), k = draw({kTokens, kHeads, kDim}),
                     v = draw({kTokens, kHeads, kDim});
    sequences.push_back(
        {q.to(device), k.mul(scale).add(problem.key_mean).to(device), v.mul(scale).to(device)});
  }
  problem.rows = SplitRows(std::move(sequences));
  return problem;
}

TEST(GpuRefinement, IsThatOfTheCpu) {
  if (NumGpus() == 0) GTEST_SKIP() << "no CUDA device";
  RefinementOptions options;
  options.steps = 40;
  options.windows = {4, 32};
  const HeadTransforms start = {at::eye(64, at::kFloat).unsqueeze(0), {}};
  const auto refine = [&](at::Device device, std::vector<RefinedSide>& sides) {
    const RefinementProblem problem = Problem(device);
    sides.push_back(RefineKeys(problem, start, options));
    sides.push_back(RefineValues(problem, start, sides[0].transforms, options));
  };
  std::vector<RefinedSide> host, device;
  refine(at::kCPU, host);
  refine(at::Device(at::kCUDA, 0), device);
  for (size_t side = 0; side < 2; ++side) {
    EXPECT_TRUE(device[side].transforms.transform.is_cuda());
    for (size_t head = 0; head < 2; ++head) {
      if (side == 0) {
        EXPECT_NEAR(device[side].loss_before[head] / host[side].loss_before[head], 1, 1e-3);
      }
      EXPECT_LT(device[side].loss_after[head], 0.6 * device[side].loss_before[head]);
      // Each step uses few sequences, so rounding differences grow from step to step.
      EXPECT_NEAR(device[side].loss_after[head] / host[side].loss_after[head], 1, 0.5);
    }
    const at::Tensor wide = device[side].transforms.transform.to(at::kDouble);
    const at::Tensor residual =
        at::matmul(wide.transpose(1, 2), wide).sub(at::eye(64, wide.options()));
    EXPECT_LT(residual.abs().max().item<double>(), 1e-6);
  }
}

}  // namespace
}  // namespace oscar
