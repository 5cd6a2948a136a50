// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The members of report.json that describe the automatic choice of a layer, of a runtime and of a
// bit budget. Programs add other members, so all of these structs are open (kOpen in fields.h).
#pragma once

#include "export/measures/read.h"

namespace oscar::measures {

struct Open {
  static constexpr bool kOpen = true;
};

struct Recipe : Open {
  std::string name;
  using Fields = Members<&Recipe::name>;
};

struct Option : Open {
  NonNegative bits, score, check;
  std::vector<NonNegative> clip, ratios, curve;
  std::optional<std::vector<int64_t>> head_bits;
  std::optional<std::vector<NonNegative>> head_score, head_check, next_token_kl;
  using T = Option;
  using Fields = Members<&T::bits, &T::clip, &T::score, &T::check, &T::ratios, &T::curve,
                         &T::head_bits, &T::head_score, &T::head_check, &T::next_token_kl>;
};

struct Guard : Open {
  NonNegative k, k_hadamard, v, v_hadamard;
  std::string k_fallback, v_fallback;
  using T = Guard;
  using Fields =
      Members<&T::k, &T::k_hadamard, &T::k_fallback, &T::v, &T::v_hadamard, &T::v_fallback>;
};

struct Stability : Open {
  NonNegative k_cost, v_cost;
  int64_t tokens = 0;
  bool few_tokens = false, unstable = false;
  using T = Stability;
  using Fields = Members<&T::k_cost, &T::v_cost, &T::tokens, &T::few_tokens, &T::unstable>;
};

struct Score : Open {
  std::string side, recipe;
  NonNegative bits, clip, score, check;
  int64_t quant_group_size = 0;
  std::optional<std::string> fitted_scales;
  using T = Score;
  using Fields = Members<&T::side, &T::recipe, &T::bits, &T::clip, &T::quant_group_size,
                         &T::fitted_scales, &T::score, &T::check>;
};

struct LayerChoice : Open {
  Recipe keys, values;
  int64_t quant_group_size = 0;
  std::optional<std::string> fitted_scales;
  NonNegative k_bits, v_bits;
  std::vector<Option> k_options, v_options;
  Guard guard;
  std::optional<Stability> stability;
  bool refined = false;
  std::vector<Score> scores;
  using T = LayerChoice;
  using Fields =
      Members<&T::keys, &T::values, &T::quant_group_size, &T::fitted_scales, &T::k_bits, &T::v_bits,
              &T::k_options, &T::v_options, &T::guard, &T::stability, &T::refined, &T::scores>;
};
void Verify(const Spot& spot, const LayerChoice& choice);

struct PlanCost : Open {
  std::string by;
  NonNegative token_kl, token_kl_p99;
  using Fields = Members<&PlanCost::by, &PlanCost::token_kl, &PlanCost::token_kl_p99>;
};

struct SensitiveSide : Open {
  int64_t layer_id = 0;
  std::string side;
  NonNegative token_kl, share;
  std::optional<NonNegative> bits;
  using T = SensitiveSide;
  using Fields = Members<&T::layer_id, &T::side, &T::token_kl, &T::share, &T::bits>;
};

struct BitsBy : Open {
  std::string price;
  int64_t tokens = 0, sink_tokens = 0, recent_tokens = 0;
  std::optional<int64_t> tokens_priced;
  std::vector<PlanCost> plans;
  std::vector<SensitiveSide> sensitive;
  using T = BitsBy;
  using Fields = Members<&T::price, &T::tokens, &T::tokens_priced, &T::sink_tokens,
                         &T::recent_tokens, &T::plans, &T::sensitive>;
};

struct PricedWindows : Open {
  int64_t sink_tokens = 0, recent_tokens = 0, rows_beyond = 0;
  NonNegative bits_per_element, kl;
  using T = PricedWindows;
  using Fields =
      Members<&T::sink_tokens, &T::recent_tokens, &T::bits_per_element, &T::rows_beyond, &T::kl>;
};

struct ServingChoice : Open {
  std::string for_;
  NonNegative bits, bits_spent, bits_stored;
  std::optional<BitsBy> bits_by;
  std::vector<PricedWindows> windows;
  int64_t windows_priced_at_tokens = 0, unstable_layers = 0, hadamard_layers = 0;
  std::optional<double> k_clip_ratio, v_clip_ratio;
  using T = ServingChoice;
  using Fields = Members<&T::for_, &T::bits, &T::bits_spent, &T::bits_stored, &T::bits_by,
                         &T::windows, &T::windows_priced_at_tokens, &T::unstable_layers,
                         &T::hadamard_layers, &T::k_clip_ratio, &T::v_clip_ratio>;
};

struct ServedRuntime : Open {
  std::string runtime, choice;
  bool fold_checkpoint = false;
  NonNegative kl, hadamard_kl, output_error;
  std::optional<bool> error_feedback;
  using T = ServedRuntime;
  using Fields = Members<&T::runtime, &T::fold_checkpoint, &T::choice, &T::kl, &T::hadamard_kl,
                         &T::output_error, &T::error_feedback>;
};

struct ServedBudget : Open {
  NonNegative bits, bits_spent, bits_stored, kl, hadamard_kl, output_error;
  std::string choice;
  std::optional<BitsBy> bits_by;
  using T = ServedBudget;
  using Fields = Members<&T::bits, &T::choice, &T::bits_spent, &T::bits_stored, &T::bits_by, &T::kl,
                         &T::hadamard_kl, &T::output_error>;
};

struct TypePlan : Open {
  std::string by;
  NonNegative bits, bits_stored, token_kl, token_kl_p99;
  using T = TypePlan;
  using Fields = Members<&T::by, &T::bits, &T::bits_stored, &T::token_kl, &T::token_kl_p99>;
};

struct TypeCost : Open {
  std::string type;
  NonNegative token_kl, token_kl_p99, attention_kl, output_error;
  using T = TypeCost;
  using Fields =
      Members<&T::type, &T::token_kl, &T::token_kl_p99, &T::attention_kl, &T::output_error>;
};

struct TypedLayer : Open {
  int64_t layer_id = 0, num_kv_heads = 0, head_dim = 0, v_head_dim = 0;
  std::vector<TypeCost> k, v;
  using T = TypedLayer;
  using Fields =
      Members<&T::layer_id, &T::num_kv_heads, &T::head_dim, &T::v_head_dim, &T::k, &T::v>;
};

struct LayerTypes : Open {
  int64_t layer_id = 0;
  std::string k, v;
  using Fields = Members<&LayerTypes::layer_id, &LayerTypes::k, &LayerTypes::v>;
};

struct CacheTypes : Open {
  std::string for_, price;
  NonNegative bits, bits_stored;
  int64_t tokens = 0;
  std::vector<LayerTypes> layers;
  std::vector<TypedLayer> costs;
  std::vector<TypePlan> plans, curve;
  using T = CacheTypes;
  using Fields = Members<&T::for_, &T::bits, &T::bits_stored, &T::tokens, &T::price, &T::layers,
                         &T::costs, &T::plans, &T::curve>;
};

}  // namespace oscar::measures
