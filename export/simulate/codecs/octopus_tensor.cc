// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/simulate/codecs/octopus_tensor.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "export/simulate/codecs/turboquant_tensor.h"  // RowNorms
#include "linalg/kmeans_1d.h"

namespace oscar {
namespace {

constexpr int kPoints = 1 << 15;  // points that represent a density

at::Tensor Signs(const at::Tensor& x) { return x.ge(0).to(x.scalar_type()).mul_(2).sub_(1); }

// Maps the octahedron's lower half to the square's outer triangles, and back: points [..., 2].
at::Tensor Fold(const at::Tensor& xy) { return Signs(xy).mul_(xy.abs().neg_().add_(1).flip(-1)); }

// Folds triplets [..., 3], which must not be zero, onto the square: [..., 2].
at::Tensor OntoSquare(const at::Tensor& triplets) {
  const at::Tensor p = triplets.div(triplets.abs().sum(-1, true));
  const at::Tensor xy = p.narrow(-1, 0, 2);
  return at::where(p.narrow(-1, 2, 1).ge(0), xy, Fold(xy));
}

// Returns unit vectors [..., 3].
at::Tensor FromSquare(const at::Tensor& xy) {
  const at::Tensor z = xy.abs().sum(-1, true).neg_().add_(1);
  const at::Tensor p = at::cat({at::where(z.ge(0), xy, Fold(xy)), z}, -1);
  return p.div(p.norm(2, {-1}, true));
}

std::vector<double> LloydMaxOf(const std::vector<float>& sorted, const std::vector<float>& weights,
                               int bits) {
  const std::vector<float> levels =
      KMeans1d(sorted, weights, {.clusters = int64_t{1} << bits, .max_iterations = 500});
  return {levels.begin(), levels.end()};
}

std::vector<double> CoordinateLevels(int bits) {  // for evenly spread directions (Fibonacci)
  at::Tensor points = at::empty({kPoints, 3}, at::kDouble);
  double* p = points.mutable_data_ptr<double>();
  for (int i = 0; i < kPoints; ++i) {
    const double z = 1 - (2 * i + 1.0) / kPoints,
                 turn = 2 * std::numbers::pi * i / std::numbers::phi;
    *p++ = std::sqrt(1 - z * z) * std::cos(turn);
    *p++ = std::sqrt(1 - z * z) * std::sin(turn);
    *p++ = z;
  }
  const at::Tensor x = std::get<0>(OntoSquare(points).flatten().to(at::kFloat).sort());
  return LloydMaxOf({x.const_data_ptr<float>(), x.const_data_ptr<float>() + x.numel()}, {}, bits);
}

std::vector<double> NormLevels(int bits, int64_t dim) {
  std::vector<float> norms, density;
  for (int i = 0; i < kPoints; ++i) {
    const double r = (i + 0.5) / kPoints;
    norms.push_back(static_cast<float>(r));
    density.push_back(
        static_cast<float>(r * r * std::pow(1 - r * r, (static_cast<double>(dim) - 5) / 2)));
  }
  return LloydMaxOf(norms, density, bits);
}

at::Tensor NearestCodes(const at::Tensor& x, const std::vector<double>& levels) {
  std::vector<double> middles;
  for (size_t i = 1; i < levels.size(); ++i) middles.push_back((levels[i - 1] + levels[i]) / 2);
  return at::bucketize(x, at::tensor(middles, x.options()));
}

}  // namespace

OctopusTable OctopusLevels(int bits, int64_t dim) {
  return {CoordinateLevels(bits + 1), NormLevels(bits - 1, dim)};
}

at::Tensor OctopusRoundTrip(const at::Tensor& rows, const OctopusTable& table, bool search) {
  const int64_t dim = rows.size(-1);
  const at::Tensor norm = RowNorms(rows);
  const at::Tensor unit = rows.div(norm).masked_fill_(norm.eq(0), 0);
  const at::Tensor triplets =
      at::constant_pad_nd(unit, {0, (3 - dim % 3) % 3}).unflatten(-1, {-1, 3});
  const at::Tensor coordinates = at::tensor(table.coordinates, rows.options());
  const at::Tensor nearest = NearestCodes(OntoSquare(triplets), table.coordinates);
  at::Tensor direction, along;
  const std::vector<int> steps = search ? std::vector{0, -1, 1} : std::vector{0};
  for (const int x : steps) {
    for (const int y : steps) {
      const at::Tensor codes =
          nearest.add(at::tensor({x, y}, nearest.options())).clamp_(0, coordinates.size(0) - 1);
      const at::Tensor n = FromSquare(coordinates.take(codes)), s = n.mul(triplets).sum(-1, true);
      const at::Tensor better = direction.defined() ? s.gt(along) : at::ones_like(s, at::kBool);
      direction = direction.defined() ? at::where(better, n, direction) : n;
      along = along.defined() ? at::where(better, s, along) : s;
    }
  }
  const at::Tensor lengths =
      at::tensor(table.norms, rows.options()).take(NearestCodes(along, table.norms));
  return direction.mul(lengths).flatten(-2).narrow(-1, 0, dim).mul(norm);
}

}  // namespace oscar
