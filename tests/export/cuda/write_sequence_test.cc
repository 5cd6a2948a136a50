// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests sequences of calls: prompts in chunks, and decode steps with appends and flushes in a CUDA
// graph. Also tests rotations alone.
#include <cmath>

#include "tests/export/cuda/write_test_cache.h"

namespace oscar {
namespace {

constexpr int kHeads = 2;

struct Sequence {
  Sequence(int tokens, const PagedSide& k_side, const PagedSide& v_side)
      : k(RandomBf16(static_cast<size_t>(tokens * kHeads * k_side.dim), 1)),
        v(RandomBf16(static_cast<size_t>(tokens * kHeads * v_side.dim), 2)),
        k_device(k),
        v_device(v),
        k_row(static_cast<size_t>(kHeads * k_side.dim)),
        v_row(static_cast<size_t>(kHeads * v_side.dim)) {}
  Bf16Rows k, v;  // [tokens, kHeads, dim]
  DeviceArray<__nv_bfloat16> k_device, v_device;
  size_t k_row, v_row;
};

class WriteSequenceTest : public ::testing::TestWithParam<PagedSide> {
 protected:
  WriteSequenceTest() : bad_(1) {
    bad_.Fill(0);
    options_.bad_rows = bad_.data();
    options_.k.clip_ratio = 0.96;
    options_.v.clip_ratio = 0.92;
  }
  WriteOptions options_;
  DeviceArray<uint32_t> bad_;
};

TEST_P(WriteSequenceTest, ChunksGiveTheSamePages) {
  const PagedSide side = GetParam();
  const int sink = 16;
  const int recent = 24;
  const int total = 187;
  WriteTestShape shape;
  shape.format = {side, side, MetadataType::kFloat32, 64};
  shape.num_kv_heads = kHeads;
  shape.lengths = {total};
  shape.quantized = {0};
  shape.sink_tokens = sink;
  WriteTestCache cache(shape);
  const Sequence rows(total, side, side);
  DeviceArray<int32_t> before(1);
  int begin = 0;
  int quantized = 0;
  for (const int chunk : {5, 11, 1, 60, 33, 77}) {
    const int end = begin + chunk;
    const int quantized_before = quantized;
    quantized = std::max(0, (end - sink - recent) / 8 * 8);
    // Window tokens that are quantized at the new length are moved first.
    const int moved = std::min(quantized, std::max(0, begin - sink));
    cache.SetCounters({begin}, {moved});
    before = DeviceArray<int32_t>(std::vector<int32_t>{quantized_before});
    FlushWindows(cache.view(), options_, before.data(), 8, nullptr);
    for (int i = quantized_before; i < moved; ++i)
      cache.Expect(0, sink + i, &rows.k[(sink + i) * rows.k_row], &rows.v[(sink + i) * rows.v_row],
                   options_);
    cache.SetCounters({end}, {quantized});
    const DeviceArray<int32_t> row_begin(std::vector<int32_t>{0, chunk});
    const DeviceArray<int32_t> position_begin(std::vector<int32_t>{begin});
    WritePrefill(
        cache.view(), options_,
        {rows.k_device.data() + begin * rows.k_row, rows.v_device.data() + begin * rows.v_row,
         chunk, row_begin.data(), position_begin.data()},
        nullptr);
    for (int p = begin; p < end; ++p)
      cache.Expect(0, p, &rows.k[p * rows.k_row], &rows.v[p * rows.v_row], options_);
    ASSERT_TRUE(cache.Matches()) << "after " << end << " tokens";
    begin = end;
  }
}

TEST_P(WriteSequenceTest, DecodeStepsInAGraph) {
  const PagedSide side = GetParam();
  const int sink = 16;
  const int recent = 16;
  const int steps = 45;
  WriteTestShape shape;
  shape.format = {side, side, MetadataType::kFloat32, 16};
  shape.num_kv_heads = kHeads;
  shape.lengths = {3, 40, 0, 33};
  const int requests = 4;
  shape.quantized = {0, 8, 0, 0};
  shape.sink_tokens = sink;
  WriteTestShape longest = shape;
  for (int& length : longest.lengths) length += steps;
  WriteTestCache cache(longest);
  cache.SetCounters(shape.lengths, shape.quantized);
  const Sequence rows(steps * requests, side, side);
  DeviceArray<__nv_bfloat16> k(rows.k_row * requests), v(rows.v_row * requests);
  DeviceArray<int32_t> before(static_cast<size_t>(requests));

  cudaStream_t stream;
  OSCAR_CUDA_CHECK(cudaStreamCreate(&stream));
  OSCAR_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  AppendTokens(cache.view(), options_, k.data(), v.data(), stream);
  FlushWindows(cache.view(), options_, before.data(), 8, stream);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  OSCAR_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  OSCAR_CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));

  std::vector<int> lengths = shape.lengths;
  std::vector<int> quantized = shape.quantized;
  for (int step = 0; step < steps; ++step) {
    const std::vector<int> quantized_before = quantized;
    for (size_t r = 0; r < lengths.size(); ++r) {
      ++lengths[r];
      quantized[r] = std::max(quantized[r], std::max(0, lengths[r] - sink - recent) / 8 * 8);
    }
    cache.SetCounters(lengths, quantized);
    OSCAR_CUDA_CHECK(
        cudaMemcpy(before.data(), quantized_before.data(), before.bytes(), cudaMemcpyHostToDevice));
    const size_t row = static_cast<size_t>(step * requests);
    OSCAR_CUDA_CHECK(cudaMemcpyAsync(k.data(), &rows.k[row * rows.k_row], k.bytes(),
                                     cudaMemcpyHostToDevice, stream));
    OSCAR_CUDA_CHECK(cudaMemcpyAsync(v.data(), &rows.v[row * rows.v_row], v.bytes(),
                                     cudaMemcpyHostToDevice, stream));
    OSCAR_CUDA_CHECK(cudaGraphLaunch(executable, stream));
    OSCAR_CUDA_CHECK(cudaStreamSynchronize(stream));
    // The append runs before the flush, when nothing new is quantized yet.
    cache.SetCounters(lengths, quantized_before);
    for (int r = 0; r < requests; ++r)
      cache.Expect(r, lengths[static_cast<size_t>(r)] - 1, &rows.k[(row + r) * rows.k_row],
                   &rows.v[(row + r) * rows.v_row], options_);
    cache.SetCounters(lengths, quantized);
    for (int r = 0; r < requests; ++r) {
      const auto i = static_cast<size_t>(r);
      for (int token = quantized_before[i]; token < quantized[i]; ++token) {
        // The token was appended `back` steps ago. Tokens from before the first step are NaN.
        const int back = lengths[i] - 1 - (sink + token);
        if (back <= step) {
          const size_t at = static_cast<size_t>((step - back) * requests + r);
          cache.Expect(r, sink + token, &rows.k[at * rows.k_row], &rows.v[at * rows.v_row],
                       options_);
        } else {
          const Bf16Rows nan(static_cast<size_t>(kHeads * side.dim), __float2bfloat16(NAN));
          cache.Expect(r, sink + token, nan.data(), nan.data(), options_);
        }
      }
    }
    ASSERT_TRUE(cache.Matches()) << "step " << step;
  }
  EXPECT_EQ(bad_.ToHost()[0], static_cast<uint32_t>(cache.bad_rows()));
  OSCAR_CUDA_CHECK(cudaGraphExecDestroy(executable));
  OSCAR_CUDA_CHECK(cudaGraphDestroy(graph));
  OSCAR_CUDA_CHECK(cudaStreamDestroy(stream));
}

INSTANTIATE_TEST_SUITE_P(Sides, WriteSequenceTest,
                         ::testing::Values(PagedSide{128, 2, 128}, PagedSide{128, 3, 64},
                                           PagedSide{128, 4, 32}, PagedSide{96, 2, 96},
                                           PagedSide{96, 3, 32}, PagedSide{64, 3, 64},
                                           PagedSide{256, 2, 64}));

TEST(RotateRows, EqualsFloat64) {
  for (const int dim : {64, 96, 128, 256, 512}) {
    for (const bool transposed : {false, true}) {
      const int heads = 6;
      const int matrices = 3;
      const int64_t num_rows = 37;
      const auto size = static_cast<size_t>(num_rows * heads * dim);
      const Bf16Rows x = RandomBf16(size, 3);
      const Bf16Rows r =
          RandomBf16(static_cast<size_t>(matrices * dim * dim), 4, 1 / std::sqrt(dim));
      DeviceArray<__nv_bfloat16> rows(x);
      const DeviceArray<__nv_bfloat16> matrix(r);
      RotateRows(
          {rows.data(), rows.data(), num_rows, heads, dim, matrix.data(), matrices, transposed},
          nullptr);
      const Bf16Rows y = rows.ToHost();
      double worst = 0;
      for (size_t row = 0; row < static_cast<size_t>(num_rows * heads); ++row) {
        const __nv_bfloat16* m = &r[row % heads / (heads / matrices) * dim * dim];
        for (int j = 0; j < dim; j += 5) {
          double sum = 0;
          double magnitude = 0;
          for (int i = 0; i < dim; ++i) {
            const double term =
                double{__bfloat162float(x[row * dim + i])} *
                double{__bfloat162float(transposed ? m[j * dim + i] : m[i * dim + j])};
            sum += term;
            magnitude += std::abs(term);
          }
          worst = std::max(worst, std::abs(double{__bfloat162float(y[row * dim + j])} - sum) /
                                      (std::abs(sum) / 256 + magnitude * 1e-5));
        }
      }
      EXPECT_LE(worst, 1) << dim << (transposed ? " transposed" : "");
    }
  }
}

// A launch that may start early must read what the previous kernel writes, not the old contents.
TEST(WritePrefill, OverlapsTheKernelBefore) {
  constexpr int kTokens = 512, kDim = 128;
  WriteTestShape shape;
  shape.num_kv_heads = kHeads;
  shape.lengths = {kTokens};
  shape.quantized = {kTokens - 40};
  WriteTestCache cache(shape);
  const Sequence rows(kTokens, shape.format.k, shape.format.v);
  const Bf16Rows matrix = RandomBf16(kDim * kDim, 7, 0.09);
  const DeviceArray<__nv_bfloat16> r(matrix);
  const DeviceArray<int32_t> row_begin(std::vector<int32_t>{0, kTokens});
  DeviceArray<uint32_t> bad(1);
  bad.Fill(0);
  WriteOptions options;
  options.k.clip_ratio = 0.96;
  options.v.clip_ratio = 0.92;
  options.bad_rows = bad.data();
  options.overlap_previous = true;
  for (int i = 0; i < 16; ++i) {
    for (const auto* side : {&rows.k_device, &rows.v_device})
      RotateRows({side->data(), side->data(), kTokens, kHeads, kDim, r.data(), 1, false}, nullptr);
    WritePrefill(cache.view(), options,
                 {rows.k_device.data(), rows.v_device.data(), kTokens, row_begin.data(), nullptr},
                 nullptr);
  }
  const Bf16Rows k = rows.k_device.ToHost(), v = rows.v_device.ToHost();
  for (int t = 0; t < kTokens; ++t)
    cache.Expect(0, t, &k[t * rows.k_row], &v[t * rows.v_row], options);
  EXPECT_TRUE(cache.Matches());
}

TEST(AppendTokens, RotatesIntoTheWindows) {
  WriteTestShape shape;
  shape.format = {{192, 2, 192}, {128, 2, 128}, MetadataType::kFloat32, 64};
  shape.num_kv_heads = kHeads;
  shape.lengths = {1, 0, 16, 17, 49, 90};
  shape.quantized = {0, 0, 0, 0, 8, 48};
  const int requests = 6;
  WriteTestCache cache(shape);
  const Sequence rows(requests, shape.format.k, shape.format.v);
  const Bf16Rows k_r = RandomBf16(kHeads * 192 * 192, 5, 0.07);
  const Bf16Rows v_r = RandomBf16(128 * 128, 6, 0.09);
  const DeviceArray<__nv_bfloat16> k_matrix(k_r), v_matrix(v_r);
  WriteOptions options;
  options.k = {k_matrix.data(), true, 0.96};
  options.v = {v_matrix.data(), false, 0.92};
  AppendTokens(cache.view(), options, rows.k_device.data(), rows.v_device.data(), nullptr);
  RotateRows({rows.k_device.data(), rows.k_device.data(), requests, kHeads, 192, k_matrix.data(),
              kHeads, false},
             nullptr);
  RotateRows({rows.v_device.data(), rows.v_device.data(), requests, kHeads, 128, v_matrix.data(), 1,
              false},
             nullptr);
  const Bf16Rows k = rows.k_device.ToHost(), v = rows.v_device.ToHost();
  for (int r = 0; r < requests; ++r) {
    const int length = shape.lengths[static_cast<size_t>(r)];
    if (length > 0) cache.Expect(r, length - 1, &k[r * rows.k_row], &v[r * rows.v_row], options);
  }
  EXPECT_TRUE(cache.Matches());
}

}  // namespace
}  // namespace oscar
