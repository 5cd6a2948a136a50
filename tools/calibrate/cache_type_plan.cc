// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/calibrate/cache_type_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "calib/choose/cache_types.h"
#include "calib/job/layer_file.h"
#include "export/artifact/cache_type_record.h"
#include "export/validate/next_token_cost.h"
#include "linalg/base/error.h"
#include "linalg/float4.h"  // kNvfp4Values
#include "tools/calibrate/next_token_plan.h"

namespace oscar {
namespace {

constexpr int kCurvePoints = 6;
constexpr double kMostBits = 16;

std::vector<TypedLayer> LayersWithoutCosts(const std::vector<LayerSpec>& layers) {
  std::vector<TypedLayer> typed;
  for (const LayerSpec& layer : layers) {
    typed.push_back({.layer_id = layer.layer_id,
                     .num_kv_heads = layer.attention.num_kv_heads,
                     .head_dim = layer.attention.head_dim,
                     .v_head_dim = layer.attention.v_head_dim});
  }
  return typed;
}

float Largest(const std::vector<double>& maxima) {
  return maxima.empty() ? 0 : static_cast<float>(std::ranges::max(maxima));
}

// Returns the budgets of the curve of cost by bits in ascending order, including the requested one.
std::vector<double> CurveBits(double least, double asked) {
  std::vector<double> bits = {asked};
  for (int i = 0; i < kCurvePoints; ++i)
    bits.push_back(least + i * (kMostBits - least) / kCurvePoints);
  std::ranges::sort(bits);
  const auto same = std::ranges::unique(bits);
  bits.erase(same.begin(), same.end());
  return bits;
}

}  // namespace

void CheckCacheTypes(const CacheTypesWanted& wanted, const CalibrationInput& input) {
  const auto& [name, bits] = wanted;
  if (name.empty()) return;
  const TypedRuntime& runtime = *FindTypedRuntime(name);
  const std::vector<CacheType> types = QuantizedTypes(runtime);
  const bool nvfp4 = std::ranges::count(types, CacheType::kNvfp4) > 0;
  for (const LayerSpec& layer : input.source->layers()) {
    const AttentionSpec& spec = layer.attention;
    const auto refuse = [&](std::string_view why) {
      throw UsageError(fmt::format("--for {}: layer {} {}", name, layer.layer_id, why));
    };
    if (spec.latent)
      refuse(
          "has latent attention (MLA), whose cache can have only one type; use --for sglang-oct, "
          "which rotates it");
    if (nvfp4 && (spec.head_dim % kNvfp4Values != 0 || spec.v_head_dim % kNvfp4Values != 0))
      refuse(fmt::format("has head dimensions {} and {}, but NVFP4 needs multiples of {}",
                         spec.head_dim, spec.v_head_dim, kNvfp4Values));
  }
  const double least = LeastBits(runtime, LayersWithoutCosts(input.source->layers()));
  if (bits >= least) return;
  throw UsageError(fmt::format(
      "--bits {:g}: {} stores at least {:g} bits per value, including scales", bits, name, least));
}

Json PlanCacheTypes(const CacheTypesWanted& wanted, const CalibrationInput& input,
                    const HeldOutSplit& split, const JobDirectory& job, CommandContext& context) {
  const auto& [name, bits] = wanted;
  const TypedRuntime& runtime = *FindTypedRuntime(name);
  const std::vector<CacheType> types = QuantizedTypes(runtime);
  std::vector<TypedLayer> layers = LayersWithoutCosts(input.source->layers());
  std::vector<LargestMagnitudes> largest;
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerMoments moments = ReadLayerFile(job.LayerPath(i), MomentsPart::kMeans).moments;
    largest.push_back({Largest(moments.key_abs_max), Largest(moments.value_abs_max)});
  }
  const size_t trials = 2 * layers.size() * types.size();
  NextTokenRun run = RunOf(input, context);
  run.largest = [&](size_t layer) { return largest[layer]; };
  const PassTexts texts = TextsOf(input, split, trials, &run.windows);
  DoPass("measuring next-token KL by type", texts.priced, run, context,
         [&] { PriceTypes(run, types, layers); });

  std::vector<CacheTypeRecord::Measured> measured;
  for (const BitPrice price : kBitPrices)
    measured.push_back({price, bits, PlanTypes(runtime, layers, bits, price), {}});
  const size_t plans = measured.size();
  for (const double budget : CurveBits(LeastBits(runtime, layers), bits)) {
    measured.push_back({BitPrice::kNextToken,
                        budget,
                        PlanTypes(runtime, layers, budget, BitPrice::kNextToken),
                        {}});
  }
  std::vector<std::vector<LayerTypes>> whole;
  for (const auto& one : measured) whole.push_back(one.plan.layers);
  std::vector<NextTokenCost> costs;
  DoPass("measuring whole caches", texts.judged, run, context,
         [&] { costs = MeasureTypes(run, whole); });
  for (size_t i = 0; i < costs.size(); ++i) measured[i].cost = costs[i];

  CacheTypeRecord record{
      .runtime = std::string(name), .bits = bits, .tokens = NumTokens(texts.judged.ids)};
  record.plans.assign(measured.begin(), measured.begin() + static_cast<std::ptrdiff_t>(plans));
  record.curve.assign(measured.begin() + static_cast<std::ptrdiff_t>(plans), measured.end());
  const auto best = std::ranges::min_element(record.plans, {},
                                             [](const auto& plan) { return plan.cost.damage(); });
  record.price = best->price;
  record.types = best->plan.layers;
  record.stored_bits = best->plan.stored_bits;
  record.layers = std::move(layers);

  std::string line =
      fmt::format("types for {}, measured on {} held-out tokens:", name, record.tokens);
  for (const auto& plan : record.plans) {
    line += fmt::format("{} {:.2f} bits by {}: KL {:.2g}, 99th percentile {:.2g}",
                        &plan == record.plans.data() ? "" : ";", plan.plan.stored_bits,
                        BitPriceName(plan.price), plan.cost.mean, plan.cost.p99);
  }
  const Json json = CacheTypeRecordToJson(record);
  context.log.Info("cache_types", line, {{"plans", json.at("plans")}, {"price", json.at("price")}});
  return json;
}

}  // namespace oscar
