// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares NSNQuant with a plain implementation, and checks its error for normal values.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "export/simulate/codecs/nsn_tensor.h"
#include "export/simulate/rope_rows.h"
#include "linalg/base/error.h"
#include "linalg/stored_float.h"
#include "tests/export/simulate/per_token_rows.h"

namespace oscar {
namespace {

using Values = std::vector<double>;

double Half(double x) { return RoundToFloat16(static_cast<float>(x)); }

// Rounds to 16 levels between minimum and maximum. The scale and the minimum are float16.
void RoundToFourBits(std::span<double> x) {
  const auto [low, high] = std::ranges::minmax(x);
  const double scale = std::max((high - low) / 15, 1e-5);
  for (double& value : x) {
    const double code = std::clamp(std::nearbyint((value - low) / scale), 0.0, 15.0);
    value = code * Half(scale) + Half(low);
  }
}

double Norm(const Values& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

Values Turned(const Values& x) {  // times a Hadamard matrix
  Values y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < x.size(); ++j) y[i] += (std::popcount(i & j) % 2 == 0 ? 1 : -1) * x[j];
    y[i] /= std::sqrt(static_cast<double>(x.size()));
  }
  return y;
}

Values Nearest(const Values& y, int bits) {
  const at::Tensor& codebook = NsnCodebook(bits);
  const auto entries = codebook.accessor<double, 2>();
  Values read;
  for (size_t begin = 0; begin < y.size(); begin += 8) {
    double least = 1e300;
    int64_t best = 0;
    for (int64_t entry = 0; entry < 256; ++entry) {
      double distance = 0;
      for (size_t i = 0; i < 8; ++i) {
        const double value = bits == 2 ? std::abs(y[begin + i]) : y[begin + i];
        distance += std::pow(value - entries[entry][static_cast<int64_t>(i)], 2);
      }
      if (distance < least) best = entry;
      least = std::min(least, distance);
    }
    for (size_t i = 0; i < 8; ++i) {
      const double value = entries[best][static_cast<int64_t>(i)];
      read.push_back(bits == 2 && y[begin + i] < 0 ? -value : value);
    }
  }
  return read;
}

// Reads back one head's rows of one block, given before rope. `turn(t, row)` applies rope to a row
// at token t of the block.
template <typename Turn>
std::vector<Values> ReadPlainly(std::vector<Values> rows, int bits, const Turn& turn) {
  const size_t tokens = rows.size(), dim = rows[0].size();
  Values norms, mean(dim);
  for (const Values& row : rows) norms.push_back(Norm(row));
  RoundToFourBits(norms);
  for (size_t t = 0; t < tokens; ++t) {
    for (size_t i = 0; i < dim; ++i) {
      rows[t][i] /= norms[t];
      mean[i] += rows[t][i] / static_cast<double>(tokens);
    }
  }
  for (size_t begin = 0; begin < dim; begin += 32)
    RoundToFourBits(std::span(mean).subspan(begin, 32));
  std::vector<Values> read;
  for (size_t t = 0; t < tokens; ++t) {
    Values centred = rows[t];
    for (size_t i = 0; i < dim; ++i) centred[i] -= mean[i];
    const double scale = Norm(centred);
    for (double& value : centred) value /= scale;
    const Values y = Turned(turn(t, centred)), code = Nearest(y, bits);
    double own = 0, common = 0;
    for (size_t i = 0; i < dim; ++i) {
      own += y[i] * y[i];
      common += y[i] * code[i];
    }
    Values x = Turned(code);
    const Values turned_mean = turn(t, mean);
    for (size_t i = 0; i < dim; ++i)
      x[i] = (x[i] * Half(scale * own / common) + turned_mean[i]) * norms[t];
    read.push_back(x);
  }
  return read;
}

std::vector<Values> RowsOfHead(const at::Tensor& block, int64_t head) {
  std::vector<Values> rows;
  for (int64_t t = 0; t < block.size(0); ++t) {
    const at::Tensor row = block[t][head].contiguous();
    rows.emplace_back(row.const_data_ptr<double>(), row.const_data_ptr<double>() + row.numel());
  }
  return rows;
}

// Compares all whole blocks of all heads. At most 1 % of the rows may differ, because a value may
// lie on the boundary between two codes.
template <typename Turn>
void ExpectReadPlainly(const at::Tensor& read, const at::Tensor& before, int bits,
                       const Turn& turn) {
  int64_t different = 0, all = 0;
  for (int64_t begin = 0; begin + 64 <= before.size(0); begin += 64) {
    for (int64_t head = 0; head < before.size(1); ++head) {
      const auto of_block = [&](size_t t, const Values& row) {
        return turn(begin + static_cast<int64_t>(t), row);
      };
      const std::vector<Values> expected =
          ReadPlainly(RowsOfHead(before.slice(0, begin, begin + 64), head), bits, of_block);
      for (size_t t = 0; t < 64; ++t) {
        const at::Tensor row = read[begin + static_cast<int64_t>(t)][head];
        double error = 0;
        for (size_t i = 0; i < expected[t].size(); ++i) {
          error = std::max(error,
                           std::abs(row[static_cast<int64_t>(i)].item<double>() - expected[t][i]));
        }
        ++all;
        if (error > 1e-7) ++different;
      }
    }
  }
  EXPECT_GT(all, 0);
  EXPECT_LE(different, all / 100);
}

TEST(NsnQuant, IsThePlainOne) {
  RowContext rows(kSquareRows);
  const RopeSpec& rope = rows.spec().rope;
  const CacheSides x = RowsOf(rows, at::kDouble);
  const at::Tensor before = UndoRope(x.k, rope);
  // Applies rope to one row, in a sequence that is zero elsewhere.
  const auto turned = [&](int64_t t, const Values& row) {
    at::Tensor whole = at::zeros_like(x.k);
    whole[t][0].copy_(at::tensor(row, at::kDouble));
    const at::Tensor own = ApplyRope(whole, rope)[t][0].contiguous();
    return Values(own.const_data_ptr<double>(), own.const_data_ptr<double>() + own.numel());
  };
  for (const int bits : {1, 2}) {
    const CacheSides read = Stored(rows, bits == 1 ? "nsnquant_1" : "nsnquant_2", x);
    ExpectReadPlainly(read.k, before, bits, turned);
    ExpectReadPlainly(read.v, x.v, bits, [](int64_t, const Values& row) { return row; });
    EXPECT_TRUE(read.k.slice(0, 64).equal(x.k.slice(0, 64)));  // tokens 64 to 79 stay exact
    EXPECT_TRUE(read.v.slice(0, 64).equal(x.v.slice(0, 64)));
  }
  const LayerCache cache = CacheMethodNamed("nsnquant_2").make(rows.context(), 0, {});
  EXPECT_EQ(cache.k_exact.quantized_end(127), 64);
  EXPECT_EQ(cache.v_exact.quantized_end(128), 128);
}

// For normal values, codes for 8 values have a smaller error than levels for single values (.1175
// at 2 bits, .363 at 1), and a larger one than the rate-distortion bound (.0625 and .25).
TEST(NsnQuant, CodebooksAreBetterThanLevels) {
  at::manual_seed(5);
  const at::Tensor x = at::randn({4000, 64}, at::kDouble);
  const double two = RelativeError(NsnRead(x, 2), x), one = RelativeError(NsnRead(x, 1), x);
  EXPECT_LT(two, 0.107);
  EXPECT_GT(two, 0.08);
  EXPECT_LT(one, 0.34);
  EXPECT_GT(one, 0.27);
}

// The scale makes the error orthogonal to the row.
TEST(NsnQuant, ErrorsAreAtRightAngles) {
  at::manual_seed(6);
  const at::Tensor x = at::randn({200, 64}, at::kDouble), read = NsnRead(x, 1);
  const at::Tensor scales = NsnScales(at::ones({200, 1}, at::kDouble), x, read);
  const at::Tensor along = read.mul(scales).sub(x).mul(x).sum(-1).div(x.square().sum(-1));
  EXPECT_LT(along.abs().max().item<double>(), 1e-3);  // scales are float16
  EXPECT_GT(read.sub(x).mul(x).sum(-1).div(x.square().sum(-1)).abs().max().item<double>(), 0.1);
}

TEST(NsnQuant, CostsWhatItStores) {
  RowContext rows({.head_dim = 128, .v_head_dim = 128});
  const auto cost = [&](const char* name, int64_t tokens) {
    return CacheMethodNamed(name).cost(rows.context(), {}, tokens);
  };
  EXPECT_NEAR(cost("nsnquant_1", 1 << 17).paper, 1.2383, 1e-4);
  EXPECT_NEAR(cost("nsnquant_2", 1 << 17).paper, 2 + 158.5 / 128 - 1, 1e-9);
  EXPECT_NEAR(cost("nsnquant_2", 64 + 32).actual, (2 * (2 + 30.5 / 128) + 16) / 3, 1e-9);
}

TEST(NsnQuant, HeadsOfOtherLengthsAreRefused) {
  RowContext rows({.head_dim = 36, .v_head_dim = 36});
  EXPECT_THROW(CacheMethodNamed("nsnquant_2").make(rows.context(), 0, {}), InputError);
}

}  // namespace
}  // namespace oscar
