// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures the memory bandwidth of this machine with reads and a copy. The reads have the sizes of
// the INT2 and BF16 caches that decode attention reads. The copy is checked with the read kernel,
// so an error in that kernel fails both.
#include "tools/bench/bench_bandwidth.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "export/cuda/device/device_array.h"
#include "tools/bench/bench_stream.h"
#include "tools/bench/bench_table.h"

namespace oscar {
namespace {

constexpr int kCtasPerSm = 8;  // 4 are as fast; 1 takes a third more time

int NumSms() {
  int device = 0, sms = 0;
  OSCAR_CUDA_CHECK(cudaGetDevice(&device));
  OSCAR_CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  return sms;
}

struct Buffers {
  int64_t size;  // uint4 values per set
  int ctas;
  std::vector<DeviceArray<uint4>> sets;
  DeviceArray<uint32_t> sums;  // [sets, ctas]

  Buffers(int64_t bytes, int num_sets)
      : size(bytes / 16),
        ctas(kCtasPerSm * NumSms()),
        sums(static_cast<size_t>(num_sets) * static_cast<size_t>(ctas)) {
    for (int set = 0; set < num_sets; ++set) {
      sets.emplace_back(static_cast<size_t>(size));
      LaunchFill(sets.back().data(), size, static_cast<uint32_t>(set), ctas, nullptr);
    }
    sums.Fill(0xFF);
    OSCAR_CUDA_CHECK(cudaDeviceSynchronize());
  }

  void Read(cudaStream_t stream, int set) const {
    LaunchRead(sets[static_cast<size_t>(set)].data(), size, sums.data() + int64_t{set} * ctas, ctas,
               stream);
  }

  // expected [sets]: the sum of each set's words
  BenchCheck Check(const std::vector<uint32_t>& expected) const {
    const std::vector<uint32_t> found = sums.ToHost();
    for (size_t set = 0; set < sets.size(); ++set) {
      const auto first = found.begin() + static_cast<int64_t>(set) * ctas;
      const uint32_t sum = std::accumulate(first, first + ctas, 0u);
      if (sum != expected[set])
        return {false,
                fmt::format("buffer {}: sum {:#x}, expected {:#x}", set, sum, expected[set])};
    }
    return {true, "sum of all words of each buffer"};
  }
  uint32_t Expected(uint64_t set) const {  // the correct sum, mod 2^32
    const auto words = static_cast<uint64_t>(4 * size);
    return kStreamFactor * static_cast<uint32_t>(words * (words - 1) / 2 + words * set);
  }
};

BenchCase ReadCase(int64_t bytes, int num_sets) {
  BenchCase bench;
  bench.buffers = num_sets;
  const auto buffers = std::make_shared<Buffers>(bytes, num_sets);
  bench.bytes = static_cast<double>(buffers->size * 16);
  bench.launch = [buffers](cudaStream_t stream, int set) { buffers->Read(stream, set); };
  bench.check = [buffers] {
    std::vector<uint32_t> expected;
    for (uint64_t set = 0; set < buffers->sets.size(); ++set)
      expected.push_back(buffers->Expected(set));
    return buffers->Check(expected);
  };
  return bench;
}

// CUDA's own copy (cudaMemcpyAsync).
BenchCase CopyCase(int64_t bytes, int num_pairs) {
  BenchCase bench;
  bench.buffers = num_pairs;  // copies set i to set i + num_pairs
  bench.graph = false;        // a graph would use a copy engine, which is slower
  const auto buffers = std::make_shared<Buffers>(bytes, 2 * num_pairs);
  bench.bytes = static_cast<double>(2 * buffers->size * 16);
  bench.launch = [buffers, num_pairs](cudaStream_t stream, int set) {
    const DeviceArray<uint4>& from = buffers->sets[static_cast<size_t>(set)];
    const DeviceArray<uint4>& to = buffers->sets[static_cast<size_t>(set + num_pairs)];
    OSCAR_CUDA_CHECK(
        cudaMemcpyAsync(to.data(), from.data(), to.bytes(), cudaMemcpyDeviceToDevice, stream));
  };
  bench.check = [buffers, num_pairs] {
    std::vector<uint32_t> expected;
    for (uint64_t set = 0; set < buffers->sets.size(); ++set) {
      buffers->Read(nullptr, static_cast<int>(set));
      expected.push_back(buffers->Expected(set % static_cast<uint64_t>(num_pairs)));
    }
    return buffers->Check(expected);
  };
  return bench;
}

BenchEntry ReadEntry(int64_t bytes, int num_sets) {
  return {"bandwidth", fmt::format("read {:.1f} MB", 1e-6 * static_cast<double>(bytes)),
          [=] { return ReadCase(bytes, num_sets); }};
}

constexpr int kLayers = 36;
constexpr int64_t kHugeBytes = int64_t{1} << 32;
// The sizes of a BF16 cache of 100,000 tokens in one layer of Qwen3-8B, and of INT2 caches of 30,
// 60, 100 and 128 thousand tokens.
constexpr int64_t kBf16Bytes = 409'600'000;
constexpr int64_t kInt2Bytes[] = {20'300'000, 39'500'000, 65'100'000, 84'000'000};

}  // namespace

std::vector<BenchEntry> ReferenceBandwidth() {
  return {ReadEntry(kHugeBytes, 4),
          ReadEntry(kBf16Bytes, kLayers),
          {"bandwidth", "copy 4295.0 MB", [] { return CopyCase(kHugeBytes, 2); }}};
}

std::vector<BenchEntry> BandwidthBench() {
  std::vector<BenchEntry> entries = ReferenceBandwidth();
  for (const int64_t bytes : kInt2Bytes) entries.push_back(ReadEntry(bytes, kLayers));
  return entries;
}

}  // namespace oscar
