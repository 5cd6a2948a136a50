// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// KVQuant (arXiv 2401.18079), with the first token exact. Variants have k-means levels (nuq, the
// paper's method) or uniform levels (int), and 1 % outliers or none. The k-means here weights all
// values equally; the paper weights them by squared gradients of the loss.
#include <array>

#include "export/simulate/affine_cost.h"
#include "export/simulate/methods/kvquant_fit.h"
#include "export/simulate/methods/methods.h"
#include "linalg/quantile.h"

namespace oscar {
namespace {

struct KvQuantRow {
  std::string_view name, description;
  KvQuantLevels levels;
  int bits;
  double kept;
};

using enum KvQuantLevels;
constexpr std::array kKvQuantTable = {
    KvQuantRow{"kvquant_nuq2", "KVQuant, 2-bit k-means levels with Q-Norm, 1 % outliers", kKMeans,
               2, 0.99},
    KvQuantRow{"kvquant_nuq3", "KVQuant, 3-bit k-means levels, 1 % outliers", kKMeans, 3, 0.99},
    KvQuantRow{"kvquant_nuq4", "KVQuant, 4-bit k-means levels, 1 % outliers", kKMeans, 4, 0.99},
    KvQuantRow{"kvquant_nuq2_dense", "KVQuant, 2-bit k-means levels with Q-Norm, no outliers",
               kKMeans, 2, 1},
    KvQuantRow{"kvquant_int2", "KVQuant, 2-bit uniform levels, 1 % outliers", kUniform, 2, 0.99},
};

KvQuantOptions OptionsOf(const KvQuantRow& variant, uint64_t seed) {
  return {.bits = variant.bits,
          .levels = variant.levels,
          .kept = variant.kept,
          .q_norm = variant.levels == kKMeans && variant.bits == 2,
          .seed = seed};
}

constexpr double kOutlierBits = 16 + 16;  // value and index
constexpr double kPointerBits = 32;       // per token, for each of k and v: start of outliers
constexpr double kRangeBits = 2 * 16;     // low and high of a token's values

// Returns the number of outliers of a token of `channels` values. Limits of keys are quantiles of
// calibration tokens, so a fraction 1 - kept of the values exceeds them. Limits of values are
// quantiles of the token itself, and values at or beyond a limit are outliers. Their number is
// whole: of 128 values, it is 2 (1.56 %) although 1 % was requested.
double Outliers(bool keys, int64_t channels, double kept) {
  if (kept >= 1) return 0;
  if (keys) return (1 - kept) * static_cast<double>(channels);
  const KeptQuantiles quantiles = QuantilesKeeping(kept);
  const QuantileRank low = RankOfQuantile(quantiles.low, channels),
                     high = RankOfQuantile(quantiles.high, channels);
  const int64_t below = low.lower + 1;
  const int64_t above = channels - high.lower - (high.fraction > 0 ? 1 : 0);
  return static_cast<double>(below + above);
}

// Returns the bits of a quantized token's keys or values, over all heads.
CacheCost TokenBits(const KvQuantRow& variant, bool keys, int64_t channels) {
  const double paper = variant.bits * static_cast<double>(channels) +
                       kOutlierBits * Outliers(keys, channels, variant.kept);
  return {paper, paper + (variant.kept < 1 ? kPointerBits : 0) + (keys ? 0 : kRangeBits)};
}

CacheCost Cost(const KvQuantRow& variant, const MethodContext& context, int64_t tokens) {
  const auto exact = static_cast<double>(std::min(tokens, OptionsOf(variant, 0).first_tokens));
  const double quantized = static_cast<double>(tokens) - exact;
  return MeanOverCache(context.layers(), tokens, [&](size_t layer_index, bool keys) {
    const AttentionSpec& spec = context.layers()[layer_index].attention;
    const int64_t channels = spec.num_kv_heads * (keys ? spec.head_dim : spec.v_head_dim);
    const CacheCost bits = TokenBits(variant, keys, channels);
    const double kept = exact * 16 * static_cast<double>(channels);
    return CacheCost{quantized * bits.paper + kept, quantized * bits.actual + kept};
  });
}

}  // namespace

std::vector<CacheMethod> KvQuantMethods() {
  std::vector<CacheMethod> methods;
  for (const KvQuantRow& variant : kKvQuantTable) {
    methods.push_back(
        {.name = variant.name,
         .description = variant.description,
         .takes_clip = false,
         .takes_windows = false,
         .needs_rows = true,
         .make =
             [&variant](const MethodContext& context, size_t layer_index, const ArmOptions&) {
               const KvQuantOptions options = OptionsOf(variant, context.options().seed);
               const RopeSpec& rope = context.layers()[layer_index].attention.rope;
               const CalibrationRows& rows = context.rows();
               return KvQuantCache(rope, FitKvQuant(rope, rows, options), options);
             },
         .cost = [&variant](const MethodContext& context, const ArmOptions&,
                            int64_t tokens) { return Cost(variant, context, tokens); }});
  }
  return methods;
}

}  // namespace oscar
