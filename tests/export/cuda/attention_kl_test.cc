// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the attention-KL kernels with float64 for every geometry, for nearly perfect to
// destroyed caches, long contexts and windows, and tests which results must be exact.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/export/cuda/attention_kl_case.h"
#include "tests/reference/scalar_attention_kl.h"

namespace oscar {
namespace {

// Keeps the worst error of a sweep, and prints it at the end.
class Sweep {
 public:
  void Add(const Worst& worst, const std::string& name) {
    EXPECT_LT(worst.error, 1) << name << ": " << worst.where;
    worst_.Add(worst.error, name + ": " + worst.where);
  }
  ~Sweep() { fmt::print("worst {:.3f} of the tolerance, {}\n", worst_.error, worst_.where); }

 private:
  Worst worst_;
};

TEST(AttentionKl, EveryGeometry) {
  Sweep sweep;
  for (const bool portable : {false, true})
    for (const int head_dim : {64, 96, 128, 192, 256})
      for (const int ratio : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24})
        for (const int tokens : {1, 7, 63, 64, 65, 129, 321}) {
          Case c = CaseOf(tokens, 2, ratio, head_dim);
          c.options.portable = portable;
          Problem run(c);
          sweep.Add(Compare(run),
                    fmt::format("{} d {} ratio {} tokens {}", portable ? "portable" : "wgmma",
                                head_dim, ratio, tokens));
        }
}

TEST(AttentionKl, WindowsSlidingWindowSoftcapQueriesAndRows) {
  Sweep sweep;
  for (const bool portable : {false, true})
    for (const int head_dim : {128, 256})
      for (const int window : {0, 50, 200})
        for (const int sink : {0, 4, 64, 100})
          for (const int recent : {0, 1, 30, 128, 1000})
            for (const int extra : {0, 1, 2, 3, 4}) {
              Case c = CaseOf(700, 2, 3, head_dim);
              c.options.portable = portable;
              c.options.window = window;
              c.options.sink = sink;
              c.options.recent = recent;
              if (extra == 1) c.options.softcap = 5;
              if (extra == 2) c.q_noise = 0.05;
              if (extra == 3) c.positions = {0, 3, 63, 64, 64, 99, 100, 128, 500, 511, 512, 699};
              if (extra == 4) c.options.skip_exact = true;
              if (extra == 3) c.shape.rows = static_cast<int64_t>(c.positions.size());
              Problem run(c);
              sweep.Add(Compare(run, 300),
                        fmt::format("{} d {} window {} sink {} recent {} extra {}",
                                    portable ? "portable" : "wgmma", head_dim, window, sink, recent,
                                    extra));
            }
}

TEST(AttentionKl, Outputs) {
  Sweep sweep;
  struct Dims {
    int head_dim, v_head_dim;
  };
  for (const bool portable : {false, true})
    for (const Dims dims : {Dims{64, 64}, Dims{96, 96}, Dims{128, 128}, Dims{192, 128},
                            Dims{256, 256}, Dims{64, 512}, Dims{256, 64}})
      for (const int ratio : {1, 4, 6})
        for (const int tokens : {1, 33, 500})
          for (const int extra : {0, 1, 2, 3, 4, 5, 6}) {
            Case c = CaseOf(tokens, 2, ratio, dims.head_dim, dims.v_head_dim);
            c.options.portable = portable;
            if (extra == 1) c.options.window = 100;
            if (extra >= 2) c.options.sink = 20;
            if (extra >= 2) c.options.recent = 70;
            if (extra == 3) c.q_noise = 0.05;
            if (extra == 4) c.noise = 0.003;
            if (extra == 5) c.options.skip_exact = true;
            if (extra == 6) c.noise = 3;  // keys far from the true ones
            Problem run(c);
            sweep.Add(Compare(run, 200), fmt::format("{} d {} {} ratio {} tokens {} extra {}",
                                                     portable ? "portable" : "wgmma", dims.head_dim,
                                                     dims.v_head_dim, ratio, tokens, extra));
          }
}

// The noise ranges from about the precision of bf16 to keys unrelated to the true ones.
TEST(AttentionKl, EveryDamage) {
  Sweep sweep;
  for (const bool portable : {false, true})
    for (const double noise : {0.002, 0.01, 0.1, 0.3, 0.6, 2.0, 30.0, 1000.0})
      for (const double sharpness : {0.5, 2.0, 5.0}) {
        Case c = CaseOf(3000, 2, 4, 128);
        c.options.portable = portable;
        c.noise = noise;
        c.sharpness = sharpness;
        c.options.sink = 16;
        c.options.recent = 64;
        Problem run(c);
        sweep.Add(Compare(run, 1000, 2e-6 * (1 + sharpness * sharpness)),
                  fmt::format("{} noise {} sharpness {}", portable ? "portable" : "wgmma", noise,
                              sharpness));
      }
}

TEST(AttentionKl, LongContexts) {
  Sweep sweep;
  for (const int tokens : {32768, 131072})
    for (const double noise : {0.004, 0.05, 0.4}) {
      Case c = CaseOf(tokens, 2, 4, 128);
      c.noise = noise;
      c.options.logit_sq = false;
      c.options.sink = 64;
      c.options.recent = 256;
      for (int64_t row = 0; row < 256; ++row)
        c.positions.push_back((row + 1) * tokens / 256 - 1 - row % 7);
      c.shape.rows = 256;
      Problem run(c);
      sweep.Add(Compare(run, 256), fmt::format("{} tokens, noise {}", tokens, noise));
    }
}

TEST(AttentionKl, AnEqualCacheHasNoErrorAtAll) {
  for (const bool portable : {false, true}) {
    Case c = CaseOf(900, 2, 4, 128);
    c.options.portable = portable;
    c.noise = 0;
    Problem run(c);
    run.Launch();
    for (size_t i = 0; i < run.kl.size(); ++i) {
      ASSERT_EQ(run.kl[i], 0) << i;
      ASSERT_EQ(run.logit_error_sq[i], 0) << i;
      ASSERT_EQ(run.lse[i], run.lse_hat[i]) << i;
    }
  }
}

TEST(AttentionKl, RowsInsideTheWindowsHaveNoErrorAtAll) {
  Case c = CaseOf(900, 2, 4, 128);
  c.noise = 3;
  c.options.sink = 20;
  c.options.recent = 100;
  Problem run(c);
  run.Launch();
  for (int64_t head = 0; head < 8; ++head)
    for (int64_t row = 0; row < 900; ++row) {
      const float kl = run.kl[static_cast<size_t>(head * 900 + row)];
      if (row < 120) {
        ASSERT_EQ(kl, 0) << head << " " << row;
      } else {
        ASSERT_GT(kl, 0) << head << " " << row;
      }
    }
}

TEST(AttentionKl, SameBitsEveryTime) {
  Case c = CaseOf(5000, 2, 4, 128);
  Problem first(c), second(c);
  first.Launch();
  second.Launch();
  EXPECT_EQ(first.kl, second.kl);
  EXPECT_EQ(first.lse_hat, second.lse_hat);
}

std::vector<double> Head(const Bf16s& tensor, int64_t tokens, int64_t heads, int64_t dim,
                         int64_t head) {
  const std::vector<__nv_bfloat16> values = tensor.ToHost();
  std::vector<double> out;
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = 0; i < dim; ++i)
      out.push_back(__bfloat162float(values[static_cast<size_t>((t * heads + head) * dim + i)]));
  return out;
}

TEST(AttentionKl, SumsAreThoseOfTheScalarReference) {
  for (const int window : {0, 90}) {
    Case c = CaseOf(300, 2, 2, 64, 64);
    c.options.window = window;
    c.options.sink = 5;
    c.options.recent = 40;
    Problem run(c);
    run.Launch();
    const AttentionKlShape& n = c.shape;
    for (int64_t head = 0; head < n.num_q_heads; ++head) {
      const auto q = Head(run.q_, n.tokens, n.num_q_heads, n.head_dim, head);
      const auto k = Head(run.k_, n.tokens, n.num_kv_heads, n.head_dim, head / 2);
      const auto k_hat = Head(run.k_hat_, n.tokens, n.num_kv_heads, n.head_dim, head / 2);
      const auto v = Head(run.v_, n.tokens, n.num_kv_heads, n.v_head_dim, head / 2);
      const auto v_hat = Head(run.v_hat_, n.tokens, n.num_kv_heads, n.v_head_dim, head / 2);
      AttentionOperands operands;
      operands.tokens = n.tokens;
      operands.head_dim = operands.v_head_dim = n.head_dim;
      operands.q = q;
      operands.k = k;
      operands.v = v;
      operands.v_hat = v_hat;
      operands.k_hat = k_hat;
      const AttentionError expected = CompareAttention(operands, {c.options.scale, window},
                                                       {c.options.sink, c.options.recent}, "test");
      const auto expect_sum = [&](const auto& of_rows, double sum, double tolerance) {
        const auto first = of_rows.begin() + head * n.rows;
        EXPECT_NEAR(std::accumulate(first, first + n.rows, 0.0), sum, tolerance * sum);
      };
      expect_sum(run.kl, expected.kl_sum, 1e-4);
      expect_sum(run.logit_error_sq, expected.logit_error_sq, 1e-4);
      expect_sum(run.logit_sq, expected.logit_sq, 1e-5);
      expect_sum(run.output_error_sq, expected.output_error_sq, 1e-3);
      expect_sum(run.output_sq, expected.output_sq, 1e-4);
    }
  }
}

TEST(AttentionKl, RowsOutOfOrderOrRangeAreNaN) {
  Case c = CaseOf(500, 1, 2, 64);
  c.positions = {3, 100, 40, 200, 500};
  c.shape.rows = 5;
  Problem run(c);
  run.Launch();
  EXPECT_TRUE(std::isfinite(run.kl[0]));
  for (const size_t row : {1u, 2u, 4u}) EXPECT_TRUE(std::isnan(run.kl[row])) << row;
}

TEST(AttentionKl, NaNInAnOperandComesOut) {
  for (const bool portable : {false, true}) {
    Case c = CaseOf(300, 1, 2, 128);
    c.options.portable = portable;
    Problem run(c);
    const __nv_bfloat16 nan = __float2bfloat16(std::numeric_limits<float>::quiet_NaN());
    OSCAR_CUDA_CHECK(
        cudaMemcpy(run.k_hat_.data() + 128 * 150, &nan, sizeof(nan), cudaMemcpyHostToDevice));
    run.Launch();
    for (size_t row = 0; row < 300; ++row)
      EXPECT_EQ(std::isnan(run.kl[row]), row >= 150) << portable << " " << row;
  }
}

}  // namespace
}  // namespace oscar
