// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests that the operators store the same bits as the simulators in every format that can be
// chosen, in the bytes that kernels read, and that they refuse unsupported formats.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "export/cuda/cache/cache_format.h"
#include "tests/export/torch/operator_cache.h"
#include "tests/support/said.h"

namespace oscar {
namespace {

constexpr int64_t kTokens = 150;

at::Tensor Rows(int64_t tokens, int64_t heads, int64_t dim) {
  return at::randn({tokens, heads, dim}).to(at::kBFloat16);
}

// Writes keys and values of one request in one call. Expects to read back the simulators' bits.
void ExpectSimulatorsBits(const LayerFormat& layer, const std::string& what) {
  const int64_t q_heads = layer.num_kv_heads * layer.gqa_ratio;
  OperatorCache cache(layer, 1, kTokens);
  const at::Tensor k = Rows(kTokens, layer.num_kv_heads, layer.k.dim),
                   v = Rows(kTokens, layer.num_kv_heads, layer.v.dim);
  cache.Step({kTokens}, k, v, Rows(kTokens, q_heads, layer.k.dim));
  const int64_t end = layer.sink + (kTokens - layer.sink - layer.recent) / layer.step * layer.step;
  for (const bool values : {false, true}) {
    const SimulatedRows simulated = Simulate(layer, values, values ? v : k);
    const at::Tensor read = cache.Read(values)[0];
    const at::Tensor expected = at::cat(
        {simulated.exact.slice(1, 0, layer.sink), simulated.stored.slice(1, layer.sink, end),
         simulated.exact.slice(1, end, kTokens)},
        1);
    EXPECT_TRUE(read.equal(expected))
        << what << (values ? ", values: " : ", keys: ") << read.ne(expected).sum().item<int64_t>()
        << " values differ";
  }
  EXPECT_EQ(cache.bad_rows(), 0);
}

TEST(TorchOperators, StoreWhatTheSimulatorReads) {
  at::manual_seed(1);
  for (const int64_t dim : {64, 96, 128, 192}) {
    for (const int bits : {2, 3, 4}) {
      for (const MetadataType metadata :
           {MetadataType::kFloat32, MetadataType::kBFloat16, MetadataType::kByte}) {
        for (const bool feedback : {false, true}) {
          // Scales are fitted, as in the choice for `any`, or those of the range, as published.
          const bool fitted = metadata != MetadataType::kFloat32;
          const SideRecipe k{.bits = {bits},
                             .dim = dim,
                             .quant_group_size = metadata == MetadataType::kByte ? dim / 4 : 0,
                             .mean = true,
                             .own_queries = bits == 3,
                             .feedback = feedback,
                             .scales = fitted ? FittedScales(true) : ScaleFit::kRange,
                             .metadata = metadata,
                             .clip = {0.96, 0.9}};
          SideRecipe v = k;
          v.per_head = v.mean = v.own_queries = false;
          v.scales = fitted ? FittedScales(false) : ScaleFit::kRange;
          v.clip = {bits == 4 ? 0 : 0.92};
          ExpectSimulatorsBits(MakeLayer(k, v), std::to_string(dim) + "/" + std::to_string(bits) +
                                                    "/" + std::string(MetadataTypeName(metadata)) +
                                                    (feedback ? "/feedback" : ""));
        }
      }
    }
  }
}

TEST(TorchOperators, KeepHeadsOfDifferentBitsInViews) {
  at::manual_seed(2);
  SideRecipe k{.bits = {2, 4, 2, 3}, .clip = {0.9, 0, 0.95, 1}}, v{.bits = {2, 2, 2, 4}};
  k.metadata = v.metadata = MetadataType::kBFloat16;
  k.feedback = true;
  ExpectSimulatorsBits(MakeLayer(k, v, 4), "mixed bits");
}

TEST(TorchOperators, PlaceCodesWhereTheFormatSays) {
  at::manual_seed(3);
  for (const int bits : {2, 3, 4}) {
    const SideRecipe recipe{.bits = {bits}, .dim = 96, .quant_group_size = 32};
    LayerFormat layer = MakeLayer(recipe, recipe);
    layer.sink = 0;
    OperatorCache cache(layer, 1, kTokens);
    const at::Tensor k = Rows(kTokens, 2, 96), v = Rows(kTokens, 2, 96);
    cache.Step({kTokens}, k, v, Rows(kTokens, 4, 96));
    const PagedSide side{96, bits, 32};
    const CacheFormat format{side, side, MetadataType::kFloat32, 16};
    constexpr int kPage = 3, kHead = 1;
    const at::Tensor bytes = cache.PageOf(0, 0, kPage);
    const auto* const record = bytes.const_data_ptr<uint8_t>() + kHead * RecordBytes(format);
    for (const bool values : {false, true}) {
      const at::Tensor stored = Simulate(layer, values, values ? v : k).stored[kHead];
      const auto* const codes = record + (values ? VCodesOffset(format) : KCodesOffset(format));
      const auto* const metadata = reinterpret_cast<const float*>(
          record + (values ? VMetadataOffset(format) : KMetadataOffset(format)));
      const auto plane = [&](const uint8_t* from, int plane_bits, int t, int d) {
        const CodePlace place =
            PlaceOfCode(values ? CacheOrder::kValues : CacheOrder::kKeys, 96, plane_bits, t, d);
        const auto* const word = reinterpret_cast<const uint32_t*>(
            from + WordByte(PlaneWords(96, plane_bits), place.lane, place.word));
        return *word >> place.bit & ((1U << plane_bits) - 1);
      };
      for (int t = 0; t < 16; ++t) {
        for (int d = 0; d < 96; ++d) {
          uint32_t code = plane(codes, 2, t, d);
          if (bits > 2) code |= plane(codes + PlaneBytes(96, 2), bits - 2, t, d) << 2;
          const float* const affine =
              metadata + MetadataIndex(values ? format.v : format.k, format.metadata, t, d / 32);
          ASSERT_EQ((static_cast<float>(code) - affine[1]) * affine[0],
                    stored[kPage * 16 + t][d].item<float>())
              << bits << " bits, token " << t << ", dim " << d;
        }
      }
    }
  }
}

TEST(TorchOperators, ReadAndWriteByTensorsAsTheHostDoes) {
  at::manual_seed(4);
  for (const int bits : {2, 3, 4}) {
    for (const MetadataType metadata :
         {MetadataType::kFloat32, MetadataType::kBFloat16, MetadataType::kByte}) {
      const SideRecipe recipe{.bits = {bits, 2, bits},
                              .dim = 96,
                              .quant_group_size = 24,
                              .feedback = bits == 2,
                              .metadata = metadata};
      const LayerFormat layer = MakeLayer(recipe, recipe, 3);
      OperatorCache cache(layer, 1, kTokens), through(layer, 1, kTokens);
      const at::Tensor k = Rows(kTokens, 3, 96), v = Rows(kTokens, 3, 96), q = Rows(kTokens, 6, 96);
      const at::Tensor other = Rows(kTokens - 40, 3, 96);
      cache.Step({kTokens - 40}, k.slice(0, 40), v.slice(0, 40), q.slice(0, 40));
      through.Step({kTokens - 40}, other, other, q.slice(0, 40));
      for (size_t view = 0; view < (bits == 2 ? 1 : 2); ++view) {
        WriteTensors write = through.WriteSides(view);
        write.rows[0] = k.slice(0, 40).contiguous();
        write.rows[1] = v.slice(0, 40).contiguous();
        write.row_begin = at::tensor({0, static_cast<int>(kTokens) - 40}, at::kInt);
        write.max_rows = write.tail_rows = kTokens - 40;
        WriteThroughHost(through.Tensors(view), write);
        const ViewTensors tensors = through.Tensors(view);
        const RowTensors written = StoredRows(tensors, 0, 3, 60),
                         expected = StoredRows(cache.Tensors(view), 0, 3, 60);
        EXPECT_TRUE(written.k.equal(expected.k) && written.v.equal(expected.v))
            << bits << " bits, " << MetadataTypeName(metadata);
        EXPECT_TRUE(cache.Window(view, 0).equal(through.Window(view, 0)));
      }
    }
  }
}

TEST(TorchOperators, KeepTailsAndRingsByTensorsAsTheHostDoes) {
  at::manual_seed(6);
  const LayerFormat layer = MakeLayer({}, {.dim = 96});
  OperatorCache host(layer, 2, kTokens), tensors(layer, 2, kTokens);
  const auto rows = [](int64_t tokens, int64_t dim) { return Rows(tokens, 2, dim); };
  const at::Tensor k = rows(63, 64), v = rows(63, 96), q = Rows(63, 4, 64);
  for (OperatorCache* cache : {&host, &tensors}) cache->Step({60, 3}, k, v, q);
  for (const auto& [first, second] : {std::pair{5, 70}, {40, 1}}) {
    WriteTensors write = host.WriteSides(0);
    write.rows[0] = rows(first + second, 64);
    write.rows[1] = rows(first + second, 96);
    write.row_begin = at::tensor({0, first, first + second}, at::kInt);
    write.max_rows = write.tail_rows = std::max(first, second);
    const ViewTensors view = tensors.Tensors(0), of_host = host.Tensors(0);
    for (const ViewTensors& of : {view, of_host})
      CallOperator("advance", {of.state, write.row_begin.diff(),
                               std::vector<int64_t>{64, 2, 64, 96, 2, 96, 0, 16, layer.sink,
                                                    layer.recent_slots, layer.recent, layer.step}});
    const RowTensors expected = WriteOnHost(of_host, write);
    for (int side = 0; side < 2; ++side) {
      const at::Tensor turned =
          Simulate(layer, side == 1, write.rows[side]).exact.to(at::kBFloat16).transpose(0, 1);
      const at::Tensor tail = RingBefore(view, side, write.max_rows);
      AddToTail(view, write.row_begin, turned, tail);
      for (int64_t r = 0; r < 2; ++r) {
        const int64_t before = view.state[2][r].item<int>();
        const int64_t exact = std::min(before, layer.sink + view.state[3][r].item<int>());
        const auto slots = [&](const at::Tensor& t) {
          return t[r].slice(1, exact - before + layer.recent_slots,
                            view.state[0][r].item<int>() - before + layer.recent_slots);
        };
        EXPECT_TRUE(slots(tail).equal(slots(side == 0 ? expected.k : expected.v))) << side << r;
      }
      KeepNewest(view, side, tail);
    }
    // Compares only the rings. The sinks of the short request are written by a kernel, not here.
    const auto ring = [&](const OperatorCache& cache, int64_t r) {
      const at::Tensor window = cache.Window(0, r);
      const int64_t slots = layer.sink + layer.recent_slots;
      return at::cat({window.slice(1, 0, slots * 64).unflatten(1, {slots, 64}).slice(1, layer.sink),
                      window.slice(1, slots * 64).unflatten(1, {slots, 96}).slice(1, layer.sink)},
                     2);
    };
    for (int64_t r = 0; r < 2; ++r) EXPECT_TRUE(ring(host, r).equal(ring(tensors, r))) << r;
  }
}

TEST(TorchOperators, AnswerOneQueryByTensorsAsTheHostDoes) {
  at::manual_seed(9);
  const LayerFormat layer = MakeLayer({.metadata = MetadataType::kByte}, {});
  OperatorCache cache(layer, 2, 200);
  const auto rows = [&](int64_t count, int64_t heads) {
    return at::randn({count, heads, layer.k.dim}).to(at::kBFloat16);
  };
  cache.Step({150, 20}, rows(170, 2), rows(170, 2), rows(170, 4));
  for (int step = 0; step < 12; ++step) {
    cache.Step({1, 1}, rows(2, 2), rows(2, 2), rows(2, 4));
    for (const int64_t window : {0, 40}) {
      AttendTensors attend{.q = rows(2, 4),
                           .out = at::zeros({2, 4, layer.v.dim}),
                           .row_begin = at::arange(3, at::kInt),
                           .gqa_ratio = 2,
                           .sinks = {},
                           .tail = {}};
      const AttendRule rule{0.125F, 0, window, false};
      AttendOnHost(cache.Tensors(0), rule, attend, 1);
      const at::Tensor expected = attend.out;
      attend.out = at::zeros_like(expected);
      AttendByRows(cache.Tensors(0), rule, attend);
      EXPECT_TRUE(at::allclose(attend.out, expected, 1e-4, 1e-5)) << step << ", " << window;
    }
  }
}

TEST(TorchOperators, CountRowsThatCannotBeStored) {
  LayerFormat layer = MakeLayer({}, {.metadata = MetadataType::kFloat32});
  OperatorCache cache(layer, 1, kTokens);
  at::Tensor k = Rows(kTokens, 2, 64);
  k[30][1][7] = INFINITY;
  cache.Step({kTokens}, k, Rows(kTokens, 2, 64), Rows(kTokens, 4, 64));
  EXPECT_EQ(cache.bad_rows(), 1);
  const at::Tensor read = cache.Read(false)[0];
  EXPECT_TRUE(read[1][30].isnan().all().item<bool>());
  EXPECT_EQ(read.isnan().sum().item<int64_t>(), 64);
}

TEST(TorchOperators, RefuseByName) {
  const auto message = [](const std::vector<int64_t>& format) {
    return ErrorOf<std::exception>([&] {
      CallOperator("make_cache", {format, 1, 1, 1, c10::Device(at::kCPU)});
    });
  };
  std::vector<int64_t> good = {64, 2, 64, 64, 2, 64, 0, 16, 16, 48, 24, 8};
  EXPECT_EQ(message(good), "");
  const auto with = [&](size_t index, int64_t value) {
    std::vector<int64_t> format = good;
    format[index] = value;
    return message(format);
  };
  EXPECT_TRUE(Says(with(0, 80), "multiples of 32"));
  EXPECT_TRUE(Says(with(1, 8), "2 to 4 bits"));
  EXPECT_TRUE(Says(with(5, 48), "groups that divide"));
  EXPECT_TRUE(Says(with(6, 3), "metadata type 3"));
  EXPECT_TRUE(Says(with(7, 32), "16, 64 and 128"));
  EXPECT_TRUE(Says(with(9, 16), "slots"));
  EXPECT_TRUE(Says(with(11, 4), "1 and 8"));
}

}  // namespace
}  // namespace oscar
