// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Eigenbases of many covariances on the CPU's cores, as calibrations need them: 8B models per KV
// head, GLM-4.7 per KV head, MLA latents. Runs on the host: no graph, and no floor of the GPU's.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <random>
#include <thread>

#include "linalg/eigh.h"
#include "tools/bench/bench_table.h"

namespace oscar {
namespace {

constexpr double kOrthogonality = 1e-12;  // max|VᵀV - I|

struct Setup {
  std::vector<Matrix> covariances;
  std::vector<Eigenbasis> bases;
};

// Spectra that fall by four orders of magnitude, as those of queries do.
Matrix Covariance(int64_t dim, std::mt19937_64& generator) {
  std::normal_distribution<double> normal;
  Matrix rows(2 * dim, dim);
  for (double& value : rows.reshaped()) value = normal(generator);
  for (int64_t i = 0; i < dim; ++i)
    rows.col(i) *= std::pow(10, -2.0 * static_cast<double>(i) / static_cast<double>(dim));
  Matrix mixed = rows;
  for (int64_t i = 0; i + 1 < dim; ++i) mixed.col(i) += 0.5 * rows.col(i + 1);
  return mixed.transpose() * mixed / static_cast<double>(2 * dim);
}

BenchCase Make(int count, int64_t dim, double bar_us) {
  auto setup = std::make_shared<Setup>();
  std::mt19937_64 generator(1);
  for (int i = 0; i < count; ++i) setup->covariances.push_back(Covariance(dim, generator));
  BenchCase bench;
  bench.bar_us = bar_us;
  bench.buffers = 1;
  bench.graph = false;
  bench.launch = [setup](cudaStream_t, int) {
    setup->bases = SymmetricEigenbases(setup->covariances, {"benchmark"});
  };
  bench.check = [setup] {
    double residual = 0, orthogonality = 0;
    for (const Eigenbasis& basis : setup->bases) {
      residual = std::max(residual, basis.residual);  // at most 1e-12 sqrt(n), or it had thrown
      const Matrix& v = basis.eigenvectors;
      const Matrix error = v.transpose() * v - Matrix::Identity(v.rows(), v.cols());
      orthogonality = std::max(orthogonality, error.cwiseAbs().maxCoeff());
    }
    return BenchCheck{orthogonality <= kOrthogonality,
                      fmt::format("|AV - VL|/|A| {:.1e}, max|VᵀV - I| {:.1e}; {} threads", residual,
                                  orthogonality, std::thread::hardware_concurrency())};
  };
  return bench;
}

}  // namespace

std::vector<BenchEntry> EighBench() {
  std::vector<BenchEntry> entries;
  const auto add = [&](int count, int64_t dim, double bar_us) {
    entries.push_back({"eigh", fmt::format("{} of {}x{}, LAPACK on the host", count, dim, dim),
                       [=] { return Make(count, dim, bar_us); }});
  };
  add(576, 128, 0.5e6);
  add(1472, 128, 0);
  add(79, 512, 0);
  return entries;
}

}  // namespace oscar
