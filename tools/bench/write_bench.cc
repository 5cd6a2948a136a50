// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Benchmarks the write path at the geometry of Qwen3-8B: 8 KV heads, d 128, 64 sink and 256 recent
// tokens in bf16. The cases write a prompt of 30,000 tokens, flush 8 decoded tokens, or append one
// token. Each layer has its own cache. Writes of prompts overlap (programmatic dependent launch)
// unless the name of a case says otherwise.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <span>

#include "export/cuda/reference/device_factors.h"
#include "export/cuda/reference/random_cache.h"
#include "export/cuda/reference/unpack_pages.h"
#include "export/cuda/write/write_cache.h"
#include "linalg/error_feedback.h"
#include "tools/bench/bench_table.h"

namespace oscar {
namespace {

constexpr int kHeads = 8, kLayers = 36;

struct WriteShape {
  CacheFormat format{};
  int requests = 1;
  int tokens = 30000;  // tokens per request
  bool rotated = true;
  bool overlap = true;
  ClipMethod method = ClipMethod::kSort;
  double k_clip = 0.96, v_clip = 0.92;
  bool k_feedback = false, v_feedback = false;
  ScaleFit k_scales = ScaleFit::kRange, v_scales = ScaleFit::kRange;
};

// Returns an error feedback factor per head. Its metric is x^T x of 2 * dim Gaussian rows x.
std::vector<Matrix> GaussianFactors(int dim, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Matrix> factors;
  for (int head = 0; head < kHeads; ++head) {
    const Matrix rows = Matrix::NullaryExpr(2 * dim, dim, [&] { return normal(random); });
    factors.push_back(FeedbackFactor(rows.transpose() * rows, 0.2, "benchmark"));
  }
  return factors;
}

// The inputs and the cache of every layer.
struct Setup {
  explicit Setup(const WriteShape& write_shape, bool with_inputs)
      : shape(write_shape), bad_rows(1), row_begin(std::vector<int32_t>{0, write_shape.tokens}) {
    bad_rows.Fill(0);
    const CacheFormat& format = shape.format;
    for (int layer = 0; layer < kLayers; ++layer) {
      RandomCacheOptions options;
      options.format = format;
      options.num_kv_heads = kHeads;
      options.lengths = std::vector<int>(static_cast<size_t>(shape.requests), shape.tokens);
      options.seed = static_cast<uint64_t>(layer) + 1;
      caches.emplace_back(options);
      const auto rows = static_cast<size_t>(with_inputs ? shape.tokens : shape.requests) * kHeads;
      const auto seed = static_cast<uint64_t>(1000 + 2 * layer);
      k.push_back(Normal(rows * format.k.dim, 1, seed));
      v.push_back(Normal(rows * format.v.dim, 1, seed + 1));
    }
    k_rotation =
        Normal(size_t{kHeads} * format.k.dim * format.k.dim, std::pow(format.k.dim, -0.5), 1);
    v_rotation =
        Normal(size_t{kHeads} * format.v.dim * format.v.dim, std::pow(format.v.dim, -0.5), 2);
    if (shape.k_feedback) factors[0].emplace(GaussianFactors(format.k.dim, 3));
    if (shape.v_feedback) factors[1].emplace(GaussianFactors(format.v.dim, 4));
  }
  static DeviceArray<__nv_bfloat16> Normal(size_t size, double scale, uint64_t seed) {
    DeviceArray<__nv_bfloat16> values(size);
    FillNormal(values.data(), size, scale, seed);
    return values;
  }
  WriteOptions Options() const {
    WriteOptions options;
    options.k = {shape.rotated ? k_rotation.data() : nullptr, true, shape.k_clip};
    options.v = {shape.rotated ? v_rotation.data() : nullptr, true, shape.v_clip};
    options.k.scales = shape.k_scales;
    options.v.scales = shape.v_scales;
    if (factors[0]) factors[0]->Give(options.k);
    if (factors[1]) factors[1]->Give(options.v);
    options.clip_method = shape.method;
    options.bad_rows = bad_rows.data();
    options.overlap_previous = shape.overlap;
    return options;
  }
  PrefillTokens Tokens(int layer) const {
    return {k[static_cast<size_t>(layer)].data(), v[static_cast<size_t>(layer)].data(),
            shape.tokens, row_begin.data(), nullptr};
  }
  const CacheView& View(int layer) const { return caches[static_cast<size_t>(layer)].view(); }
  int Quantized() const {
    const CacheView& view = View(0);
    return (shape.tokens - view.sink_tokens - 256) / 8 * 8;
  }

  WriteShape shape;
  std::vector<RandomCache> caches;
  std::vector<DeviceArray<__nv_bfloat16>> k, v;
  DeviceArray<__nv_bfloat16> k_rotation, v_rotation;
  std::optional<DeviceFactors> factors[2];
  DeviceArray<uint32_t> bad_rows;
  DeviceArray<int32_t> row_begin, quantized_before;
};

// Returns the bytes that the quantized tokens of all heads take.
double RecordBytesOf(const CacheFormat& format, int64_t tokens) {
  return static_cast<double>(tokens) * kHeads * RecordBytes(format) / kTileTokens;
}

// Compares the codes and metadata of quantized tokens [begin, begin + count) of a request with
// those of linalg. `rows`: rotated rows [.., kHeads, dim] that start at `begin`. Returns the number
// of values that differ.
int64_t CountDifferent(const Setup& setup, int layer, int request, int begin, int count,
                       const std::vector<__nv_bfloat16> (&rows)[2]) {
  const CacheView& view = setup.View(layer);
  int64_t different = 0;
  for (const bool values : {false, true}) {
    const PagedSide& side = values ? view.format.v : view.format.k;
    const auto dim = static_cast<size_t>(side.dim);
    const auto metadata_size = static_cast<size_t>(2 * GroupsPerRow(side));
    const auto num_rows = static_cast<size_t>(count * kHeads);
    const DeviceArray<uint8_t> codes(num_rows * dim);
    const DeviceArray<float> metadata(num_rows * metadata_size);
    UnpackedRows out;
    (values ? out.v_codes : out.k_codes) = codes.data();
    (values ? out.v_scales_zeros : out.k_scales_zeros) = metadata.data();
    UnpackPages(view, request, begin, count, out, nullptr);
    const std::vector<uint8_t> got = codes.ToHost();
    const std::vector<float> got_metadata = metadata.ToHost();
    const RowClip clip{values ? setup.shape.v_clip : setup.shape.k_clip, setup.shape.method};
    std::vector<float> x(dim), expected_metadata(metadata_size);
    std::vector<uint8_t> expected(dim);
    for (size_t row = 0; row < num_rows; ++row) {
      for (size_t i = 0; i < dim; ++i) x[i] = __bfloat162float(rows[values ? 1 : 0][row * dim + i]);
      const AffineFormat affine{side.bits, side.quant_group_size, view.format.metadata,
                                values ? setup.shape.v_scales : setup.shape.k_scales};
      if (const auto& factors = setup.factors[values ? 1 : 0]) {
        EncodeAffineRowWithFeedback<float>(
            x, affine, clip,
            std::span(factors->values).subspan(row % kHeads * dim * dim, dim * dim), expected,
            expected_metadata);
      } else {
        ClipAndEncodeAffineRow(x, affine, clip, expected, expected_metadata);
      }
      for (size_t i = 0; i < dim; ++i) different += expected[i] != got[row * dim + i];
      for (size_t i = 0; i < metadata_size; ++i)
        different += !(expected_metadata[i] == got_metadata[row * metadata_size + i]);
    }
  }
  return different;
}

// Returns the largest error of y = x R against float64, for the first `heads` heads of a token.
double WorstRotation(const std::vector<__nv_bfloat16>& x, const std::vector<__nv_bfloat16>& y,
                     const std::vector<__nv_bfloat16>& r, size_t token, size_t heads, size_t dim) {
  double worst = 0;
  for (size_t head = 0; head < heads; ++head) {
    const size_t row = (token * kHeads + head) * dim;
    for (size_t j = 0; j < dim; ++j) {
      double sum = 0;
      for (size_t i = 0; i < dim; ++i)
        sum += double{__bfloat162float(x[row + i])} *
               double{__bfloat162float(r[(head * dim + i) * dim + j])};
      const double error = std::abs(double{__bfloat162float(y[row + j])} - sum);
      if (!(error <= worst)) worst = error;
    }
  }
  return worst;
}

BenchCheck Verdict(const Setup& setup, int64_t different, int tokens) {
  const uint32_t bad = setup.bad_rows.ToHost()[0];
  return {different == 0 && bad == 0,
          fmt::format("{} of the codes and scales of {} tokens differ from linalg, {} bad rows",
                      different, tokens, bad)};
}

// Checks one layer's cache after the timed launches, at places spread over the prompt.
BenchCheck CheckPrefill(const Setup& setup) {
  constexpr int kPlaces = 6, kCount = 48, kLayer = 1;
  const CacheFormat& format = setup.shape.format;
  const auto tokens = static_cast<size_t>(setup.shape.tokens);
  const DeviceArray<__nv_bfloat16> k_rotated(tokens * kHeads * format.k.dim),
      v_rotated(tokens * kHeads * format.v.dim);
  const auto rows_of = [&](const DeviceArray<__nv_bfloat16>& all, int dim, int begin) {
    std::vector<__nv_bfloat16> rows(static_cast<size_t>(kCount * kHeads * dim));
    OSCAR_CUDA_CHECK(cudaMemcpy(
        rows.data(), all.data() + int64_t{setup.View(kLayer).sink_tokens + begin} * kHeads * dim,
        2 * rows.size(), cudaMemcpyDeviceToHost));
    return rows;
  };
  // Writes the same tokens into another layer's cache to get the rotated rows, so that this layer's
  // cache does not change.
  WriteOptions options = setup.Options();
  options.rotated_k = k_rotated.data();
  options.rotated_v = v_rotated.data();
  WritePrefill(setup.View(0), options, setup.Tokens(kLayer), nullptr);
  int64_t different = 0;
  for (int place = 0; place < kPlaces; ++place) {
    const int begin = (setup.Quantized() - kCount) / (kPlaces - 1) * place;
    const std::vector<__nv_bfloat16> rows[2] = {rows_of(k_rotated, format.k.dim, begin),
                                                rows_of(v_rotated, format.v.dim, begin)};
    different += CountDifferent(setup, kLayer, 0, begin, kCount, rows);
  }
  BenchCheck verdict = Verdict(setup, different, kPlaces * kCount);
  if (!setup.shape.rotated) return verdict;
  double worst = 0;
  const auto check_side = [&](const DeviceArray<__nv_bfloat16>& x,
                              const DeviceArray<__nv_bfloat16>& y,
                              const DeviceArray<__nv_bfloat16>& r, int dim) {
    const std::vector<__nv_bfloat16> x_host = x.ToHost(), y_host = y.ToHost(), r_host = r.ToHost();
    for (const size_t token : {size_t{0}, tokens / 2 + 7, tokens - 1})
      worst = std::max(
          worst, WorstRotation(x_host, y_host, r_host, token, kHeads, static_cast<size_t>(dim)));
  };
  check_side(setup.k[kLayer], k_rotated, setup.k_rotation, format.k.dim);
  check_side(setup.v[kLayer], v_rotated, setup.v_rotation, format.v.dim);
  verdict.ok = verdict.ok && worst <= 0.02;
  verdict.text += fmt::format("; rotations within {:.1e} of float64", worst);
  return verdict;
}

BenchCase MakePrefill(const WriteShape& shape, double bar_us) {
  auto setup = std::make_shared<Setup>(shape, true);
  const CacheFormat& format = shape.format;
  const double row_values = kHeads * (format.k.dim + format.v.dim);
  BenchCase c;
  c.bytes = 2 * row_values * (2 * shape.tokens - setup->Quantized()) +
            RecordBytesOf(format, setup->Quantized());
  c.bar_us = bar_us;
  c.buffers = kLayers;
  c.launch = [setup](cudaStream_t stream, int set) {
    WritePrefill(setup->View(set), setup->Options(), setup->Tokens(set), stream);
  };
  c.check = [setup] { return CheckPrefill(*setup); };
  return c;
}

BenchCase MakeFlush(const WriteShape& shape, double bar_us) {
  auto setup = std::make_shared<Setup>(shape, false);
  for (int layer = 0; layer < kLayers; ++layer) {
    const CacheView& view = setup->View(layer);
    FillNormal(view.windows, static_cast<size_t>(WindowBytes(view) / 2 * shape.requests), 1,
               static_cast<uint64_t>(layer) + 7);
  }
  setup->quantized_before = DeviceArray<int32_t>(
      std::vector<int32_t>(static_cast<size_t>(shape.requests), setup->Quantized() - 8));
  const double row_values = kHeads * (shape.format.k.dim + shape.format.v.dim);
  BenchCase c;
  c.bytes = shape.requests * (8 * 2 * row_values + RecordBytesOf(shape.format, 8));
  c.bar_us = bar_us;
  c.buffers = kLayers;
  c.launch = [setup](cudaStream_t stream, int set) {
    FlushWindows(setup->View(set), setup->Options(), setup->quantized_before.data(), 8, stream);
  };
  c.check = [setup] {
    const CacheView& view = setup->View(1);
    const CacheFormat& format = view.format;
    std::vector<__nv_bfloat16> windows(static_cast<size_t>(WindowBytes(view) / 2));
    int32_t window = 0;
    OSCAR_CUDA_CHECK(
        cudaMemcpy(&window, view.window_of_request, sizeof(window), cudaMemcpyDeviceToHost));
    OSCAR_CUDA_CHECK(cudaMemcpy(windows.data(), view.windows + window * WindowBytes(view) / 2,
                                2 * windows.size(), cudaMemcpyDeviceToHost));
    std::vector<__nv_bfloat16> rows[2];
    for (int token = setup->Quantized() - 8; token < setup->Quantized(); ++token) {
      const int slot = view.sink_tokens + token % view.recent_slots;
      for (int head = 0; head < kHeads; ++head) {
        const __nv_bfloat16* k = windows.data() + head * WindowHeadValues(view);
        const __nv_bfloat16* v = k + WindowSlots(view) * format.k.dim;
        rows[0].insert(rows[0].end(), k + slot * format.k.dim, k + (slot + 1) * format.k.dim);
        rows[1].insert(rows[1].end(), v + slot * format.v.dim, v + (slot + 1) * format.v.dim);
      }
    }
    return Verdict(*setup, CountDifferent(*setup, 1, 0, setup->Quantized() - 8, 8, rows), 8);
  };
  return c;
}

BenchCase MakeAppend(const WriteShape& shape) {
  auto setup = std::make_shared<Setup>(shape, false);
  const CacheFormat& format = shape.format;
  const double row_values = kHeads * (format.k.dim + format.v.dim);
  BenchCase c;
  c.bytes = 4 * shape.requests * row_values +
            2.0 * kHeads * (format.k.dim * format.k.dim + format.v.dim * format.v.dim);
  c.buffers = kLayers;
  c.launch = [setup](cudaStream_t stream, int set) {
    const auto i = static_cast<size_t>(set);
    AppendTokens(setup->View(set), setup->Options(), setup->k[i].data(), setup->v[i].data(),
                 stream);
  };
  c.check = [setup] {
    // Compares the newest key of request 0, head 0 with float64.
    const CacheView& view = setup->View(1);
    const int dim = view.format.k.dim;
    const auto at = [](const auto& array) { return array.ToHost(); };
    const std::vector<__nv_bfloat16> x = at(setup->k[1]), r = at(setup->k_rotation);
    int32_t window = 0;
    OSCAR_CUDA_CHECK(
        cudaMemcpy(&window, view.window_of_request, sizeof(window), cudaMemcpyDeviceToHost));
    const int slot =
        view.sink_tokens + (setup->shape.tokens - 1 - view.sink_tokens) % view.recent_slots;
    std::vector<__nv_bfloat16> y(static_cast<size_t>(dim));
    OSCAR_CUDA_CHECK(cudaMemcpy(y.data(),
                                view.windows + window * WindowBytes(view) / 2 + slot * dim,
                                2 * y.size(), cudaMemcpyDeviceToHost));
    const double worst = WorstRotation(x, y, r, 0, 1, static_cast<size_t>(dim));
    return BenchCheck{worst <= 0.02, fmt::format("worst error {:.1e} against float64", worst)};
  };
  return c;
}

}  // namespace

std::vector<BenchEntry> WriteBench() {
  std::vector<BenchEntry> entries;
  const auto prefill = [&](const std::string& name, const WriteShape& shape, double bar) {
    entries.push_back({"write", "30000 tokens, " + name, [=] { return MakePrefill(shape, bar); }});
  };
  const CacheFormat int2;
  const CacheFormat int4{{128, 4, 128}, {128, 4, 128}};
  prefill("2 bits, rotated, sort", {}, 64);
  prefill("2 bits, rotated, sort, not overlapped", {.overlap = false}, 0);
  prefill("2 bits, rotated, bisect", {.method = ClipMethod::kBisect}, 64);
  prefill("2 bits, rotated, no clip", {.k_clip = 0, .v_clip = 0}, 64);
  prefill("2 bits, not rotated, sort", {.rotated = false}, 64);
  prefill("2 bits, groups of 32", {.format = {{128, 2, 32}, {128, 2, 32}}}, 0);
  prefill("4 bits, rotated, sort", {.format = int4}, 0);
  prefill("K 3 bits, V 2 bits, rotated, sort", {.format = {{128, 3, 128}, {}}}, 0);
  prefill("d 256, 2 bits, rotated, sort", {.format = {{256, 2, 256}, {256, 2, 256}}}, 0);
  // The cache format that oscar-calibrate chooses by default (--for any).
  WriteShape quarters{.format = {{128, 2, 32}, {128, 2, 32}, MetadataType::kByte},
                      .k_scales = ScaleFit::kUnbiasedRounded,
                      .v_scales = ScaleFit::kUnbiased};
  prefill("2 bits, byte quarters", quarters, 0);
  quarters.k_feedback = quarters.v_feedback = true;
  prefill("2 bits, byte quarters, error feedback", quarters, 0);
  prefill("2 bits, rotated, sort, error feedback", {.k_feedback = true, .v_feedback = true}, 128);
  prefill("2 bits, rotated, sort, error feedback of keys", {.k_feedback = true}, 128);
  const auto flush = [&](int requests, double bar, bool feedback = false,
                         bool of_quarters = false) {
    WriteShape shape = of_quarters ? quarters : WriteShape{};
    if (!of_quarters) shape.k_feedback = shape.v_feedback = feedback;
    shape.requests = requests;
    shape.tokens = requests > 1 ? 4096 : 30000;
    entries.push_back(
        {"flush",
         fmt::format("8 tokens, batch {}{}{}", requests, of_quarters ? ", byte quarters" : "",
                     feedback ? ", error feedback" : ""),
         [=] { return MakeFlush(shape, bar); }});
    if (feedback) return;
    entries.push_back(
        {"append", fmt::format("1 token, batch {}", requests), [=] { return MakeAppend(shape); }});
  };
  flush(1, 5);
  flush(32, 0);
  flush(1, 0, true);
  flush(32, 0, true);
  flush(1, 0, true, true);
  flush(32, 0, true, true);
  return entries;
}

}  // namespace oscar
