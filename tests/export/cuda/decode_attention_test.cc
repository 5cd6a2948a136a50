// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the decode kernel with float64 attention over the same cache, for everything that a
// caller can choose. Unused pages and slots, workspace and outputs are filled with NaN.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/export/cuda/decode_sweep.h"

namespace oscar {
namespace {

// Keeps the worst error of a sweep, and prints it with its coordinate.
class Sweep {
 public:
  void Add(const DecodeCase& decode_case, const std::string& name) {
    const DecodeError error = MeasureDecode(decode_case);
    ++count_;
    EXPECT_TRUE(error.finite) << name;
    EXPECT_LT(error.worst, kDecodeTolerance) << name << ", " << error.coordinate;
    EXPECT_LT(error.worst_lse, 1e-3) << name;
    if (!(error.worst <= worst_)) {
      worst_ = error.worst;
      where_ = name + ", " + error.coordinate;
    }
  }
  ~Sweep() { fmt::print("{} launches, worst error {:.2e} at {}\n", count_, worst_, where_); }

 private:
  int count_ = 0;
  double worst_ = 0;
  std::string where_;
};

// Returns the lengths of `batch` requests: the given one first, then shorter ones if it is above
// 2000.
std::vector<int> Lengths(int batch, int length) {
  std::vector<int> lengths;
  for (int i = 0; i < batch; ++i) lengths.push_back(std::max(length - 37 * i * (length > 2000), 1));
  return lengths;
}

TEST(DecodeAttention, EveryBatchRatioAndLength) {
  Sweep sweep;
  for (const int batch : {1, 2, 7, 16, 32, 64})
    for (const int ratio : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24})
      for (const int length : {1, 7, 127, 128, 129, 319, 320, 321, 4096, 80000, 131072}) {
        if (int64_t{batch} * length > 2'200'000 && ratio % 4 != 1)
          continue;  // the largest cases run only for some ratios
        DecodeCase c;
        c.cache.num_kv_heads = 2;
        c.cache.lengths = Lengths(batch, length);
        c.cache.seed = 1000 * batch + ratio;
        c.num_q_heads = 2 * ratio;
        sweep.Add(c, fmt::format("batch {} ratio {} length {}", batch, ratio, length));
      }
}

// Tests GQA ratios whose padded tiles span two KV heads. At ratio 6, upstream's kernel let query
// heads 6 and 7 read KV head 0.
TEST(DecodeAttention, QueryHeadsReadTheirOwnKvHead) {
  Sweep sweep;
  for (const int ratio : {6, 9, 10, 11, 12, 13, 14, 15})
    for (const int batch : {1, 16}) {
      DecodeCase c;
      c.cache.num_kv_heads = 4;
      c.cache.lengths = Lengths(batch, 1500);
      c.num_q_heads = 4 * ratio;
      sweep.Add(c, fmt::format("ratio {} batch {}", ratio, batch));
    }
}

TEST(DecodeAttention, EveryBitPairGroupMetadataAndPage) {
  Sweep sweep;
  for (const int k_bits : {2, 3, 4})
    for (const int v_bits : {2, 3, 4})
      for (const int group : {128, 64, 32})
        for (const MetadataType metadata : {MetadataType::kFloat32, MetadataType::kBFloat16})
          for (const int page : {16, 64, 128}) {
            DecodeCase c;
            c.cache.format = {{128, k_bits, group}, {128, v_bits, group}, metadata, page};
            c.cache.num_kv_heads = 2;
            c.cache.lengths = {3001, 700, 15};
            sweep.Add(
                c, fmt::format("K {} V {} bits, group {}, {} metadata, pages of {}", k_bits, v_bits,
                               group, metadata == MetadataType::kFloat32 ? "fp32" : "bf16", page));
          }
}

// Groups are a quarter of a head, which has its own kernel instances at 2 bits, or a whole head.
TEST(DecodeAttention, ByteScales) {
  Sweep sweep;
  for (const auto& [k, v] : {std::pair{64, 64}, {128, 128}, {192, 128}, {256, 256}, {512, 512}})
    for (const auto& [k_bits, v_bits] : {std::pair{2, 2}, {3, 2}, {4, 3}})
      for (const bool quarters : {true, false})
        for (const int ratio : {1, 4, 5, 8}) {
          if (quarters && !HasQuarters(k)) continue;
          DecodeCase c;
          c.cache.format = {{k, k_bits, quarters ? k / 4 : k},
                            {v, v_bits, quarters ? v / 4 : v},
                            MetadataType::kByte,
                            ratio == 4 ? 16 : 128};
          c.cache.num_kv_heads = 2;
          c.cache.lengths = {5000, 333, 1};
          c.num_q_heads = 2 * ratio;
          if (ratio == 5) c.rule.softcap = 20;
          sweep.Add(c, fmt::format("dims {}/{}, {} and {} bits, quarters {}, ratio {}", k, v,
                                   k_bits, v_bits, quarters, ratio));
        }
}

TEST(DecodeAttention, EveryHeadDim) {
  Sweep sweep;
  const std::pair<int, int> dims[] = {{64, 64},   {96, 96},   {128, 128}, {192, 128},
                                      {192, 192}, {256, 256}, {512, 512}};
  for (const auto& [k, v] : dims)
    for (const int bits : {2, 3, 4})
      for (const bool whole : {true, false}) {
        if (!whole && k % 64 != 0) continue;
        DecodeCase c;
        c.cache.format = {{k, bits, whole ? k : 64}, {v, bits, whole ? v : 64}};
        c.cache.num_kv_heads = 2;
        c.cache.lengths = {5000, 333, 1};
        for (const int ratio : {3, 5}) {
          c.num_q_heads = 2 * ratio;
          sweep.Add(
              c, fmt::format("dims {}/{}, {} bits, whole {}, ratio {}", k, v, bits, whole, ratio));
        }
      }
}

TEST(DecodeAttention, SlidingWindowSoftcapAndSinks) {
  Sweep sweep;
  for (const int window : {0, 1, 100, 300, 1024, 4096})
    for (const float softcap : {0.F, 5.F})
      for (const bool sinks : {false, true})
        for (const int length : {50, 400, 3000, 20000}) {
          DecodeCase c;
          c.cache.num_kv_heads = 2;
          c.cache.lengths = {length, length / 2 + 1};
          c.rule = {.scale = 0.2F, .softcap = softcap, .window = window};
          c.attention_sinks = sinks;
          sweep.Add(c, fmt::format("window {} softcap {} sinks {} length {}", window, softcap,
                                   sinks, length));
        }
}

TEST(DecodeAttention, WindowsOfAnySize) {
  Sweep sweep;
  for (const int sink : {0, 16, 64, 128})
    for (const int recent : {0, 8, 64, 2048})
      for (const int length : {1, 65, 500, 5001}) {
        DecodeCase c;
        c.cache.num_kv_heads = 2;
        c.cache.lengths = {length, std::max(length - 9, 1)};
        c.cache.sink_tokens = sink;
        c.cache.recent_tokens = recent;
        c.cache.recent_slots = (recent + 7 + 15) / 16 * 16;
        sweep.Add(c, fmt::format("sink {} recent {} length {}", sink, recent, length));
      }
}

// Query heads differ in magnitude. Narrow instances scale each head to 16-bit integers.
TEST(DecodeAttention, QueriesOfAnyMagnitude) {
  Sweep sweep;
  for (const int ratio : {2, 4, 8}) {
    DecodeCase c;
    c.cache.num_kv_heads = 2;
    c.cache.lengths = {5000, 700};
    c.num_q_heads = 2 * ratio;
    c.query_scales = {0, 1e-20F, 1e-4F, 4};
    sweep.Add(c, fmt::format("ratio {}", ratio));
  }
}

TEST(DecodeAttention, AQueryThatIsNotFiniteSpoilsItsOwnRowAlone) {
  for (const int ratio : {4, 8}) {
    DecodeCase c;
    c.cache.num_kv_heads = 1;
    c.cache.lengths = {5000};
    c.num_q_heads = ratio;
    c.query_scales.assign(ratio, 1);
    c.query_scales[1] = INFINITY;
    const DecodeError error = MeasureDecode(c);
    EXPECT_FALSE(error.finite) << ratio;
    EXPECT_EQ(error.rows_not_finite, 1) << ratio;
  }
}

}  // namespace
}  // namespace oscar
