// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "linalg/lloyd_max.h"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "linalg/base/check.h"
#include "linalg/matrix.h"

namespace oscar {
namespace {

// Probability mass and first moment of an interval.
struct Mass {
  double probability = 0, moment = 0;
};
using MassOf = std::function<Mass(double a, double b)>;

double NormalDensity(double t) {
  return std::exp(-t * t / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

double SpherePower(double t, double dim, double exponent) {
  return std::pow(std::max(0.0, 1 - t * t / dim), exponent);
}

// Probability density, up to a constant factor.
double SphereDensity(double t, double dim) { return SpherePower(t, dim, (dim - 3) / 2); }

// The moment has a closed form. The probability is integrated with Simpson's rule, without the
// parts beyond 12 sigma.
Mass SphereMass(double a, double b, double dim) {
  a = std::clamp(a, -12.0, 12.0);
  b = std::clamp(b, -12.0, 12.0);
  const auto primitive = [dim](double t) {
    return -dim / (dim - 1) * SpherePower(t, dim, (dim - 1) / 2);
  };
  constexpr int kIntervals = 200;
  const double step = (b - a) / kIntervals;
  double sum = SphereDensity(a, dim) + SphereDensity(b, dim);
  for (int i = 1; i < kIntervals; ++i)
    sum += (i % 2 == 1 ? 4 : 2) * SphereDensity(a + i * step, dim);
  return {sum * step / 3, primitive(b) - primitive(a)};
}

std::vector<double> Midpoints(const std::vector<double>& levels) {
  std::vector<double> midpoints;
  for (size_t i = 1; i < levels.size(); ++i) midpoints.push_back((levels[i - 1] + levels[i]) / 2);
  return midpoints;
}

std::vector<double> EqualCells(int bits, double end) {
  std::vector<double> levels(size_t{1} << bits);
  const auto count = static_cast<double>(levels.size());
  for (size_t i = 0; i < levels.size(); ++i)
    levels[i] = end * (2 * (static_cast<double>(i) + 0.5) / count - 1);
  return levels;
}

// Edges of the cells: -end, the thresholds, end.
std::vector<double> Edges(const std::vector<double>& thresholds, double end) {
  std::vector<double> edges = {-end};
  edges.insert(edges.end(), thresholds.begin(), thresholds.end());
  edges.push_back(end);
  return edges;
}

std::vector<double> CellMeans(const std::vector<double>& levels, double end, const MassOf& mass) {
  const std::vector<double> edges = Edges(Midpoints(levels), end);
  std::vector<double> means(levels.size());
  for (size_t i = 0; i < means.size(); ++i) {
    const Mass cell = mass(edges[i], edges[i + 1]);
    means[i] = cell.moment / cell.probability;
  }
  return means;
}

double LargestChange(const std::vector<double>& a, const std::vector<double>& b) {
  double change = 0;
  for (size_t i = 0; i < a.size(); ++i) change = std::max(change, std::abs(a[i] - b[i]));
  return change;
}

// Returns the Jacobian of (means - levels). It is tridiagonal, because an edge is half the sum of
// its two levels, and d mean / d edge = density(edge) |edge - mean| / probability.
Matrix Jacobian(const std::vector<double>& levels, const std::vector<double>& means, double dim) {
  const auto count = static_cast<int64_t>(levels.size());
  const std::vector<double> edges = Edges(Midpoints(levels), std::sqrt(dim));
  Matrix jacobian = -Matrix::Identity(count, count);
  for (int64_t i = 0; i < count; ++i) {
    const auto cell = static_cast<size_t>(i);
    const double probability = SphereMass(edges[cell], edges[cell + 1], dim).probability;
    for (const int64_t side : {0, 1}) {  // the lower edge, then the upper edge
      const int64_t neighbour = i + 2 * side - 1;
      if (neighbour < 0 || neighbour >= count) continue;
      const double edge = edges[cell + static_cast<size_t>(side)];
      const double slope =
          SphereDensity(edge, dim) * std::abs(edge - means[cell]) / probability / 2;
      jacobian(i, i) += slope;
      jacobian(i, neighbour) += slope;
    }
  }
  return jacobian;
}

}  // namespace

// At 4 bits, a step of Lloyd's iteration only shrinks the error by a factor of 0.97. So a few of
// these steps are followed by Newton's iteration.
LevelTable SphereLloydMax(int bits, int64_t dim) {
  OSCAR_CHECK(bits >= 1 && bits <= 8 && dim >= 4);
  constexpr int kLloydSteps = 20, kSteps = 50;
  const auto d = static_cast<double>(dim);
  const auto mass = [d](double a, double b) { return SphereMass(a, b, d); };
  std::vector<double> levels = EqualCells(bits, 3);
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> means = CellMeans(levels, std::sqrt(d), mass);
    if (step >= kLloydSteps) {
      const auto as_vector = [](const std::vector<double>& values) {
        return Eigen::Map<const Vector>(values.data(), static_cast<int64_t>(values.size()));
      };
      const Vector newton =
          as_vector(levels) - Jacobian(levels, means, d)
                                  .partialPivLu()
                                  .solve(Vector(as_vector(means) - as_vector(levels)));
      means.assign(newton.data(), newton.data() + newton.size());
    }
    for (size_t i = 0; 2 * i < means.size(); ++i) {  // makes the levels symmetric to the last bit
      const double mean = (means[means.size() - 1 - i] - means[i]) / 2;
      means[i] = -mean;
      means[means.size() - 1 - i] = mean;
    }
    const double change = LargestChange(levels, means);
    levels = std::move(means);
    if (change < 1e-14) break;
  }
  return {levels, Midpoints(levels)};
}

LevelTable TrapezoidLloydMax(int bits, int64_t dim) {
  OSCAR_CHECK(bits >= 1 && bits <= 8 && dim > 0);
  const double sigma = 1 / std::sqrt(static_cast<double>(dim));
  const auto mass = [sigma](double a, double b) {
    constexpr int kIntervals = 200;
    const double step = (b - a) / kIntervals;
    Mass sum;
    for (int i = 0; i <= kIntervals; ++i) {
      const double x = a + i * step;
      const double weight =
          (i == 0 || i == kIntervals ? 0.5 : 1) * NormalDensity(x / sigma) / sigma;
      sum.probability += weight * step;
      sum.moment += weight * x * step;
    }
    return sum;
  };
  std::vector<double> levels = EqualCells(bits, 3.5 * sigma);
  for (int step = 0; step < 200; ++step) {
    std::vector<double> means = CellMeans(levels, 10.5 * sigma, mass);
    const double change = LargestChange(levels, means);
    levels = std::move(means);
    if (change < 1e-10) break;
  }
  for (double& level : levels) level /= sigma;
  return {levels, Midpoints(levels)};
}

}  // namespace oscar
