// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/fit/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "linalg/base/parallel_for.h"
#include "linalg/eigh.h"
#include "linalg/rotation.h"

namespace oscar {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

void AppendRotation(const Rotation& rotation, SideResult& side) {
  const RowMajor r = rotation.matrix();
  side.rotation.insert(side.rotation.end(), r.data(), r.data() + r.size());
  side.orthogonality = std::max(side.orthogonality, rotation.orthogonality());
  side.float32_orthogonality =
      std::max(side.float32_orthogonality, rotation.float32_orthogonality());
  side.num_rotations += 1;
}

// A covariance that needs a rotation, and its name in errors.
struct Problem {
  Matrix covariance;  // [dim, dim]
  std::string name;
};

struct Solution {
  Eigenbasis basis;
  Rotation rotation;
  double importance_max_over_mean;
};

Solution Solve(const Problem& problem, Composition composition) {
  Eigenbasis basis = SymmetricEigenbasis(problem.covariance, problem.name);
  Rotation rotation = Compose(basis, composition);
  const double importance = ImportanceMaxOverMean(rotation.matrix(), problem.covariance);
  return {std::move(basis), std::move(rotation), importance};
}

SideResult Gather(std::span<const std::optional<Solution>> solutions) {
  SideResult side;
  side.dim = solutions.front()->rotation.matrix().rows();
  side.min_relative_gap = solutions.front()->basis.min_relative_gap;
  for (const std::optional<Solution>& solution : solutions) {
    const Eigenbasis& basis = solution->basis;
    AppendRotation(solution->rotation, side);
    side.eigenvalues.insert(side.eigenvalues.end(), basis.eigenvalues.data(),
                            basis.eigenvalues.data() + basis.eigenvalues.size());
    side.eigen_residual = std::max(side.eigen_residual, basis.residual);
    side.min_relative_gap = std::min(side.min_relative_gap, basis.min_relative_gap);
    side.importance_max_over_mean =
        std::max(side.importance_max_over_mean, solution->importance_max_over_mean);
  }
  return side;
}

SideResult DataFree(const Rotation& rotation) {
  SideResult side;
  side.dim = rotation.matrix().rows();
  AppendRotation(rotation, side);
  return side;
}

}  // namespace

Matrix JointCovariance(const Matrix& query, const Matrix& value) {
  return query / query.trace() + value / value.trace();
}

LayerMoments JointMoments(LayerMoments moments, ValueTarget target) {
  std::vector<Matrix> joint;
  for (int64_t head = 0; head < moments.num_kv_heads; ++head) {
    joint.push_back(
        JointCovariance(moments.QueryCovariance(head), moments.ValueCovariance(head, target)));
  }
  const auto set = [&](std::vector<double>& sums, auto count) {
    if (sums.empty()) return;
    double* to = sums.data();
    for (size_t head = 0; head < joint.size(); ++head) {
      const Matrix sum = joint[head] * count(head);  // symmetric
      to = std::copy_n(sum.data(), sum.size(), to);
    }
  };
  const auto rows = static_cast<double>(moments.queries() * moments.gqa_ratio());
  set(moments.query, [&](size_t) { return rows; });
  set(moments.attention_output, [&](size_t) { return rows; });
  set(moments.diagonal, [&](size_t head) { return moments.diagonal_weight[head]; });
  moments.fold = {};
  return moments;
}

LayerFit FitLayer(const LayerMoments& moments, const FitOptions& options) {
  // Fits keys and values, per head and shared, on all cores. The result is the same, byte for byte,
  // as if they were fitted one after another.
  const auto heads = static_cast<size_t>(moments.num_kv_heads);
  std::vector<Matrix> query, value;
  for (int64_t head = 0; head < moments.num_kv_heads; ++head) {
    query.push_back(moments.QueryCovariance(head));
    value.push_back(moments.ValueCovariance(head, options.value_target));
  }
  if (moments.latent) {
    for (size_t head = 0; head < heads; ++head)
      query[head] = value[head] = JointCovariance(query[head], value[head]);
  }
  const std::string keys = fmt::format("layer {}, key rotation", moments.layer_id);
  const std::string values = fmt::format("layer {}, value rotation", moments.layer_id);
  Problem shared_keys{MeanOverHeads(query), keys + " (shared)"};
  Problem shared_values{MeanOverHeads(value), values + " (shared)"};
  const auto name = [&](const std::string& what, size_t head) {
    return heads == 1 ? what : fmt::format("{}, KV head {}", what, head);
  };
  std::vector<Problem> problems;
  for (size_t i = 0; i < heads; ++i) problems.push_back({std::move(query[i]), name(keys, i)});
  for (size_t i = 0; i < heads; ++i) problems.push_back({std::move(value[i]), name(values, i)});
  problems.push_back(std::move(shared_keys));
  problems.push_back(std::move(shared_values));

  std::vector<std::optional<Solution>> solutions(problems.size());
  ParallelFor(std::ssize(problems), [&](int64_t index) {
    const auto i = static_cast<size_t>(index);
    solutions[i] = Solve(problems[i], options.composition);
  });
  const std::span<const std::optional<Solution>> all = solutions;
  LayerFit fit;
  fit.k = Gather(all.subspan(0, heads));
  fit.v = Gather(all.subspan(heads, heads));
  fit.k_shared = Gather(all.subspan(2 * heads, 1));
  fit.v_shared = Gather(all.subspan(2 * heads + 1, 1));
  return fit;
}

SideResult IdentitySide(int64_t dim) { return DataFree(IdentityRotation(dim)); }
SideResult HadamardSide(int64_t dim) { return DataFree(HadamardRotation(dim)); }

}  // namespace oscar
