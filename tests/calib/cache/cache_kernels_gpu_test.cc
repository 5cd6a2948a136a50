// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares single kernels on the GPU with the same computation by tensor operations on the CPU.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "calib/cache/affine_tensor.h"
#include "calib/cache/cache_kernels.h"
#include "calib/cache/logit_comparison.h"
#include "capture/model/run/device.h"

namespace oscar {
namespace {

at::Tensor OnGpu(const at::Tensor& x) { return x.defined() ? x.to(at::kCUDA) : x; }

// Returns rows of many magnitudes and edge cases: zero, constant, NaN, infinity, values half-way
// between codes.
at::Tensor Rows(int64_t dim, at::ScalarType dtype) {
  at::Tensor rows = at::randn({3, 2, 40, dim}, at::kDouble);
  rows.mul_(at::randn({3, 2, 40, 1}, at::kDouble).mul(4).exp());
  rows[0][0][0].fill_(0);
  rows[0][0][1].fill_(-7.25);
  rows[0][0][2][dim / 2].fill_(std::numeric_limits<double>::quiet_NaN());
  rows[0][0][3][1].fill_(std::numeric_limits<double>::infinity());
  rows[0][0][4].copy_(at::arange(dim, at::kDouble).remainder(7).div(2));
  rows[0][0][5].abs_();
  rows[0][0][6].mul_(1e-12);
  rows[0][0][7].fill_(1).slice(0, 0, dim, 16).fill_(1.25);  // constant after clipping
  return rows.to(dtype);
}

TEST(CacheKernels, RoundTripsAreThoseOfTensorsBitForBit) {
  if (NumGpus() == 0) GTEST_SKIP() << "no CUDA device";
  at::manual_seed(3);
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const auto& [dim, group] : {std::pair<int64_t, int64_t>{128, 16},
                                     {128, 128},
                                     {64, 32},
                                     {96, 24},
                                     {512, 512},
                                     {40, 20},
                                     {12, 3}}) {
      const at::Tensor rows = Rows(dim, dtype), sorted = SortedMagnitudes(rows);
      for (const at::Tensor& thresholds :
           {at::Tensor(), ClipThresholds(sorted, 0.92), rows.abs().mul(0.9)}) {
        for (const int bits : {1, 2, 3, 4, 8}) {
          for (const MetadataType metadata :
               {MetadataType::kFloat32, MetadataType::kBFloat16, MetadataType::kByte}) {
            for (const ScaleFit scales :
                 {ScaleFit::kRange, ScaleFit::kUnbiased, ScaleFit::kUnbiasedRounded}) {
              if (metadata == MetadataType::kByte && bits > kMaxFittedBits) continue;
              const AffineFormat format{bits, group, metadata, scales};
              const auto read = AffineRoundTripInOneKernel(OnGpu(rows), OnGpu(thresholds), format);
              ASSERT_TRUE(read);
              EXPECT_TRUE(at::allclose(read->cpu(), AffineRoundTrip(rows, thresholds, format),
                                       /*rtol=*/0, /*atol=*/0, /*equal_nan=*/true))
                  << fmt::format("{} values in groups of {}, {} bits, metadata {}, scales {}", dim,
                                 group, bits, static_cast<int>(metadata), static_cast<int>(scales));
            }
          }
        }
      }
    }
  }
}

TEST(CacheKernels, FeedbackIsThatOfTensorsBitForBit) {
  if (NumGpus() == 0) GTEST_SKIP() << "no CUDA device";
  at::manual_seed(5);
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const auto& [dim, group] : {std::pair<int64_t, int64_t>{64, 64},
                                     {64, 16},
                                     {96, 24},
                                     {128, 32},
                                     {256, 256},
                                     {40, 20}}) {
      const at::Tensor rows = at::randn({3, 2, 41, dim}, dtype);
      for (const int64_t heads : {1, 2}) {
        const at::Tensor factor = at::randint(-127, 128, {heads, dim, dim}, dtype).div(256).triu(1);
        for (const int bits : {2, 4}) {
          for (const MetadataType metadata : {MetadataType::kFloat32, MetadataType::kByte}) {
            const AffineFormat format{bits, group, metadata, ScaleFit::kUnbiasedRounded};
            const at::Tensor clip = ClipThresholds(SortedMagnitudes(rows), 0.92);
            EXPECT_TRUE(AffineRoundTripWithFeedback(OnGpu(rows), OnGpu(clip), format, OnGpu(factor))
                            .cpu()
                            .equal(AffineRoundTripWithFeedback(rows, clip, format, factor)))
                << fmt::format("{} values in groups of {}, {} heads, {} bits", dim, group, heads,
                               bits);
          }
        }
      }
    }
  }
}

void ExpectClose(const at::Tensor& found, const at::Tensor& expected, double tolerance) {
  const at::Tensor host = found.cpu();
  ASSERT_EQ(host.sizes(), expected.sizes());
  const at::Tensor error = (host - expected).abs() / (expected.abs() + 1e-3);
  EXPECT_LT(error.max().item<double>(), tolerance);
}

TEST(CacheKernels, LogitsAreComparedAsByTensors) {
  if (NumGpus() == 0) GTEST_SKIP() << "no CUDA device";
  at::manual_seed(4);
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const int64_t tokens : {1, 7, 200, 800, 3000}) {
      for (const bool with_sinks : {false, true}) {
        for (const double far : {0.1, 3.0, 300.0}) {
          const auto draw = [&](std::initializer_list<int64_t> shape) {
            return at::randn(shape, at::kDouble).to(dtype);
          };
          const at::Tensor hidden =
              at::arange(tokens).gt(at::arange(5).unsqueeze(1).mul(tokens / 5));
          const auto masked = [&](const at::Tensor& x) {
            return x.masked_fill(hidden, kHiddenLogit);
          };
          const at::Tensor own = masked(draw({2, 3, 2, 5, tokens}).mul(3));
          const at::Tensor other =
              masked(own.unsqueeze(0).add(draw({4, 2, 3, 2, 5, tokens}).mul(far)));
          const at::Tensor sinks = with_sinks ? draw({3, 2, 1, 1}) : at::Tensor();
          ReferenceLogits reference{{WithSinks(own, sinks).log_softmax(-1), {}}, own};
          reference.p.scores = reference.p.log.exp();
          const LogitParts all{.scores = true, .kl_terms = true, .logit_errors = true};
          const LogitComparison expected = CompareLogits(reference, {other}, sinks, all);
          const auto found = CompareLogitsInOneKernel(
              {{OnGpu(reference.p.log), OnGpu(reference.p.scores)}, OnGpu(own)}, {OnGpu(other)},
              OnGpu(sinks), all);
          ASSERT_TRUE(found);
          // A score has the rounding error of its logit, and a sum over n keys has sqrt(n) times
          // that error.
          const double tolerance = (dtype == at::kFloat ? 6e-8 : 2e-16) * 40 * (10 + far) *
                                   std::sqrt(static_cast<double>(tokens));
          ExpectClose(found->kl, expected.kl, tolerance);
          ExpectClose(found->scores, expected.scores, tolerance);
          ExpectClose(found->kl_terms, expected.kl_terms, tolerance);
          ExpectClose(found->logit_errors_sq, expected.logit_errors_sq, tolerance);
        }
      }
    }
  }
}

}  // namespace
}  // namespace oscar
