// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Benchmarks decode attention at the geometry of Qwen3-8B: 32 query heads, 8 KV heads, d 128, 2
// bits with float32 scales, 64 sink and 256 recent tokens in bf16. Each of 36 layers has its own
// cache, and all share one page table. Consecutive launches overlap (programmatic dependent launch)
// as RunDecode allows, unless the name of a case says otherwise.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "export/cuda/decode/decode_attention.h"
#include "export/cuda/reference/random_cache.h"
#include "export/cuda/reference/reference_decode.h"
#include "tools/bench/bench_table.h"

namespace oscar {
namespace {

constexpr int kQueryHeads = 32, kKvHeads = 8;

struct Setup {
  std::vector<RandomCache> caches;
  DeviceArray<__nv_bfloat16> q;
  DeviceArray<float> out, lse;
  std::vector<DeviceArray<uint8_t>> workspaces;
  DecodePlan plan;
  int length = 0, batch = 0;

  DecodeArguments Arguments(int set) const {
    DecodeArguments arguments;
    arguments.cache = caches[set].view();
    arguments.rule.scale = 1 / std::sqrt(static_cast<float>(arguments.cache.format.k.dim));
    arguments.q = q.data();
    arguments.out_f32 = out.data();
    return arguments;
  }
};

BenchCheck Check(const Setup& setup, int set) {
  RunDecode(setup.plan, setup.Arguments(set), setup.workspaces[set].data(), nullptr);
  const std::vector<float> got = setup.out.ToHost();
  const ReferenceDecode expected =
      DecodeInFloat64(setup.Arguments(set), kQueryHeads, setup.length, nullptr);
  double worst = 0, size = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    size = std::max(size, expected.spread[i]);
    const double e = std::abs(got[i] - expected.out[i]);
    if (!(e <= worst)) worst = e;
  }
  return {
      worst <= 2e-3 * size,
      fmt::format("worst error {:.1e} against float64, where values reach {:.2f}", worst, size)};
}

BenchCase Make(const CacheFormat& format, int batch, int length, int layers, double bar_us,
               bool overlap) {
  auto setup = std::make_shared<Setup>();
  setup->length = length;
  setup->batch = batch;
  setup->caches.reserve(layers);
  for (int layer = 0; layer < layers; ++layer) {
    RandomCacheOptions options;
    options.format = format;
    options.num_kv_heads = kKvHeads;
    options.lengths = std::vector<int>(batch, length);
    options.seed = layer + 1;
    if (layer > 0) options.same_tables = &setup->caches[0].view();
    setup->caches.emplace_back(options);
  }
  setup->q = DeviceArray<__nv_bfloat16>(size_t{1} * batch * kQueryHeads * format.k.dim);
  FillNormal(setup->q.data(), setup->q.size(), 1, 99);
  setup->out = DeviceArray<float>(size_t{1} * batch * kQueryHeads * format.v.dim);
  cudaDeviceProp device;
  OSCAR_CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
  setup->plan = PlanDecode(format, kKvHeads, kQueryHeads, std::vector<int>(batch, length),
                           WindowSlots(setup->caches[0].view()), device.multiProcessorCount);
  for (int layer = 0; layer < layers; ++layer) {
    setup->workspaces.emplace_back(DecodeWorkspaceBytes(setup->plan));
    InitDecodeWorkspace(setup->plan, setup->workspaces.back().data(), nullptr);
  }
  BenchCase c;
  c.bytes = setup->caches[0].bytes();
  c.bar_us = bar_us;
  c.buffers = layers;
  c.launch = [setup, overlap](cudaStream_t stream, int set) {
    DecodeArguments arguments = setup->Arguments(set);
    arguments.overlap_previous = overlap;
    RunDecode(setup->plan, arguments, setup->workspaces[set].data(), stream);
  };
  c.check = [setup] { return Check(*setup, 0); };
  return c;
}

}  // namespace

std::vector<BenchEntry> DecodeBench() {
  std::vector<BenchEntry> entries;
  const auto add = [&entries](const std::string& name, const CacheFormat& format, int batch,
                              int length, int layers, double bar_us, bool overlap = true) {
    entries.push_back(
        {"decode", name, [=] { return Make(format, batch, length, layers, bar_us, overlap); }});
  };
  const CacheFormat int2;
  for (const auto& [length, bar] :
       {std::pair{30000, 13.}, {60000, 18.}, {100000, 24.}, {128000, 31.}})
    add(fmt::format("batch 1, {} tokens", length), int2, 1, length, 36, bar);
  for (const int length : {30000, 100000})
    add(fmt::format("batch 1, {} tokens, not overlapped", length), int2, 1, length, 36, 0, false);
  add("batch 32, 4096 tokens, not overlapped", int2, 32, 4096, 36, 0, false);
  add("batch 32, 30000 tokens, not overlapped", int2, 32, 30000, 12, 0, false);
  add("batch 32, 4096 tokens", int2, 32, 4096, 36, 32);
  add("batch 32, 30000 tokens", int2, 32, 30000, 12, 190);
  add("batch 1, 100000 tokens, K 3 bits", {{128, 3, 128}, {128, 2, 128}}, 1, 100000, 36, 0);
  add("batch 1, 100000 tokens, K 4 V 4 bits", {{128, 4, 128}, {128, 4, 128}}, 1, 100000, 36, 0);
  add("batch 1, 100000 tokens, groups of 32", {{128, 2, 32}, {128, 2, 32}}, 1, 100000, 36, 0);
  const CacheFormat quarters{{128, 2, 32}, {128, 2, 32}, MetadataType::kByte};
  for (const auto& [length, bar] : {std::pair{30000, 19.}, {100000, 32.7}})
    add(fmt::format("batch 1, {} tokens, byte quarters", length), quarters, 1, length, 36, bar);
  add("batch 1, 100000 tokens, bf16 scales", {{}, {}, MetadataType::kBFloat16}, 1, 100000, 36, 0);
  add("batch 1, 1024 tokens", int2, 1, 1024, 36, 0);
  return entries;
}

}  // namespace oscar
