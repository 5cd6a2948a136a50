// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The choice for the cache of one layer, and every score that it was based on: plain data, stored
// with the layer and in report.json. A score is a KL for keys and a relative output error for
// values; the two are never compared.
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

// A later candidate, which asks more of a consumer, replaces an earlier one only if its score is
// lower by this share.
inline constexpr double kWorthwhile = 0.01;
// The same for a fit of another kind. Noise alone makes the best of a dozen scores better by less.
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

// Returns the first side that equals sides[index], so that it is stored once; `index` if none.
size_t FirstEqual(const std::vector<const CacheSide*>& sides, size_t index);

// The scores of one candidate, on sampled held-out rows.
struct CandidateScore {
  std::string side, recipe;  // "k" or "v"; Name()
  int bits = 2;
  double clip = 0;
  int64_t quant_group_size = 0;
  double score = 0;  // on the rows that choose
  double check = 0;  // on the rows between them, which judge
  std::optional<MetadataType> fitted_scales = {};
};

// The cost of a way to store a cache: KL of the next token, over the vocabulary.
struct NextTokenCost {
  double mean = 0, p99 = 0;  // nats, over tokens
  // The cost that decides: the mean, plus the worst hundredth of the tokens counted once more.
  double damage() const { return mean + p99 / 100; }
};

// The best option of a side at some number of bits.
struct SideOption {
  double bits = 2;           // per element: of all heads, or their mean
  std::vector<double> clip;  // [1], or [num_kv_heads] where a consumer takes that
  double score = 0, check = 0;
  // [num_kv_heads], if each head has bits of its own (2, 3, 4 or 8); empty: `bits` for all heads.
  std::vector<int> head_bits = {};
  std::vector<double> head_score = {}, head_check = {};  // [num_kv_heads] of score and check
  std::vector<double> ratios = {},
                      curve = {};        // clip ratios and their scores, for a ratio of all layers
  std::vector<double> check_curve = {};  // as `curve`, on the rows that judge
  std::vector<double> in_windows = {};   // keys: score in each of AutoChoice::windows
  // The scores `in_windows` at each of `ratios`; only for keys whose one ratio serves all layers.
  std::vector<std::vector<double>> windows_curve = {};

  // NextTokenCost of quantizing this side of this layer alone, with everything else exact: mean,
  // p99; empty: not measured.
  std::vector<double> next_token_kl = {};

  void SetRatio(double ratio);    // of `ratios`, for all heads, with the scores that go with it
  std::vector<int> Bits() const;  // [1], or head_bits
};

struct WindowPrice {
  CacheWindows windows;
  int64_t rows = 0;  // sampled rows whose context is longer
};

// The cost of halving the tokens: the chosen recipes are fitted to each half and scored on the rows
// on which the fit to all tokens was scored.
struct Stability {
  bool measured = false;
  double k_cost = 0, v_cost = 0;  // score of the worse half / score of all tokens - 1
  int64_t tokens = 0;             // of the smaller half
  bool few_tokens = false;        // fewer than kTokensPerDim per dimension
  bool unstable = false;          // few_tokens, or a cost beyond kStableCost
};
inline constexpr int64_t kTokensPerDim = 20;
inline constexpr double kStableCost = 0.15;
inline constexpr double kNoFitCost = 100;  // of a half that the recipe has no fit to

// Describes what a writer stores for each quantization group.
struct GroupFormat {
  int64_t quant_group_size = 0;  // 0: a group is a head's row
  bool bytes = false;            // scale and zero in 8 bits each; else in 16, as papers count
};

struct AutoChoice {
  bool made = false;
  KeyRecipe keys;
  ValueRecipe values;
  // Keys are fitted to moments spread over this context (position_spread.h), of texts this long.
  int64_t context = 0, text_length = 0;  // tokens
  int64_t quant_group_size = 0;          // values per scale; 0: the head
  // The type of the consumer's fitted scales; scores are of rows written so. None: as published.
  std::optional<MetadataType> fitted_scales = {};
  double k_bits = 2, v_bits = 2;                 // each has an option below
  std::vector<SideOption> k_options, v_options;  // ascending bits
  // Relative output error of 2-bit keys: the unit of values' scores, for comparison with the keys'
  // KL. 0: not measured, because there were no bits to share out.
  double k_output_error = 0;
  std::vector<WindowPrice> windows;  // the one in use first
  // Scores of the guard on the judging rows: the choice, and Hadamard with a clip ratio.
  double k_check = 0, k_hadamard = 0, v_check = 0, v_hadamard = 0;
  std::string k_fallback, v_fallback;  // the recipe that lost to Hadamard + clip; empty: none did
  int64_t rows = 0;                    // sampled query rows, half of each kind
  bool rows_in_windows = false;  // nothing beyond the windows: scored with everything quantized
  // Whether the matrices were refined, and the result of that on held-out rows.
  bool refined = false;
  double refined_kl = 0, unrefined_kl = 0;  // 0: not tried
  Stability stability;
  std::vector<CandidateScore> scores;

  // Latent attention only: dimensions of the part with position, which is stored beside the latent.
  // Keys and values are then one stored row: `v` is `k`, options of equal bits have one clip ratio,
  // and the values' scores are the output error of the row that is both. `values` names the target
  // to which, together with the queries' covariance, keys are fitted. 0: other attention.
  int64_t position_dim = 0;
  bool latent() const { return position_dim > 0; }

  CacheSide k, v;  // fitted to all tokens

  // Sets fitted_scales and quant_group_size: what the consumer's rules allow for such heads.
  void SetWriter(const AutoOptions& options, int64_t quant_group, int64_t head_dim,
                 int64_t v_head_dim);
  // Returns how rows are written at an option, or with codes of `bits` at any clip ratio.
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
