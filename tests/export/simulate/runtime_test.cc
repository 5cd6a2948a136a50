// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares every simulated runtime with plain loops over scalar codecs: a prompt fills a cache,
// which then grows token by token. Rotations are Hadamard matrices and rows are small whole
// numbers, so the only rounding in a rotation is the runtime's own.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "calib/job/refit_layer.h"
#include "export/artifact/artifact_writer.h"
#include "export/simulate/runtime_cache.h"
#include "linalg/affine_codec.h"
#include "linalg/stored_float.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/reference/half_offset_codec.h"
#include "tests/reference/scalar_llama_q2.h"
#include "tests/reference/scalar_lloyd_max.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

constexpr int64_t kLayers = 6, kQHeads = 4, kHeads = 2, kDim = 64;
constexpr double kRuntimeKeyClip = 0.96, kRuntimeValueClip = 0.92;
constexpr CacheWindows kWindows = {20, 40};
constexpr double kTolerance = 2e-3;  // for numbers up to 1000, rotated back in float32

// Returns diagonal covariances with ascending values. Their eigenvectors are unit vectors, so
// rotations are Hadamard matrices with permuted columns and elements +-1/8.
LayerMoments DiagonalMoments(int layer_id) {
  LayerMoments moments;
  moments.layer_id = layer_id;
  moments.num_q_heads = kQHeads;
  moments.num_kv_heads = kHeads;
  moments.head_dim = moments.v_head_dim = kDim;
  moments.tokens = 10000;
  moments.query.assign(kHeads * kDim * kDim, 0);
  for (int64_t head = 0; head < kHeads; ++head) {
    for (int64_t i = 0; i < kDim; ++i)
      moments.query[static_cast<size_t>((head * kDim + i) * kDim + i)] = static_cast<double>(i + 1);
  }
  moments.key = moments.value = moments.attention_output = moments.diagonal = moments.query;
  for (double& sum : moments.value) sum *= 2;  // equal sums would mean latent attention
  moments.key_sum.assign(kHeads * kDim, 0);
  moments.diagonal_weight.assign(kHeads, 1);
  return moments;
}

class HadamardContext {
 public:
  explicit HadamardContext(const std::string& name, int64_t prefill,
                           CacheWindows windows = kWindows)
      : artifact_(Make(name)) {
    for (int i = 0; i < kLayers; ++i) {
      LayerSpec layer;
      layer.layer_id = i;
      layer.attention.num_q_heads = kQHeads;
      layer.attention.num_kv_heads = kHeads;
      layer.attention.head_dim = layer.attention.v_head_dim = kDim;
      layer.attention.rope.rotary_dim = kDim;
      layers_.push_back(layer);
    }
    MethodContext::Options options;
    options.prefill_tokens = prefill;
    options.windows = windows;
    context_ = std::make_unique<MethodContext>(artifact_, layers_, options);
  }
  LayerCache Cache(std::string_view method, size_t layer = 2) const {
    return CacheMethodNamed(method).make(*context_, layer, {});
  }
  const MethodContext& context() const { return *context_; }

 private:
  static Artifact Make(const std::string& name) {
    const auto path = TestScratch("runtime_" + name) / "artifact";
    ClipOptions clip;
    clip.mode = ClipMode::kFixed;
    clip.fixed_k = kRuntimeKeyClip;
    clip.fixed_v = kRuntimeValueClip;
    WriteArtifact(path, SampleInfo(), {kLayers, [&](size_t i) {
                                         return RefitLayer(DiagonalMoments(static_cast<int>(i)), {},
                                                           clip);
                                       }});
    return Artifact::Open(path);
  }

  Artifact artifact_;
  std::vector<LayerSpec> layers_;
  std::unique_ptr<MethodContext> context_;
};

// Returns element [i, j] of HadamardContext's rotations: H with bit-reversed, complemented columns.
double Rotation(int64_t i, int64_t j) {
  int64_t column = 0;
  for (int bit = 0; bit < 6; ++bit) column |= (~j >> bit & 1) << (5 - bit);
  return __builtin_popcountll(static_cast<uint64_t>(i & column)) % 2 == 0 ? 0.125 : -0.125;
}

using Row = std::vector<float>;

Row Rotated(const Row& x) {
  Row y(kDim);
  for (int64_t j = 0; j < kDim; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < kDim; ++i) sum += x[static_cast<size_t>(i)] * Rotation(i, j);
    y[static_cast<size_t>(j)] = static_cast<float>(sum);
  }
  return y;
}
Row RotatedBack(const Row& y) {
  Row x(kDim);
  for (int64_t i = 0; i < kDim; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < kDim; ++j) sum += y[static_cast<size_t>(j)] * Rotation(i, j);
    x[static_cast<size_t>(i)] = static_cast<float>(sum);
  }
  return x;
}
Row Each(Row row, float (*round)(float)) {
  std::transform(row.begin(), row.end(), row.begin(), round);
  return row;
}

void Affine(Row& y, double ratio, ClipMethod method) {
  QuantizeDequantizeAffineRow<float>(y, {2, kDim, MetadataType::kFloat32}, {ratio, method}, y);
}
void LloydMax(Row& y, double ratio) {
  ClampRow<float>(y, ClipThresholdSort<float>(y, ratio));
  std::vector<uint8_t> codes(y.size());
  Row numbers(2);
  EncodeLloydMax<float>(y, LloydMaxForm::kServing, StoredFloat::kFloat32, codes, numbers);
  DecodeLloydMax<float>(codes, numbers, LloydMaxForm::kServing, y);
}
void Half(Row& y, double ratio) {
  ClampRow<float>(y, ClipThresholdInterpolated(y, ratio));
  std::vector<uint8_t> codes(y.size());
  const HalfOffset group = EncodeHalfOffsetRow(y, codes);
  DecodeHalfOffsetRow(codes, group, y);
}

// A description of a runtime that is independent of the table in runtimes.cc.
struct Runtime {
  const char* name;
  bool bf16;
  int64_t page, sink;  // tokens that leave the window together; exact first tokens
  void (*prompt)(Row& y, bool key);
  void (*decode)(Row& y, bool key);
  Row (*window)(const Row& x, const Row& y);
};
double RatioOf(bool key) { return key ? kRuntimeKeyClip : kRuntimeValueClip; }
Row TurnedBack(const Row&, const Row& y) { return RotatedBack(y); }

const Runtime kRuntimes[] = {
    {"runtime_sglang", true, 8, 20,
     [](Row& y, bool key) { Affine(y, RatioOf(key), ClipMethod::kSort); },
     [](Row& y, bool key) { Affine(y, RatioOf(key), ClipMethod::kBisect); }, TurnedBack},
    {"runtime_sglang_lm", true, 8, 20, [](Row& y, bool key) { LloydMax(y, RatioOf(key)); },
     [](Row& y, bool key) { Affine(y, RatioOf(key), ClipMethod::kBisect); }, TurnedBack},
    {"runtime_sglang_oct", true, 8, 20,
     [](Row& y, bool key) { Affine(y, RatioOf(key), ClipMethod::kSort); },
     [](Row& y, bool key) { Affine(y, RatioOf(key), ClipMethod::kBisect); }, TurnedBack},
    {"runtime_sglang_oct_lm", true, 8, 20, [](Row& y, bool key) { LloydMax(y, RatioOf(key)); },
     [](Row& y, bool key) { Affine(y, RatioOf(key), ClipMethod::kBisect); }, TurnedBack},
    {"runtime_vllm", false, 1, 16, [](Row& y, bool key) { Half(y, RatioOf(key)); },
     [](Row& y, bool key) { Half(y, RatioOf(key)); }, [](const Row& x, const Row&) { return x; }},
    {"runtime_llamacpp", false, 1, 20,
     [](Row& y, bool) { QuantizeDequantizeLlamaQ2(y, kRuntimeKeyClip, {}, y); },
     [](Row& y, bool) { QuantizeDequantizeLlamaQ2(y, kRuntimeKeyClip, {}, y); },
     [](const Row&, const Row& y) { return RotatedBack(Each(y, RoundToFloat16)); }},
};

// Returns whole numbers that are exact in bf16. When rotated, they need more bits than bf16 or
// float16 has.
at::Tensor WholeNumbers(int64_t tokens, int64_t heads, uint64_t seed) {
  at::manual_seed(seed);
  at::Tensor rows = at::randn({tokens, heads, kDim}).mul_(100).round_();
  rows.select(-1, 1).mul_(8);
  rows[3].zero_();
  rows[5].fill_(2);
  return rows.to(at::kBFloat16).to(at::kFloat);  // as a bf16 model outputs them
}

Row RowOf(const at::Tensor& rows, int64_t token, int64_t head) {
  const at::Tensor row = rows[token][head].contiguous();
  return {row.const_data_ptr<float>(), row.const_data_ptr<float>() + kDim};
}

// Fills the cache with a prompt and grows it. Expects every query to read the rows of a plain loop.
void ExpectLoop(const Runtime& runtime, int64_t prefill) {
  constexpr int64_t kTokens = 130;
  const HadamardContext context(fmt::format("{}_{}", runtime.name, prefill), prefill);
  const LayerCache cache = context.Cache(runtime.name);
  const CacheSides rows = {WholeNumbers(kTokens, kHeads, 1), WholeNumbers(kTokens, kHeads, 2)};
  const CachedRows cached = cache.store(rows);
  for (const bool key : {true, false}) {
    const at::Tensor& x = key ? rows.k : rows.v;
    const at::Tensor& quantized = key ? cached.quantized.k : cached.quantized.v;
    const at::Tensor& window = key ? cached.exact.k : cached.exact.v;
    const at::Tensor& exact = window.defined() ? window : x;
    const ExactTokens& exact_tokens = key ? cache.k_exact : cache.v_exact;
    const auto expect_row = [&](const at::Tensor& actual, const Row& expected, int64_t token,
                                int64_t head, const char* what) {
      const Row row = RowOf(actual, token, head);
      for (size_t i = 0; i < row.size(); ++i) {
        ASSERT_NEAR(row[i], expected[i], kTolerance)
            << runtime.name << (key ? " key " : " value ") << what << ", token " << token << ", "
            << i << ", prompt of " << prefill;
      }
    };
    int64_t done = runtime.sink;  // tokens [sink, done) are quantized
    const auto grow = [&](int64_t length, bool prompt) {
      while (length - kWindows.recent - done >= runtime.page) {
        for (int64_t t = done; t < done + runtime.page; ++t) {
          for (int64_t head = 0; head < kHeads; ++head) {
            Row y = Rotated(RowOf(x, t, head));
            if (runtime.bf16) y = Each(y, RoundToBFloat16);
            (prompt ? runtime.prompt : runtime.decode)(y, key);
            expect_row(quantized, RotatedBack(y), t, head, "quantized");
          }
        }
        done += runtime.page;
      }
    };
    grow(prefill, true);
    for (int64_t length = prefill + 1; length <= kTokens; ++length) {
      grow(length, false);
      const at::Tensor mask =
          ExactMask(exact_tokens, at::tensor({length - 1}, at::kLong), length)[0];
      for (int64_t t = 0; t < length; ++t) {
        ASSERT_EQ(mask[t].item<bool>(), t < runtime.sink || t >= done)
            << runtime.name << ": token " << t << " of " << length;
      }
    }
    for (int64_t t = 0; t < kTokens; ++t) {
      Row y = Rotated(RowOf(x, t, 0));
      if (runtime.bf16) y = Each(y, RoundToBFloat16);
      expect_row(exact, runtime.window(RowOf(x, t, 0), y), t, 0, "in the window");
    }
  }
}

TEST(Runtime, HoldsWhatAPlainLoopHolds) {
  for (const Runtime& runtime : kRuntimes) {
    for (const int64_t prefill : {1, 77, 129}) ExpectLoop(runtime, prefill);
  }
}

// Compares bit for bit, on rows that are hard to quantize.
TEST(Runtime, WritesRowsAsItsScalarReferencesDo) {
  at::manual_seed(3);
  at::Tensor rows = at::cat({at::randn({300, kDim}), at::randn({50, kDim}).mul(4).round(),
                             at::randn({50, kDim}).mul(1e-38), at::full({1, kDim}, 0.1f),
                             at::zeros({1, kDim}), at::zeros({1, kDim}).neg()});
  rows[0][5] = 3e4;
  const struct {
    RowWriter writer;
    void (*scalar)(Row& y, double ratio);
  } cases[] = {{{RowCodec::kAffine, ClipVariant::kSort},
                [](Row& y, double ratio) { Affine(y, ratio, ClipMethod::kSort); }},
               {{RowCodec::kAffine, ClipVariant::kBisect},
                [](Row& y, double ratio) { Affine(y, ratio, ClipMethod::kBisect); }},
               {{RowCodec::kLloydMax, ClipVariant::kSort}, LloydMax},
               {{RowCodec::kHalfOffset, ClipVariant::kInterpolate}, Half},
               {{RowCodec::kLlamaQ2, ClipVariant::kSort},
                [](Row& y, double ratio) { QuantizeDequantizeLlamaQ2(y, ratio, {}, y); }}};
  for (const auto& codec : cases) {
    for (const double ratio : {0.96, 0.5}) {
      const at::Tensor read = WriteAndRead(codec.writer, rows, ratio, kDim);
      for (int64_t row = 0; row < rows.size(0); ++row) {
        Row expected = RowOf(rows.unsqueeze(1), row, 0);
        codec.scalar(expected, ratio);
        ASSERT_EQ(RowOf(read.unsqueeze(1), row, 0), expected)
            << "codec " << static_cast<int>(codec.writer.codec) << ", row " << row;
      }
    }
  }
  // With two groups per row, the kernel has no Lloyd-Max levels and stores affine codes.
  EXPECT_TRUE(WriteAndRead({RowCodec::kLloydMax, ClipVariant::kSort}, rows, 0.96, 32)
                  .equal(WriteAndRead({RowCodec::kAffine, ClipVariant::kSort}, rows, 0.96, 32)));
}

TEST(Runtime, KeepsEdgeLayersAsTheyAreWhereItsSpecSaysSo) {
  const HadamardContext context("edges", 1000);
  const CacheSides rows = {WholeNumbers(100, kHeads, 4), WholeNumbers(100, kHeads, 5)};
  for (size_t layer = 0; layer < kLayers; ++layer) {
    const bool native = context.Cache("runtime_vllm", layer).store(rows).quantized.k.equal(rows.k);
    EXPECT_EQ(native, layer < 2 || layer >= kLayers - 2) << layer;
    EXPECT_FALSE(context.Cache("runtime_sglang", layer).store(rows).quantized.k.equal(rows.k));
  }
}

TEST(Runtime, WithEverythingInTheWindowLosesNoMoreThanItsRounding) {
  const HadamardContext context("windows", 1000, {64, 4096});
  const CacheSides rows = {WholeNumbers(100, kHeads, 6), WholeNumbers(100, kHeads, 7)};
  for (const RuntimeSpec& runtime : Runtimes()) {
    if (runtime.chosen) continue;  // tested in chosen_cache_test.cc
    const LayerCache cache = context.Cache(runtime.method);
    EXPECT_TRUE(ExactMask(cache.k_exact, at::arange(100), 100)
                    .tril()
                    .equal(at::ones({100, 100}, at::kBool).tril()));
    const CachedRows cached = cache.store(rows);
    if (!cached.exact.k.defined()) continue;
    const double error = (cached.exact.k - rows.k).norm().item<double>();
    EXPECT_LE(error, rows.k.norm().item<double>() / 256) << runtime.method;
  }
}

TEST(Runtime, RotatesQueriesInTheArithmeticOfItsKernel) {
  const HadamardContext context("queries", 1000);
  const at::Tensor q = WholeNumbers(30, kQHeads, 8);
  const at::Tensor read = context.Cache("runtime_sglang").queries(q);
  for (const int64_t head : {0, 3}) {
    const Row expected = RotatedBack(Each(Rotated(RowOf(q, 7, head)), RoundToBFloat16));
    const Row actual = RowOf(read, 7, head);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], kTolerance);
  }
  EXPECT_GT((read - q).abs().max().item<double>(), 0.1);
  EXPECT_FALSE(context.Cache("runtime_vllm").queries);
}

TEST(Runtime, ComputesInFloat32AlsoWhenItIsMeasuredInFloat64) {
  const HadamardContext context("float64", 60);
  const CacheSides rows = {WholeNumbers(90, kHeads, 9), WholeNumbers(90, kHeads, 10)};
  for (const RuntimeSpec& runtime : Runtimes()) {
    if (runtime.chosen) continue;  // tested in chosen_cache_test.cc
    const LayerCache cache = context.Cache(runtime.method);
    const CachedRows single = cache.store(rows);
    const CachedRows twice = cache.store({rows.k.to(at::kDouble), rows.v.to(at::kDouble)});
    EXPECT_EQ(twice.quantized.k.scalar_type(), at::kDouble);
    EXPECT_TRUE(
        at::allclose(twice.quantized.k.to(at::kFloat), single.quantized.k, 1e-5, kTolerance))
        << runtime.method;
    EXPECT_TRUE(
        at::allclose(twice.quantized.v.to(at::kFloat), single.quantized.v, 1e-5, kTolerance))
        << runtime.method;
  }
}

TEST(Runtime, CostsWhatItAllocates) {
  const HadamardContext context("cost", 1000, {64, 256});
  const auto cost = [&](const char* method, int64_t tokens) {
    return CacheMethodNamed(method).cost(context.context(), {}, tokens);
  };
  // Groups have 64 values: 2 + 32 / 64 bits as papers count, 2 + 64 / 64 with float32 metadata. The
  // tolerance of 2e-3 covers the ring and partial pages.
  EXPECT_NEAR(cost("runtime_sglang", 131072).paper, 2.5 + 13.5 * 320 / 131072, 1e-9);
  EXPECT_NEAR(cost("runtime_sglang", 131072).actual, 3 + 13.0 * 320 / 131072, 2e-3);
  // 4 of 6 layers are not quantized. The others have float16 scales and minima, and a quantized
  // copy of each window token.
  EXPECT_NEAR(cost("runtime_vllm", 131072).actual, (4 * 16 + 2 * (2.5 + 16.0 * 320 / 131072)) / 6,
              1e-9);
  EXPECT_NEAR(cost("runtime_llamacpp", 131072).actual, 3 + 16.0 * 320 / 131072, 1e-9);
}

}  // namespace
}  // namespace oscar
