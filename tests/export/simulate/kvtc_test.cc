// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that KVTC's bit allocation is optimal, that its components are the directions of the rows,
// and that the first tokens stay exact.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "export/simulate/methods/kvtc_fit.h"
#include "export/simulate/rope_rows.h"
#include "linalg/base/error.h"
#include "tests/export/simulate/per_token_rows.h"

namespace oscar {
namespace {

using GroupError = std::function<double(int64_t begin, const KvtcGroup& group)>;

// Returns the smallest error of the components from `begin` on with `budget` bits, by exhaustive
// search.
double LeastError(const std::vector<double>& energies, const GroupError& error, size_t begin,
                  int64_t budget) {
  double least = 0;
  for (size_t i = begin; i < energies.size(); ++i) least += energies[i];
  for (const int64_t size : kKvtcGroupSizes) {
    for (const KvtcType type : kKvtcTypes) {
      const KvtcGroup group = {size, type};
      const size_t end = begin + static_cast<size_t>(size);
      if (end > energies.size() || KvtcGroupBits(group) > budget) continue;
      least = std::min(least, error(static_cast<int64_t>(begin), group) +
                                  LeastError(energies, error, end, budget - KvtcGroupBits(group)));
    }
  }
  return least;
}

double FitErrorOf(const std::vector<KvtcGroup>& groups, const std::vector<double>& energies,
                  const GroupError& error) {
  double sum = 0;
  int64_t begin = 0;
  for (const KvtcGroup& group : groups) {
    sum += error(begin, group);
    begin += group.size;
  }
  for (auto i = static_cast<size_t>(begin); i < energies.size(); ++i) sum += energies[i];
  return sum;
}

TEST(KvtcAllocation, NoOtherIsBetter) {
  at::manual_seed(1);
  for (int trial = 0; trial < 6; ++trial) {
    std::vector<double> energies;
    for (int i = 0; i < 40; ++i)
      energies.push_back(std::exp(-0.1 * i * (trial % 3)) * at::rand({}).item<double>());
    const GroupError error = [&](int64_t begin, const KvtcGroup& group) {
      double sum = 0;
      for (int64_t i = begin; i < begin + group.size; ++i) sum += energies[static_cast<size_t>(i)];
      const double left[] = {0.2, 0.02, 0.001};
      return sum * left[static_cast<int>(group.type)];
    };
    for (const int64_t budget : {0, 33, 64, 130, 200}) {
      const std::vector<KvtcGroup> groups = AllocateKvtcBits(energies, error, budget);
      int64_t bits = 0;
      for (const KvtcGroup& group : groups) bits += KvtcGroupBits(group);
      EXPECT_LE(bits, budget);
      EXPECT_NEAR(FitErrorOf(groups, energies, error), LeastError(energies, error, 0, budget),
                  1e-12)
          << budget;
    }
  }
}

TEST(KvtcGroups, HaveAShiftAndAScale) {
  const at::Tensor x = at::tensor({100.0, 101.0, 102.0, 103.0}, at::kDouble).unsqueeze(0);
  EXPECT_TRUE(KvtcGroupRoundTrip(x, KvtcType::kInt2).equal(x));  // exactly four levels
  const at::Tensor y = at::tensor({-3.0, 0.1, 0.2, 3.0}, at::kDouble).unsqueeze(0);
  const auto error = [&](KvtcType type) { return RelativeError(KvtcGroupRoundTrip(y, type), y); };
  EXPECT_LT(error(KvtcType::kInt4), 0.1 * error(KvtcType::kInt2));
  EXPECT_LT(error(KvtcType::kFloat8), 1e-3);
  const at::Tensor same = at::full({1, 5}, 7.0, at::kDouble);
  EXPECT_TRUE(KvtcGroupRoundTrip(same, KvtcType::kFloat8).equal(same));
}

// The rows lie in three directions around a mean. The fit finds them, so the round trip loses
// little.
TEST(Kvtc, FindsTheDirectionsThatRowsAreMadeOf) {
  at::manual_seed(2);
  const at::Tensor directions = at::randn({3, 64}, at::kDouble),
                   mean = at::randn({64}, at::kDouble).mul(10);
  const at::Tensor rows = at::randn({500, 3}, at::kDouble).matmul(directions).add(mean);
  const KvtcSide side = FitKvtc({rows}, {.ratio = 8}, "rows");
  EXPECT_GE(side.basis.size(1), 3);
  const at::Tensor read = KvtcRoundTrip(rows, side);
  EXPECT_LT(RelativeError(read.sub(mean), rows.sub(mean)), 1e-3);
  EXPECT_LT(side.mean.sub(mean).abs().max().item<double>(), 1);
  // The basis is orthonormal.
  EXPECT_TRUE(side.basis.t()
                  .matmul(side.basis)
                  .allclose(at::eye(side.basis.size(1), at::kDouble), 1e-9, 1e-9));
}

// Tests that a token uses at most 16 * 128 / ratio bits and at least 70 % of them, and that more
// bits give a smaller error.
TEST(Kvtc, SpendsItsBudget) {
  RowContext rows(kSquareRows);
  std::vector<at::Tensor> v;
  for (const at::Tensor& x : rows.rows().v) v.push_back(x.flatten(1));
  double before = std::numeric_limits<double>::infinity();
  for (const double ratio : {16.0, 8.0, 4.0}) {
    const KvtcSide side = FitKvtc(v, {.ratio = ratio}, "values");
    int64_t bits = 0;
    for (const KvtcGroup& group : side.groups) bits += KvtcGroupBits(group);
    EXPECT_LE(static_cast<double>(bits), 16 * 128 / ratio);
    EXPECT_GT(static_cast<double>(bits), 0.7 * 16 * 128 / ratio);
    const double error = RelativeError(KvtcRoundTrip(v[0], side), v[0]);
    EXPECT_LT(error, before);
    before = error;
  }
}

TEST(Kvtc, FirstTokensAreExactAndNotFittedTo) {
  RowContext rows(kSquareRows);
  const CacheSides x = RowsOf(rows, at::kFloat);
  const at::Tensor before = Stored(rows, "kvtc_8x", x).v;
  CalibrationRows other = rows.rows();
  for (at::Tensor& v : other.v) {
    v = v.clone();
    v.slice(0, 0, 4).mul_(1000);
  }
  rows.context().SetRows(other);
  EXPECT_TRUE(Stored(rows, "kvtc_8x", x).v.equal(before));
  const LayerCache cache = CacheMethodNamed("kvtc_8x").make(rows.context(), 0, {});
  EXPECT_EQ(cache.k_exact.sink, 4);
  EXPECT_EQ(cache.k_exact.quantized_end(4 + 128 + 31), 4 + 16);
}

TEST(Kvtc, KeysBeforeTheirRopeAreTheOnesCoded) {
  RowContext rows(kSquareRows);
  const RopeSpec& rope = rows.spec().rope;
  std::vector<at::Tensor> keys;
  for (const at::Tensor& k : rows.rows().k) keys.push_back(UndoRope(k, rope).flatten(1));
  const KvtcSide side = FitKvtc(keys, {.ratio = 8}, "keys");
  const at::Tensor read = Stored(rows, "kvtc_8x", RowsOf(rows, at::kFloat)).k;
  EXPECT_LT(
      (UndoRope(read, rope).flatten(1) - KvtcRoundTrip(keys[0], side)).abs().max().item<double>(),
      1e-4);
}

TEST(Kvtc, NeedsMoreTokensThanStayExact) {
  RowContext rows({.head_dim = 64, .v_head_dim = 64, .sequences = 2, .tokens = 4});
  EXPECT_THROW(CacheMethodNamed("kvtc_8x").make(rows.context(), 0, {}), InputError);
}

TEST(Kvtc, CostsItsBudgetAndWhatIsExact) {
  RowContext rows({.head_dim = 128, .v_head_dim = 128});
  const auto cost = [&](const char* name, int64_t tokens) {
    return CacheMethodNamed(name).cost(rows.context(), {}, tokens);
  };
  EXPECT_NEAR(cost("kvtc_8x", 1 << 17).paper, 2 + 14 * 132.0 / (1 << 17), 1e-9);
  EXPECT_NEAR(cost("kvtc_16x", 1 << 17).paper, 1 + 15 * 132.0 / (1 << 17), 1e-9);
  EXPECT_NEAR(cost("kvtc_8x", 132 + 31).actual, (2 * 16 + 16 * (132 + 15)) / 163.0, 1e-9);
}

}  // namespace
}  // namespace oscar
