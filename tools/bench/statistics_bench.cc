// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Streaming statistics of one layer of Qwen3-8B, 30,000 tokens: 32 query heads, 8 KV heads, d 128.
// One set of buffers per layer, 36 of them. Operations counted are those of one triangle;
// the floor of 34 ms counts both.
#include <cuda_bf16.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "export/cuda/device/device_array.h"
#include "export/cuda/reference/random_cache.h"  // FillNormal
#include "export/cuda/statistics/column_sums.h"
#include "export/cuda/statistics/diagonal_weights.h"
#include "export/cuda/statistics/gram.h"
#include "tools/bench/bench_table.h"

namespace oscar {
namespace {

constexpr int64_t kTokens = 30000;
constexpr int kLayers = 36, kQueryHeads = 32, kKvHeads = 8, kDim = 128;
constexpr double kBarUs = 100e3 / kLayers;                // C_Q and OᵀO
constexpr double kFloat64Tflops = 67, kBf16Tflops = 989;  // H200 data sheet, dense
constexpr double kFloat64Error = 1e-13;

using Bf16Array = DeviceArray<__nv_bfloat16>;
using Sums = DeviceArray<double>;
constexpr size_t kMatrices = size_t{kKvHeads} * kDim * kDim;

struct Layer {
  Bf16Array q, o, k, v;  // [kTokens, heads, kDim]
};

enum class Part { kQueriesOutputs, kAll, kDiagonal };

AttentionRows Rows(const Bf16Array& values) {
  const auto heads = static_cast<int>(static_cast<int64_t>(values.size()) / (kTokens * kDim));
  return ContiguousRows(values.data(), RowType::kBFloat16, kTokens, heads, kKvHeads, kDim);
}

struct Setup {
  Part part;
  GramOptions options;
  std::vector<Layer> layers;
  Sums query{kMatrices}, output{kMatrices}, key{kMatrices}, value{kMatrices};
  Sums key_sum{size_t{kKvHeads} * kDim}, weights{size_t{kTokens} * kKvHeads};
  Sums weight_sum{size_t{kKvHeads}}, covariance{kMatrices};
  DeviceArray<uint8_t> workspace;

  void Gram(const Bf16Array& values, const GramOptions& how, Sums& sums, cudaStream_t stream) {
    AccumulateGram(Rows(values), how, sums.data(), workspace.data(), stream);
  }
  void Launch(cudaStream_t stream, int set) {
    const Layer& layer = layers[static_cast<size_t>(set)];
    if (part == Part::kDiagonal) {
      ComputeDiagonalWeights(Rows(layer.k), covariance.data(), weights.data(), stream);
      AccumulateWeightSums(weights.data(), kTokens, kKvHeads, weight_sum.data(), stream);
      Gram(layer.v, {.weights = weights.data()}, value, stream);
      return;
    }
    Gram(layer.q, options, query, stream);
    Gram(layer.o, options, output, stream);
    if (part == Part::kQueriesOutputs) return;
    Gram(layer.k, options, key, stream);
    Gram(layer.v, options, value, stream);
    AccumulateColumnSums(Rows(layer.k), key_sum.data(), workspace.data(), stream);
  }
};

// Largest |a - b|_ij / sqrt(b_ii b_jj) over matrices [kDim, kDim].
double WorstError(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    const double* matrix = b.data() + i / (kDim * kDim) * kDim * kDim;
    const size_t row = i / kDim % kDim, column = i % kDim;
    const double error = std::abs(a[i] - b[i]) /
                         std::sqrt(matrix[row * kDim + row] * matrix[column * kDim + column]);
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

// Both triangles of one KV head in float64 on the host, a few rows of them: the rest stays as in
// `like`.
std::vector<double> HostRows(const Bf16Array& values, const std::vector<double>& weights,
                             std::vector<double> like) {
  constexpr size_t kHead = 5;
  const std::vector<__nv_bfloat16> host = values.ToHost();
  const size_t heads = host.size() / (kTokens * kDim), ratio = heads / kKvHeads;
  for (const size_t i : {size_t{0}, size_t{63}, size_t{101}}) {
    std::vector<double> sums(kDim);
    for (size_t token = 0; token < kTokens; ++token) {
      for (size_t head = kHead * ratio; head < (kHead + 1) * ratio; ++head) {
        const __nv_bfloat16* row = host.data() + (token * heads + head) * kDim;
        const double left = (weights.empty() ? 1 : weights[token * kKvHeads + kHead]) *
                            static_cast<double>(__bfloat162float(row[i]));
        for (size_t j = 0; j < kDim; ++j)
          sums[j] += left * static_cast<double>(__bfloat162float(row[j]));
      }
    }
    std::ranges::copy(sums, like.begin() + static_cast<int64_t>((kHead * kDim + i) * kDim));
  }
  return like;
}

// The error of the fast path where it is largest: sums of one sign, and few large values.
double AdversarialError(Setup& setup, bool heavy_tails) {
  std::mt19937_64 generator(1);
  std::normal_distribution<double> normal;
  std::vector<__nv_bfloat16> values(size_t{kTokens} * kKvHeads * kDim);
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = normal(generator);
    const double y = heavy_tails ? x / std::pow(std::abs(normal(generator)) + 1e-6, 1.5)
                                 : (i % 3 == 0 ? -50 : 50) + x;
    values[i] = __float2bfloat16(static_cast<float>(y));
  }
  const Bf16Array device(values);
  std::vector<double> sums[2];
  for (const GramPrecision precision : {GramPrecision::kFloat64, GramPrecision::kBFloat16Split}) {
    setup.key.Fill(0);
    setup.Gram(device, {.precision = precision}, setup.key, nullptr);
    sums[static_cast<int>(precision)] = setup.key.ToHost();
  }
  return WorstError(sums[1], sums[0]);
}

BenchCheck Check(Setup& setup) {
  for (Sums* sums : {&setup.query, &setup.output, &setup.value}) sums->Fill(0);
  setup.Launch(nullptr, 0);
  const Layer& layer = setup.layers[0];
  if (setup.part == Part::kDiagonal) {
    const std::vector<double> sums = setup.value.ToHost();
    const double error = WorstError(sums, HostRows(layer.v, setup.weights.ToHost(), sums));
    return {error <= kFloat64Error, fmt::format("float64 on the host: {:.1e}", error)};
  }
  const std::vector<double> sums = setup.query.ToHost();
  const double error = WorstError(sums, HostRows(layer.q, {}, sums));
  if (setup.options.precision == GramPrecision::kFloat64)
    return {error <= kFloat64Error, fmt::format("float64 on the host: {:.1e}", error)};
  const double mean = AdversarialError(setup, false), tails = AdversarialError(setup, true);
  return {std::max({error, mean, tails}) <= kSplitError,
          fmt::format("float64: {:.1e}; large mean {:.1e}, heavy tails {:.1e}; bound {:.1e}", error,
                      mean, tails, kSplitError)};
}

BenchCase Make(Part part, GramPrecision precision) {
  auto setup = std::make_shared<Setup>();
  setup->part = part;
  setup->options.precision = precision;
  for (int i = 0; i < kLayers; ++i) {
    Layer layer;
    const auto fill = [&](Bf16Array& values, int heads, uint64_t seed) {
      values = Bf16Array(size_t{kTokens} * static_cast<size_t>(heads) * kDim);
      FillNormal(values.data(), values.size(), 1, seed);
    };
    const auto seed = static_cast<uint64_t>(4 * i);
    if (part != Part::kDiagonal) fill(layer.q, kQueryHeads, seed);
    if (part != Part::kDiagonal) fill(layer.o, kQueryHeads, seed + 1);
    if (part != Part::kQueriesOutputs) fill(layer.k, kKvHeads, seed + 2);
    if (part != Part::kQueriesOutputs) fill(layer.v, kKvHeads, seed + 3);
    setup->layers.push_back(std::move(layer));
  }
  const AttentionRows queries =
      ContiguousRows(nullptr, RowType::kBFloat16, kTokens, kQueryHeads, kKvHeads, kDim);
  setup->workspace = DeviceArray<uint8_t>(GramWorkspaceBytes(queries));
  std::vector<double> identity(kMatrices);
  for (size_t row = 0; row < size_t{kKvHeads} * kDim; ++row) identity[row * kDim + row % kDim] = 1;
  setup->covariance = Sums(identity);

  double rows = 0;  // of kDim values
  if (part != Part::kDiagonal) rows += 2.0 * kTokens * kQueryHeads;
  if (part != Part::kQueriesOutputs) rows += 2.0 * kTokens * kKvHeads;
  BenchCase bench;
  bench.bytes = rows * kDim * 2;
  bench.flops = rows * kDim * (kDim + 1);
  // Keys of the diagonal target: a whole product with C_Q.
  if (part == Part::kDiagonal) bench.flops += rows / 2 * kDim * (kDim - 1);
  bench.peak_tflops = precision == GramPrecision::kFloat64 ? kFloat64Tflops : kBf16Tflops;
  if (part == Part::kQueriesOutputs) bench.bar_us = kBarUs;
  bench.buffers = kLayers;
  bench.launch = [setup](cudaStream_t stream, int set) { setup->Launch(stream, set); };
  bench.check = [setup] { return Check(*setup); };
  return bench;
}

}  // namespace

std::vector<BenchEntry> StatisticsBench() {
  std::vector<BenchEntry> entries;
  const auto add = [&](const char* name, Part part, GramPrecision precision) {
    entries.push_back({"statistics", name, [=] { return Make(part, precision); }});
  };
  add("C_Q, OᵀO, float64", Part::kQueriesOutputs, GramPrecision::kFloat64);
  add("C_Q, OᵀO, KᵀK, VᵀV, key sums, float64", Part::kAll, GramPrecision::kFloat64);
  add("diagonal target, float64", Part::kDiagonal, GramPrecision::kFloat64);
  add("C_Q, OᵀO, bfloat16 split", Part::kQueriesOutputs, GramPrecision::kBFloat16Split);
  add("C_Q, OᵀO, KᵀK, VᵀV, key sums, bfloat16 split", Part::kAll, GramPrecision::kBFloat16Split);
  return entries;
}

}  // namespace oscar
