// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The automatic choice of how to store the cache of one layer, and every score that it was based
// on. This is plain data, stored with the layer and in report.json. Scores of keys are KLs and
// scores of values are relative output errors, so the two are never compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calib/cache_side.h"
#include "calib/consumers.h"
#include "calib/fit/transform_fit.h"  // KeyRecipe
#include "calib/options.h"
#include "capture/files/strict_json.h"
#include "linalg/cache_windows.h"  // CacheWindows

namespace oscar {

// A candidate that demands more of the consumer replaces a less demanding one only if its score is
// lower by this share.
inline constexpr double kWorthwhile = 0.01;
// The same share for a candidate with another kind of fit. It is larger than the lead that the best
// of a dozen noisy scores has by chance.
inline constexpr double kWorthFit = 0.03;

// How values are transformed before they are quantized. KeyRecipe does the same for keys.
struct ValueRecipe {
  ValueTarget target = ValueTarget::kAttentionOutput;
  bool per_head = false;
  Composition composition = Composition::kRHPbr;

  std::string Name() const;                            // "attention_output per_head r_h_pbr"
  static ValueRecipe FromName(std::string_view name);  // throws InputError for any other text
  bool operator==(const ValueRecipe&) const = default;
};

// Returns the index of the first side that equals sides[index], so that equal sides are stored
// once.
size_t FirstEqual(const std::vector<const CacheSide*>& sides, size_t index);

// The scores of one candidate on sampled held-out rows.
struct CandidateScore {
  std::string side, recipe;  // "k" or "v"; the recipe's Name()
  int bits = 2;
  double clip = 0;
  int64_t quant_group_size = 0;
  double score = 0;  // score on the choosing rows
  double check = 0;  // score on the judging rows, which alternate with those
  std::optional<MetadataType> fitted_scales = {};
};

// The cost of a way to store a cache: KL of the next token, over the vocabulary.
struct NextTokenCost {
  double mean = 0, p99 = 0;  // nats, over tokens
  // The cost that plans minimize: the mean plus p99 / 100, so that the worst hundredth of the
  // tokens counts twice.
  double damage() const { return mean + p99 / 100; }
};

// The best option for a side at some number of bits.
struct SideOption {
  double bits = 2;           // per element, mean over heads
  std::vector<double> clip;  // [1], or [num_kv_heads] if the consumer allows that
  double score = 0, check = 0;
  // [num_kv_heads], if each head has its own bits (2, 3, 4 or 8); empty: all heads have `bits`.
  std::vector<int> head_bits = {};
  std::vector<double> head_score = {}, head_check = {};  // [num_kv_heads], as score and check
  std::vector<double> ratios = {},
                      curve = {};        // clip ratios and scores, if all layers share one ratio
  std::vector<double> check_curve = {};  // like `curve`, but on the judging rows
  std::vector<double> in_windows = {};   // keys: score in each of AutoChoice::windows
  // `in_windows` for each of `ratios`; only for keys, and only if all layers share one ratio.
  std::vector<std::vector<double>> windows_curve = {};

  // The mean and p99 of NextTokenCost if only this side of this layer is quantized and everything
  // else stays exact; empty: not measured.
  std::vector<double> next_token_kl = {};

  void SetRatio(double ratio);    // sets a ratio for all heads, with its scores
  std::vector<int> Bits() const;  // [1], or head_bits
};

struct WindowPrice {
  CacheWindows windows;
  int64_t rows = 0;  // sampled rows that reach beyond the windows
};

// How much a fit to half of the tokens loses. The chosen recipes are fitted to each half and scored
// on the same rows as the fit to all tokens.
struct Stability {
  bool measured = false;
  double k_cost = 0, v_cost = 0;  // score of the worse half / score with all tokens - 1
  int64_t tokens = 0;             // tokens in the smaller half
  bool few_tokens = false;        // fewer than kTokensPerDim per dimension
  bool unstable = false;          // few_tokens, or a cost above kStableCost
};
inline constexpr int64_t kTokensPerDim = 20;
inline constexpr double kStableCost = 0.15;
inline constexpr double kNoFitCost = 100;  // cost of a half to which the recipe cannot be fitted

// Describes what a writer stores for each quantization group.
struct GroupFormat {
  int64_t quant_group_size = 0;  // 0: a group is a head's row
  bool bytes = false;            // scale and zero in 8 bits each; otherwise 16, as papers count
};

struct AutoChoice {
  bool made = false;
  KeyRecipe keys;
  ValueRecipe values;
  // Moments of keys are spread over this context (position_spread.h), from texts of this length.
  int64_t context = 0, text_length = 0;  // tokens
  int64_t quant_group_size = 0;          // values per scale; 0: the head dimension
  // The type in which the consumer stores fitted scales; scores are computed with scales of this
  // type. None: scales from the range, as published.
  std::optional<MetadataType> fitted_scales = {};
  double k_bits = 2, v_bits = 2;                 // each has an option below
  std::vector<SideOption> k_options, v_options;  // ascending bits
  // Relative output error of 2-bit keys, with which ValueDamage converts scores of values to nats.
  // 0: not measured, because all codes have 2 bits.
  double k_output_error = 0;
  std::vector<WindowPrice> windows;  // the one in use first
  // Scores of the choice and of Hadamard with clipping, on the judging rows. If the choice has the
  // higher score, Hadamard replaces it.
  double k_check = 0, k_hadamard = 0, v_check = 0, v_hadamard = 0;
  std::string k_fallback, v_fallback;  // the recipe that lost to Hadamard + clip; empty: none
  int64_t rows = 0;                    // sampled query rows; half choose, half judge
  bool rows_in_windows = false;  // no row reaches beyond the windows: scored with all quantized
  // Whether the matrices were refined, and how that changed the KL on held-out rows.
  bool refined = false;
  double refined_kl = 0, unrefined_kl = 0;  // 0: not tried
  Stability stability;
  std::vector<CandidateScore> scores;

  // Only for latent attention: the number of rope dimensions, which are stored next to the latent.
  // 0: other attention.
  // In latent attention, keys and values are the same stored row. So `v` is `k`, options for keys
  // and values with equal bits have the same clip ratio, and scores of values are the output error
  // of that row. Keys are fitted to the target in `values` together with the queries' covariance.
  int64_t position_dim = 0;
  bool latent() const { return position_dim > 0; }

  CacheSide k, v;  // fitted to all tokens

  // Sets fitted_scales and quant_group_size to what the consumer's rules allow for such heads.
  void SetWriter(const AutoOptions& options, int64_t quant_group, int64_t head_dim,
                 int64_t v_head_dim);
  // Returns how rows are written with an option, or with codes of `bits` at any clip ratio.
  AffineQuantizer Quantizer(const SideOption& option, bool of_keys) const;
  AffineFormat Format(int bits, bool of_keys) const;  // quant_group_size 0: the head
  GroupFormat Groups() const { return {quant_group_size, fitted_scales == MetadataType::kByte}; }

  const SideOption& k_option() const;
  const SideOption& v_option() const;
  SideOption& k_option();
  SideOption& v_option();
};

// Convert everything except the matrices. ChoiceFromJson reads exactly what ChoiceToJson wrote.
Json ChoiceToJson(const AutoChoice& choice);
AutoChoice ChoiceFromJson(const Json& json, std::string_view what);

}  // namespace oscar
