// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/cuda/decode/decode_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "export/cuda/decode/decode_arguments.h"
#include "export/cuda/device/cuda_check.h"
#include "linalg/base/error.h"

namespace oscar {

namespace {

// A new pair of head dims needs a row here and a file in instances/.
struct Instance {
  int k_dim, v_dim;
  void (*launch)(const DecodeKernelArguments&, dim3 grid, cudaStream_t);
};
constexpr Instance kInstances[] = {
    {64, 64, LaunchDecode<64, 64>},     {96, 96, LaunchDecode<96, 96>},
    {128, 128, LaunchDecode<128, 128>}, {192, 128, LaunchDecode<192, 128>},
    {192, 192, LaunchDecode<192, 192>}, {256, 256, LaunchDecode<256, 256>},
    {512, 512, LaunchDecode<512, 512>},
};

const Instance& FindInstance(const CacheFormat& format) {
  std::string supported;
  for (const Instance& instance : kInstances) {
    if (instance.k_dim == format.k.dim && instance.v_dim == format.v.dim) return instance;
    supported += fmt::format(" {}/{}", instance.k_dim, instance.v_dim);
  }
  throw UsageError(fmt::format("decode attention with head dims {}/{} (keys/values); supported:{}",
                               format.k.dim, format.v.dim, supported));
}

void Launch(const DecodeKernelArguments& args, dim3 grid, cudaStream_t stream) {
  const CacheFormat& format = args.call.cache.format;
  if (NeedsGeneralDecode(format) || (format.k.bits == 2 && format.v.bits == 2))
    return FindInstance(format).launch(args, grid, stream);
  switch (format.k.bits) {
    case 2:
      return LaunchDecodeBits<128, 128, 2>(args, grid, stream);
    case 3:
      return LaunchDecodeBits<128, 128, 3>(args, grid, stream);
    default:
      return LaunchDecodeBits<128, 128, 4>(args, grid, stream);
  }
}

int NumSplits(double cost, double chunk) {
  return std::max(1, static_cast<int>(cost / chunk + 0.999));
}

// Returns the split size, in quantized tiles, with the shortest estimated time. `costs`: the cost
// of each request in tiles; `units`: CTAs per split; `slots`: CTAs that run at a time. Every CTA
// has a fixed cost, every split adds a merge, and a launch that fills the GPU delays the next one.
// The constants were measured (tools/bench/RESULTS.md).
double BestChunk(const std::vector<double>& costs, int units, int slots) {
  constexpr double kCtaOverhead = 24, kMergeCost = 1.5, kFullCost = 16, kFull = 0.95;
  const double longest = *std::max_element(costs.begin(), costs.end());
  double best_time = 0, best = longest;
  for (int splits = 1; splits <= std::max(1, 2 * slots / units); ++splits) {
    const double chunk = std::max(longest / splits, 1.0);
    int64_t ctas = 0;
    for (const double cost : costs) ctas += int64_t{units} * NumSplits(cost, chunk);
    const int64_t waves = (ctas + slots - 1) / slots;
    const auto in_last_wave = static_cast<double>(ctas - (waves - 1) * slots);
    const double time = static_cast<double>(waves) * (chunk + kCtaOverhead) + kMergeCost * splits +
                        (in_last_wave > kFull * slots ? kFullCost : 0);
    if (best_time == 0 || time < best_time) best_time = time, best = chunk;
  }
  return best;
}

int64_t NumCtas(const DecodePlan& plan) {
  return int64_t{plan.first_split.back()} * plan.num_kv_heads * plan.units_per_kv_head;
}
int64_t NumCounters(const DecodePlan& plan) {
  return static_cast<int64_t>(plan.first_split.size() - 1) * plan.num_kv_heads *
         plan.units_per_kv_head;
}
int64_t AlignedCounterBytes(const DecodePlan& plan) {
  return (NumCounters(plan) * 4 + 255) / 256 * 256;
}
int64_t AlignedSumBytes(const DecodePlan& plan) {
  return (NumCtas(plan) * plan.heads_per_unit * 8 + 255) / 256 * 256;
}

}  // namespace

DecodePlan PlanDecode(const CacheFormat& format, int num_kv_heads, int num_q_heads,
                      const std::vector<int>& max_lengths, int window_slots, int num_sms) {
  FindInstance(format);
  if (!IsValid(format)) throw UsageError("decode attention: the cache's format is invalid");
  if (num_kv_heads < 1 || num_q_heads % num_kv_heads != 0 ||
      num_q_heads / num_kv_heads > kMaxGqaRatio)
    throw UsageError(
        fmt::format("decode attention with {} query heads and {} KV heads; the query heads must be "
                    "a multiple of the KV heads, at most {} times as many",
                    num_q_heads, num_kv_heads, kMaxGqaRatio));
  const int num_requests = static_cast<int>(max_lengths.size());
  if (num_requests < 1 || num_requests > kMaxDecodeRequests)
    throw UsageError(fmt::format("decode attention of {} requests; supported: 1 to {}",
                                 num_requests, kMaxDecodeRequests));

  DecodePlan plan{format, num_kv_heads, num_q_heads, 0, 0, {}};
  const int gqa_ratio = num_q_heads / num_kv_heads;
  plan.units_per_kv_head = (gqa_ratio + kUnitHeads - 1) / kUnitHeads;
  plan.heads_per_unit = (gqa_ratio + plan.units_per_kv_head - 1) / plan.units_per_kv_head;

  // Costs are in units of a quantized tile.
  std::vector<double> costs;
  for (const int length : max_lengths) {
    const int in_windows = std::min(length, window_slots);
    costs.push_back(static_cast<double>(in_windows) / kTileTokens * 2 * WindowTileCost(format) +
                    static_cast<double>(length - in_windows) / kTileTokens);
  }
  const int units = num_kv_heads * plan.units_per_kv_head;
  const double chunk =
      BestChunk(costs, units,
                num_sms * DecodeCtasPerSm(format.k.dim, format.v.dim, NeedsGeneralDecode(format)));
  int first = 0;
  for (const double cost : costs) {
    plan.first_split.push_back(static_cast<uint16_t>(first));
    first += NumSplits(cost, chunk);
  }
  plan.first_split.push_back(static_cast<uint16_t>(first));
  return plan;
}

size_t DecodeWorkspaceBytes(const DecodePlan& plan) {
  return static_cast<size_t>(AlignedCounterBytes(plan) + AlignedSumBytes(plan) +
                             NumCtas(plan) * plan.heads_per_unit * plan.format.v.dim * 4);
}

void InitDecodeWorkspace(const DecodePlan& plan, void* workspace, cudaStream_t stream) {
  OSCAR_CUDA_CHECK(cudaMemsetAsync(workspace, 0, AlignedCounterBytes(plan), stream));
}

void RunDecode(const DecodePlan& plan, const DecodeArguments& arguments, void* workspace,
               cudaStream_t stream) {
  const CacheView& cache = arguments.cache;
  CheckCacheView(cache);
  if (cache.num_requests + 1 != static_cast<int>(plan.first_split.size()) ||
      cache.num_kv_heads != plan.num_kv_heads || cache.format.k.dim != plan.format.k.dim ||
      cache.format.v.dim != plan.format.v.dim)
    throw UsageError("decode attention: the cache is not the one the plan was made for");

  DecodeKernelArguments args{};
  args.call = arguments;
  args.num_q_heads = plan.num_q_heads;
  args.gqa_ratio = plan.num_q_heads / plan.num_kv_heads;
  args.heads_per_unit = plan.heads_per_unit;
  args.record_bytes = RecordBytes(cache.format);
  args.k_metadata = KMetadataOffset(cache.format);
  args.v_metadata = VMetadataOffset(cache.format);
  const int tiles_per_page = cache.format.page_tokens / kTileTokens;
  args.tiles_per_page_log2 = tiles_per_page == 8 ? 3 : tiles_per_page == 4 ? 2 : 0;
  args.page_bytes = PageBytes(cache.format, cache.num_kv_heads);
  args.window_tile_cost = WindowTileCost(cache.format);
  uint8_t* bytes = static_cast<uint8_t*>(workspace);
  args.arrivals = reinterpret_cast<int*>(bytes);
  bytes += AlignedCounterBytes(plan);
  args.partial_sums = reinterpret_cast<float2*>(bytes);
  bytes += AlignedSumBytes(plan);
  args.partial_out = reinterpret_cast<float*>(bytes);
  std::copy(plan.first_split.begin(), plan.first_split.end(), args.first_split);

  const dim3 grid(plan.first_split.back(), plan.units_per_kv_head, plan.num_kv_heads);
  Launch(args, grid, stream);
}

}  // namespace oscar
