// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/scalar_kvarn.h"

#include <algorithm>
#include <cmath>

#include "linalg/base/check.h"
#include "linalg/stored_float.h"
#include "tests/reference/scalar_affine_families.h"
#include "tests/reference/tree_sum.h"

namespace oscar {
namespace {

template <typename T>
T Exp(T x) {
  return static_cast<T>(std::exp(static_cast<double>(x)));
}

template <typename T>
T Log(T x) {
  return static_cast<T>(std::log(static_cast<double>(x)));
}

template <typename T>
T SampleStd(std::span<const T> values) {
  std::vector<T> work(values.begin(), values.end());
  const T mean = TreeSum<T>(work) / static_cast<T>(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const T difference = values[i] - mean;
    work[i] = difference * difference;
  }
  return std::sqrt(TreeSum<T>(work) / static_cast<T>(values.size() - 1));
}

// A tile during normalization: its factors, and the tile divided by them.
template <typename T>
struct State {
  State(std::span<const T> given, const TileShape& shape)
      : tile(given),
        num_rows(static_cast<size_t>(shape.rows)),
        num_columns(static_cast<size_t>(shape.columns)),
        a(num_columns, T{0}),
        b(num_rows, T{0}),
        columns(num_columns, T{1}),
        rows(num_rows, T{1}),
        divided(given.begin(), given.end()) {}

  std::span<const T> tile;
  size_t num_rows, num_columns;
  std::vector<T> a, b;           // logarithms of the factors
  std::vector<T> columns, rows;  // the factors
  std::vector<T> divided;

  std::vector<T> RowStds() const {
    std::vector<T> stds;
    for (size_t i = 0; i < num_rows; ++i)
      stds.push_back(SampleStd(std::span<const T>(divided).subspan(i * num_columns, num_columns)));
    return stds;
  }
  std::vector<T> ColumnStds() const {
    std::vector<T> stds, column(num_rows);
    for (size_t j = 0; j < num_columns; ++j) {
      for (size_t i = 0; i < num_rows; ++i) column[i] = divided[i * num_columns + j];
      stds.push_back(SampleStd<T>(column));
    }
    return stds;
  }
  void Update(std::vector<T>& logs, std::vector<T>& factors, const std::vector<T>& stds) {
    for (size_t i = 0; i < logs.size(); ++i) {
      const T std = std::clamp(stds[i], static_cast<T>(kVarianceStdFloor),
                               static_cast<T>(kVarianceStdCeiling));
      logs[i] = std::clamp(logs[i] + Log(std), static_cast<T>(kVarianceLogFloor),
                           static_cast<T>(kVarianceLogCeiling));
      factors[i] = Exp(logs[i]);
    }
    for (size_t i = 0; i < num_rows; ++i) {
      for (size_t j = 0; j < num_columns; ++j) {
        const size_t at = i * num_columns + j;
        divided[at] = tile[at] / columns[j] / rows[i];
      }
    }
  }
  T Imbalance() const {
    const auto spread = [](const std::vector<T>& stds) {
      const auto [min, max] = std::minmax_element(stds.begin(), stds.end());
      return *max / std::max(*min, static_cast<T>(kVarianceLeastDivisor));
    };
    return spread(ColumnStds()) + spread(RowStds());
  }
};

}  // namespace

template <typename T>
VarianceFactors<T> NormalizeVariance(std::span<const T> tile, const TileShape& shape,
                                     int iterations) {
  OSCAR_CHECK(shape.rows > 1 && shape.columns > 1);
  OSCAR_CHECK_EQ(static_cast<int64_t>(tile.size()), shape.rows * shape.columns);
  State<T> state(tile, shape);
  VarianceFactors<T> best = {state.columns, state.rows, state.Imbalance()};
  for (int i = 0; i < iterations; ++i) {
    state.Update(state.a, state.columns, state.ColumnStds());
    state.Update(state.b, state.rows, state.RowStds());
    const T imbalance = state.Imbalance();
    if (imbalance <= best.imbalance) best = {state.columns, state.rows, imbalance};
  }
  return best;
}

template <typename T>
KvarnTile<T> EncodeKvarnTile(std::span<const T> tile, const TileShape& shape, int bits,
                             int iterations, StoredFloat metadata) {
  const VarianceFactors<T> factors = NormalizeVariance(tile, shape, iterations);
  KvarnTile<T> encoded;
  encoded.codes.resize(tile.size());
  const size_t num_columns = factors.columns.size();
  std::vector<T> row(num_columns), scale_offset(2);
  for (size_t i = 0; i < factors.rows.size(); ++i) {
    for (size_t j = 0; j < num_columns; ++j)
      row[j] = tile[i * num_columns + j] / factors.columns[j] / factors.rows[i];
    EncodeAffineFamily<T>(row, KvarnRowRule(bits), shape.columns,
                          std::span<uint8_t>(encoded.codes).subspan(i * num_columns, num_columns),
                          scale_offset);
    encoded.scales.push_back(RoundTo(factors.rows[i] * scale_offset[0], metadata));
    encoded.zeros.push_back(RoundTo(factors.rows[i] * scale_offset[1], metadata));
  }
  for (const T factor : factors.columns) encoded.columns.push_back(RoundTo(factor, metadata));
  return encoded;
}

template <typename T>
void DecodeKvarnTile(const KvarnTile<T>& tile, std::span<T> y) {
  OSCAR_CHECK_EQ(y.size(), tile.codes.size());
  const size_t num_columns = tile.columns.size();
  for (size_t at = 0; at < y.size(); ++at) {
    const size_t i = at / num_columns;
    y[at] = (static_cast<T>(tile.codes[at]) * tile.scales[i] + tile.zeros[i]) *
            tile.columns[at % num_columns];
  }
}

#define OSCAR_INSTANTIATE(T)                                                                \
  template VarianceFactors<T> NormalizeVariance(std::span<const T>, const TileShape&, int); \
  template KvarnTile<T> EncodeKvarnTile(std::span<const T>, const TileShape&, int, int,     \
                                        StoredFloat);                                       \
  template void DecodeKvarnTile(const KvarnTile<T>&, std::span<T>)
OSCAR_INSTANTIATE(float);
OSCAR_INSTANTIATE(double);
#undef OSCAR_INSTANTIATE

}  // namespace oscar
