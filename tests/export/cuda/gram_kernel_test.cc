// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Second moments on the GPU against plain float64 sums on the host.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "export/cuda/statistics/gram.h"
#include "tests/export/cuda/gram_host.h"

namespace oscar {
namespace {

constexpr double kFloat64Error = 1e-13;

struct Stream {
  cudaStream_t stream = nullptr;
  Stream() { OSCAR_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream); }
};

// What AccumulateGram leaves in sums that were `before`, with a workspace of NaN.
std::vector<double> DeviceGram(const AttentionRows& rows, const GramOptions& options = {},
                               double before = 0, cudaStream_t stream = nullptr) {
  const auto size = static_cast<size_t>(rows.num_kv_heads * rows.dim * rows.dim);
  const DeviceArray<double> sums(std::vector<double>(size, before));
  DeviceArray<uint8_t> workspace(GramWorkspaceBytes(rows));
  workspace.Fill(0xFF);
  OSCAR_CUDA_CHECK(cudaDeviceSynchronize());
  AccumulateGram(rows, options, sums.data(), workspace.data(), stream);
  OSCAR_CUDA_CHECK(cudaStreamSynchronize(stream));
  return sums.ToHost();
}

bool SameBytes(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), 8 * a.size()) == 0;
}

std::vector<RowsShape> Shapes() {
  std::vector<RowsShape> shapes;
  for (const RowType type : {RowType::kBFloat16, RowType::kFloat16, RowType::kFloat32}) {
    for (const int64_t tokens : {1, 7, 16, 17, 33, 300})
      shapes.push_back({type, tokens, 8, 2, 128});
    for (const int dim : {32, 40, 64, 72, 80, 96, 120, 136, 192, 200, 256, 320, 512})
      shapes.push_back({type, 67, 6, 2, dim, 8, 16});
    for (const int ratio : {1, 2, 3, 5, 7, 12, 16, 24})
      shapes.push_back({type, 41, 3 * ratio, 3, 64, 0, 24});
  }
  shapes.push_back({RowType::kBFloat16, 3001, 32, 8, 128});  // every split, all of them full
  shapes.push_back({RowType::kFloat32, 2500, 5, 1, 192});
  return shapes;
}

TEST(GramKernel, Float64IsThePlainSum) {
  GramError worst;
  for (const RowsShape& shape : Shapes()) {
    const TestRows x = MakeRows(shape, RowsKind::kNormal, 1);
    const GramError error = WorstGramError(DeviceGram(x.rows), HostGram(x), shape.dim);
    EXPECT_LE(error.worst, kFloat64Error) << Describe(shape) << ": " << error.where;
    if (error.worst > worst.worst) worst = {error.worst, Describe(shape) + ", " + error.where};
  }
  fmt::print("float64: worst error {:.2e}: {}\n", worst.worst, worst.where);
}

TEST(GramKernel, SplitStaysWithinItsBound) {
  for (const RowsKind kind : kRowsKinds) {
    GramError worst;
    for (const RowsShape& shape : Shapes()) {
      const TestRows x = MakeRows(shape, kind, 2);
      const GramError error = WorstGramError(
          DeviceGram(x.rows, {.precision = GramPrecision::kBFloat16Split}), HostGram(x), shape.dim);
      EXPECT_LE(error.worst, kSplitError)
          << RowsKindName(kind) << ", " << Describe(shape) << ": " << error.where;
      if (error.worst > worst.worst) worst = {error.worst, Describe(shape) + ", " + error.where};
    }
    fmt::print("split, {}: worst error {:.2e}: {}\n", RowsKindName(kind), worst.worst, worst.where);
  }
}

// More rows than one float32 sum may hold: 264 KV heads leave each a split of all its 1,100 rows.
TEST(GramKernel, SplitAddsItsFloat32Sums) {
  for (const RowType type : {RowType::kBFloat16, RowType::kFloat16, RowType::kFloat32}) {
    const TestRows x = MakeRows({type, kSplitRows + 76, 264, 264, 72}, RowsKind::kNormal, 9);
    const GramError error =
        WorstGramError(DeviceGram(x.rows, {.precision = GramPrecision::kBFloat16Split}),
                       DeviceGram(x.rows), x.rows.dim);
    EXPECT_LE(error.worst, kSplitError) << error.where;
  }
}

TEST(GramKernel, AddsToWhatIsThere) {
  for (const GramPrecision precision : {GramPrecision::kFloat64, GramPrecision::kBFloat16Split}) {
    const TestRows x = MakeRows({RowType::kBFloat16, 100, 4, 2, 128}, RowsKind::kNormal, 3);
    const std::vector<double> from_zero = DeviceGram(x.rows, {precision});
    const std::vector<double> from_seven = DeviceGram(x.rows, {precision}, 7);
    for (size_t i = 0; i < from_zero.size(); ++i) ASSERT_EQ(from_seven[i], 7 + from_zero[i]);
  }
}

TEST(GramKernel, NothingIsAddedOfNoTokens) {
  const TestRows x = MakeRows({RowType::kBFloat16, 0, 4, 2, 64}, RowsKind::kNormal, 3);
  EXPECT_EQ(GramWorkspaceBytes(x.rows), 0u);
  for (const double sum : DeviceGram(x.rows, {}, 7)) ASSERT_EQ(sum, 7);
}

TEST(GramKernel, WeightsCountRows) {
  for (const int dim : {40, 64, 128, 192, 256}) {
    for (const int ratio : {1, 4}) {
      const RowsShape shape{RowType::kBFloat16, 517, 2 * ratio, 2, dim, 8, 8};
      const TestRows x = MakeRows(shape, RowsKind::kNormal, 4);
      std::vector<double> weights;
      for (int64_t i = 0; i < shape.num_tokens * 2; ++i)
        weights.push_back(0.1 + 3 * std::abs(std::sin(static_cast<double>(i))));
      const DeviceArray<double> device_weights(weights);
      const std::vector<double> sums = DeviceGram(x.rows, {.weights = device_weights.data()});
      const GramError error = WorstGramError(sums, HostGram(x, weights), dim);
      EXPECT_LE(error.worst, kFloat64Error) << Describe(shape) << ": " << error.where;
    }
  }
}

TEST(GramKernel, BothTrianglesAreTheSameBits) {
  for (const int dim : {64, 128, 320}) {
    const TestRows x = MakeRows({RowType::kBFloat16, 333, 4, 2, dim}, RowsKind::kHeavyTails, 5);
    const DeviceArray<double> weights(std::vector<double>(333 * 2, 1.0 / 3));
    for (const GramOptions& options :
         {GramOptions{}, GramOptions{.precision = GramPrecision::kBFloat16Split},
          GramOptions{.weights = weights.data()}}) {
      const std::vector<double> sums = DeviceGram(x.rows, options);
      const auto size = static_cast<size_t>(dim);
      for (size_t i = 0; i < size; ++i) {
        for (size_t j = 0; j < i; ++j) ASSERT_EQ(sums[i * size + j], sums[j * size + i]);
      }
    }
  }
}

TEST(GramKernel, SameBytesFromRunToRunAndBesideOtherWork) {
  for (const GramPrecision precision : {GramPrecision::kFloat64, GramPrecision::kBFloat16Split}) {
    for (const int dim : {64, 128, 256}) {
      const TestRows x = MakeRows({RowType::kBFloat16, 3000, 16, 4, dim}, RowsKind::kNormal, 6);
      const TestRows other = MakeRows({RowType::kBFloat16, 2000, 8, 8, 128}, RowsKind::kNormal, 7);
      const GramOptions options{precision};
      const std::vector<double> expected = DeviceGram(x.rows, options);
      const Stream stream, busy;
      const DeviceArray<double> sums(size_t{8} * 128 * 128);
      const DeviceArray<uint8_t> workspace(GramWorkspaceBytes(other.rows));
      for (int run = 0; run < 5; ++run) {
        for (int i = 0; i < 20; ++i)
          AccumulateGram(other.rows, options, sums.data(), workspace.data(), busy.stream);
        const DeviceArray<double> mine(std::vector<double>(expected.size(), 0.0));
        const DeviceArray<uint8_t> own(GramWorkspaceBytes(x.rows));
        AccumulateGram(x.rows, options, mine.data(), own.data(), stream.stream);
        OSCAR_CUDA_CHECK(cudaStreamSynchronize(stream.stream));
        EXPECT_TRUE(SameBytes(mine.ToHost(), expected)) << "dim " << dim << ", run " << run;
        OSCAR_CUDA_CHECK(cudaStreamSynchronize(busy.stream));
      }
    }
  }
}

// What LayerMoments::CheckFinite must see.
TEST(GramKernel, InfinityAndNanAreNotLost) {
  for (const RowType type : {RowType::kBFloat16, RowType::kFloat16, RowType::kFloat32}) {
    for (const GramPrecision precision : {GramPrecision::kFloat64, GramPrecision::kBFloat16Split}) {
      for (const float bad : {INFINITY, NAN}) {
        const TestRows x = MakeRows({type, 50, 2, 2, 128}, RowsKind::kNormal, 8);
        const auto size = static_cast<size_t>(RowTypeBytes(type));
        std::vector<uint8_t> memory = x.memory.ToHost();
        const uint32_t infinity[] = {0x7F80, 0x7C00, 0x7F800000},
                       nan[] = {0x7FC0, 0x7E00, 0x7FC00000};
        const uint32_t word = (std::isnan(bad) ? nan : infinity)[static_cast<int>(type)];
        // Token 20, KV head 1, feature 77.
        std::memcpy(memory.data() + (20 * 256 + 128 + 77) * size, &word, size);
        OSCAR_CUDA_CHECK(
            cudaMemcpy(x.memory.data(), memory.data(), memory.size(), cudaMemcpyHostToDevice));
        const std::vector<double> sums = DeviceGram(x.rows, {precision});
        for (size_t i = 0; i < 128; ++i) {
          ASSERT_FALSE(std::isfinite(sums[128 * 128 + 77 * 128 + i]));
          ASSERT_FALSE(std::isfinite(sums[128 * 128 + i * 128 + 77]));
          ASSERT_TRUE(std::isfinite(sums[i * 128 + 77]));
        }
      }
    }
  }
}

}  // namespace
}  // namespace oscar
