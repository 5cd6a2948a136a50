// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the references of the kernels without a GPU. Pages are packed by the layout of
// cache_format.h from the codes of the scalar codec, and must agree with it. A flipped bit must
// give one difference of the right kind. The float64 attention must equal the model's.
#include "export/validate/kernel_codec.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "capture/model/run/attention.h"
#include "export/validate/kernel_validation.h"
#include "linalg/affine_codec.h"
#include "tests/export/cuda/record_row.h"

namespace oscar {
namespace {

constexpr int kHeads = 2;
constexpr int64_t kTokens = 40;  // two and a half tiles
constexpr double kClip = 0.96;

float RoundToBf16(float x) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x8000u) & 0xFFFF0000u);
}

struct Sample {
  CacheFormat format;
  std::vector<uint8_t> pages;
  std::vector<std::vector<float>> k, v;  // [heads][tokens * dim]
};

void PutSide(Sample& sample, CacheOrder order, int head, const std::vector<float>& rows) {
  const CacheFormat& format = sample.format;
  const PagedSide& side = order == CacheOrder::kKeys ? format.k : format.v;
  std::vector<uint8_t> codes(static_cast<size_t>(side.dim));
  std::vector<float> scales_zeros(static_cast<size_t>(2 * GroupsPerRow(side)));
  for (int token = 0; token < kTokens; ++token) {
    ClipAndEncodeAffineRow(
        std::span(rows).subspan(static_cast<size_t>(token * side.dim), codes.size()),
        {side.bits, side.quant_group_size, format.metadata}, {kClip, ClipMethod::kSort}, codes,
        scales_zeros);
    const int tiles = format.page_tokens / kTileTokens, t = token % kTileTokens;
    uint8_t* record =
        sample.pages.data() + token / format.page_tokens * PageBytes(format, kHeads) +
        (head * tiles + token % format.page_tokens / kTileTokens) * RecordBytes(format);
    PutRow(record, format, order, t, codes, scales_zeros);
  }
}

Sample MakeSample(const CacheFormat& format) {
  Sample sample{format, {}, {}, {}};
  const int64_t pages = (kTokens + format.page_tokens - 1) / format.page_tokens;
  sample.pages.resize(static_cast<size_t>(pages * PageBytes(format, kHeads)));
  const auto rows = [](int dim, int head, double step) {
    std::vector<float> values(static_cast<size_t>(kTokens * dim));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = RoundToBf16(
          static_cast<float>(std::sin(static_cast<double>(i) * step + head) * (i % 7 + 0.1)));
    return values;
  };
  for (int head = 0; head < kHeads; ++head) {
    sample.k.push_back(rows(format.k.dim, head, 0.37));
    sample.v.push_back(rows(format.v.dim, head, 1.91));
    PutSide(sample, CacheOrder::kKeys, head, sample.k.back());
    PutSide(sample, CacheOrder::kValues, head, sample.v.back());
  }
  return sample;
}

CodecAgreement Compare(const Sample& sample, CacheOrder order, int head) {
  const bool keys = order == CacheOrder::kKeys;
  const PagedSide& side = keys ? sample.format.k : sample.format.v;
  const StoredRows stored =
      ReadStoredRows(sample.pages, sample.format, kHeads, head, order, kTokens);
  const std::vector<float>& rows = (keys ? sample.k : sample.v)[static_cast<size_t>(head)];
  std::vector<float> simulated(rows.size());
  for (size_t row = 0; row < static_cast<size_t>(kTokens); ++row) {
    const auto at = row * static_cast<size_t>(side.dim), size = static_cast<size_t>(side.dim);
    QuantizeDequantizeAffineRow<float>(std::span(rows).subspan(at, size),
                                       {side.bits, side.quant_group_size, MetadataType::kFloat32},
                                       {kClip, ClipMethod::kSort},
                                       std::span(simulated).subspan(at, size));
  }
  return CompareWithCodec(stored, side, sample.format.metadata, kClip, rows, simulated);
}

CodecAgreement CompareAll(const Sample& sample) {
  CodecAgreement all;
  for (int head = 0; head < kHeads; ++head) {
    all.Add(Compare(sample, CacheOrder::kKeys, head));
    all.Add(Compare(sample, CacheOrder::kValues, head));
  }
  return all;
}

TEST(KernelCodec, PagesOfTheScalarCodecAgree) {
  for (const int bits : {2, 3, 4}) {
    for (const int page_tokens : {16, 128}) {
      CacheFormat format{{128, bits, 128}, {64, 6 - bits, 32}, MetadataType::kFloat32, page_tokens};
      const CodecAgreement all = CompareAll(MakeSample(format));
      EXPECT_EQ(all.codes, kHeads * kTokens * (128 + 64));
      EXPECT_EQ(all.differing(), 0) << bits << " bits, pages of " << page_tokens;
    }
  }
}

TEST(KernelCodec, ScalesInBf16AreReadAsStored) {
  CacheFormat format;
  format.metadata = MetadataType::kBFloat16;
  const CodecAgreement all = CompareAll(MakeSample(format));
  EXPECT_EQ(all.differing_codes, 0);
  EXPECT_EQ(all.differing_metadata, 0);
  EXPECT_GT(all.differing_simulated, 0);  // the simulator does not round scales
}

TEST(KernelCodec, OneBitIsOneDifference) {
  const Sample sample = MakeSample({});
  const CacheFormat& format = sample.format;
  const size_t record = static_cast<size_t>(RecordBytes(format));
  const auto turned = [&](size_t byte, int bit) {
    Sample other = sample;
    other.pages[byte] ^= static_cast<uint8_t>(1 << bit);
    return CompareAll(other);
  };
  const CodecAgreement code = turned(static_cast<size_t>(VCodesOffset(format)) + 5, 3);
  EXPECT_EQ(code.differing_codes, 1);
  EXPECT_EQ(code.differing_simulated, 1);
  EXPECT_EQ(code.differing_metadata, 0);
  // Flips the last bit of a scale: page 0, tile 0, head 0, token 0.
  const CodecAgreement scale = turned(static_cast<size_t>(KMetadataOffset(format)), 0);
  EXPECT_EQ(scale.differing_metadata, 1);
  EXPECT_EQ(scale.differing_codes, 0);
  // The third tile has 8 tokens, and the rest of its record is not compared.
  EXPECT_EQ(turned(3 * record - 1, 0).differing(), 0);
}

TEST(KernelCodec, AnotherHeadsPagesDoNotAgree) {
  Sample sample = MakeSample({});
  std::swap(sample.k[0], sample.k[1]);
  EXPECT_GT(CompareAll(sample).differing_codes, 1000);
}

// Compares the reference of the decode kernel with the model's attention at the last token of a
// text.
TEST(KernelReference, IsTheModelsAttentionWithItsWindowSoftCapAndSinks) {
  at::manual_seed(3);
  AttentionSpec plain;
  plain.num_q_heads = 6;
  plain.num_kv_heads = 2;
  plain.head_dim = 16;
  plain.v_head_dim = 8;
  plain.scale = 0.5;
  constexpr int64_t kLength = 50;
  const at::Tensor q = at::randn({kLength, 6, 16}), k = at::randn({kLength, 2, 16}),
                   v = at::randn({kLength, 2, 8}), sinks = at::randn({6}).mul_(3);
  AttentionSpec windowed = plain, capped = plain, sunk = plain;
  windowed.window = 20;
  capped.softcap = 2;
  sunk.sinks = "sinks";
  AttentionSpec all = sunk;
  all.window = 20;
  all.softcap = 2;
  std::vector<at::Tensor> outputs;
  for (const AttentionSpec& spec : {plain, windowed, capped, sunk, all}) {
    at::Tensor expected = at::empty({kLength, 6, 8});
    const at::Tensor own_sinks = spec.sinks.empty() ? at::Tensor() : sinks;
    CausalAttention(spec, q, k, v, {}, expected, own_sinks);
    const auto heads_first = [](const at::Tensor& x) {
      return x.permute({1, 0, 2}).to(at::kDouble);
    };
    const at::Tensor found = ExactAttention(spec, q[kLength - 1].view({2, 3, 16}).to(at::kDouble),
                                            heads_first(k), heads_first(v), own_sinks);
    EXPECT_LT(found.sub(expected[kLength - 1].view({2, 3, 8})).abs().max().item<double>(), 1e-5);
    for (const at::Tensor& other : outputs)
      EXPECT_GT(found.sub(other).abs().max().item<double>(), 0.01);
    outputs.push_back(found);
  }
}

}  // namespace
}  // namespace oscar
