// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/choice_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace oscar {
namespace {

void CheckRecipe(const Spot& spot) { Open(spot, {{"name", CheckText}}); }

void CheckOption(const Spot& spot) {
  Open(spot, {{"bits", CheckNonNegative},
              {"clip", ArrayOf<CheckNonNegative>},
              {"score", CheckNonNegative},
              {"check", CheckNonNegative},
              {"ratios", ArrayOf<CheckNonNegative>},
              {"curve", ArrayOf<CheckNonNegative>},
              {"head_bits", ArrayOf<CheckCount>, kOptional},
              {"head_score", ArrayOf<CheckNonNegative>, kOptional},
              {"head_check", ArrayOf<CheckNonNegative>, kOptional},
              {"next_token_kl", ArrayOf<CheckNonNegative>, kOptional}});
}

void CheckGuard(const Spot& spot) {
  Open(spot, {{"k", CheckNonNegative},
              {"k_hadamard", CheckNonNegative},
              {"k_fallback", CheckText},
              {"v", CheckNonNegative},
              {"v_hadamard", CheckNonNegative},
              {"v_fallback", CheckText}});
}

void CheckStability(const Spot& spot) {
  Open(spot, {{"k_cost", CheckNonNegative},
              {"v_cost", CheckNonNegative},
              {"tokens", CheckCount},
              {"few_tokens", CheckBool},
              {"unstable", CheckBool}});
}

void CheckScore(const Spot& spot) {
  Open(spot, {{"side", CheckText},
              {"recipe", CheckText},
              {"bits", CheckNonNegative},
              {"clip", CheckNonNegative},
              {"quant_group_size", CheckCount},
              {"fitted_scales", CheckText, kOptional},
              {"score", CheckNonNegative},
              {"check", CheckNonNegative}});
}

void CheckPlanCost(const Spot& spot) {
  Open(spot,
       {{"by", CheckText}, {"token_kl", CheckNonNegative}, {"token_kl_p99", CheckNonNegative}});
}

void CheckSensitiveSide(const Spot& spot) {
  Open(spot, {{"layer_id", CheckCount},
              {"side", CheckText},
              {"token_kl", CheckNonNegative},
              {"share", CheckNonNegative},
              {"bits", CheckNonNegative, kOptional}});
}

void CheckBitsBy(const Spot& spot) {
  Open(spot, {{"price", CheckText},
              {"tokens", CheckCount},
              {"tokens_priced", CheckCount, kOptional},
              {"sink_tokens", CheckCount},
              {"recent_tokens", CheckCount},
              {"plans", ArrayOf<CheckPlanCost>},
              {"sensitive", ArrayOf<CheckSensitiveSide>}});
}

void CheckPricedWindows(const Spot& spot) {
  Open(spot, {{"sink_tokens", CheckCount},
              {"recent_tokens", CheckCount},
              {"bits_per_element", CheckNonNegative},
              {"rows_beyond", CheckCount},
              {"kl", CheckNonNegative}});
}

void CheckTypePlan(const Spot& spot) {
  Open(spot, {{"by", CheckText},
              {"bits", CheckNonNegative},
              {"bits_stored", CheckNonNegative},
              {"token_kl", CheckNonNegative},
              {"token_kl_p99", CheckNonNegative}});
}

void CheckTypeCost(const Spot& spot) {
  Open(spot, {{"type", CheckText},
              {"token_kl", CheckNonNegative},
              {"token_kl_p99", CheckNonNegative},
              {"attention_kl", CheckNonNegative},
              {"output_error", CheckNonNegative}});
}

void CheckTypedLayer(const Spot& spot) {
  Open(spot, {{"layer_id", CheckCount},
              {"num_kv_heads", CheckCount},
              {"head_dim", CheckCount},
              {"v_head_dim", CheckCount},
              {"k", ArrayOf<CheckTypeCost>},
              {"v", ArrayOf<CheckTypeCost>}});
}

void CheckLayerTypes(const Spot& spot) {
  Open(spot, {{"layer_id", CheckCount}, {"k", CheckText}, {"v", CheckText}});
}

}  // namespace

void CheckLayerChoice(const Spot& spot) {
  Open(spot, {{"keys", CheckRecipe},
              {"values", CheckRecipe},
              {"quant_group_size", CheckCount},
              {"fitted_scales", CheckText, kOptional},
              {"k_bits", CheckNonNegative},
              {"v_bits", CheckNonNegative},
              {"k_options", ArrayOf<CheckOption>},
              {"v_options", ArrayOf<CheckOption>},
              {"guard", CheckGuard},
              {"stability", CheckStability, kOptional},
              {"refined", CheckBool},
              {"scores", ArrayOf<CheckScore>}});
  for (const auto& [bits, options] : {std::pair("k_bits", "k_options"), {"v_bits", "v_options"}}) {
    const Spot chosen = spot.Member(bits);
    const std::vector<Spot> all = spot.Member(options).Elements();
    if (std::ranges::none_of(all, [&](const Spot& option) {
          return option.Member("bits").Number() == chosen.Number();
        })) {
      chosen.Refuse(
          fmt::format("none of \"{}\" has {} bits", options, ToJson(chosen.value).dump()));
    }
  }
}

void CheckServingChoice(const Spot& spot) {
  Open(spot, {{"for", CheckText},
              {"bits", CheckNonNegative},
              {"bits_spent", CheckNonNegative},
              {"bits_stored", CheckNonNegative},
              {"bits_by", CheckBitsBy, kOptional},
              {"windows", ArrayOf<CheckPricedWindows>},
              {"windows_priced_at_tokens", CheckCount},
              {"unstable_layers", CheckCount},
              {"hadamard_layers", CheckCount},
              {"k_clip_ratio", CheckNumber, kOptional},
              {"v_clip_ratio", CheckNumber, kOptional}});
}

void CheckServedRuntime(const Spot& spot) {
  Open(spot, {{"runtime", CheckText},
              {"fold_checkpoint", CheckBool},
              {"choice", CheckText},
              {"kl", CheckNonNegative},
              {"hadamard_kl", CheckNonNegative},
              {"output_error", CheckNonNegative},
              {"error_feedback", CheckBool, kOptional}});
}

void CheckBudget(const Spot& spot) {
  Open(spot, {{"bits", CheckNonNegative},
              {"choice", CheckText},
              {"bits_spent", CheckNonNegative},
              {"bits_stored", CheckNonNegative},
              {"bits_by", CheckBitsBy, kOptional},
              {"kl", CheckNonNegative},
              {"hadamard_kl", CheckNonNegative},
              {"output_error", CheckNonNegative}});
}

void CheckCacheTypes(const Spot& spot) {
  Open(spot, {{"for", CheckText},
              {"bits", CheckNonNegative},
              {"bits_stored", CheckNonNegative},
              {"tokens", CheckCount},
              {"price", CheckText},
              {"layers", ArrayOf<CheckLayerTypes>},
              {"costs", ArrayOf<CheckTypedLayer>},
              {"plans", ArrayOf<CheckTypePlan>},
              {"curve", ArrayOf<CheckTypePlan>}});
}

}  // namespace oscar
