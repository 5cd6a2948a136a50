// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Longer than 400 lines because all consumers' searches share one state, and each step reads the
// previous one's results.
#include "calib/search/choice_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "calib/choose/choice_points.h"
#include "calib/choose/head_bits.h"
#include "calib/choose/recipes.h"
#include "calib/moments/position_spread.h"
#include "calib/search/candidates.h"
#include "calib/search/clip_grid.h"
#include "calib/search/latent_search.h"
#include "calib/search/scorer.h"
#include "calib/search/stability.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr size_t kClippedRecipes = 3;  // key recipes whose clip ratios are searched
constexpr size_t kWrittenRecipes = 6;  // recipes compared with the consumer's own scales
constexpr std::array<double, 3> kCoarse = {0.88, 0.92, 0.96};
// The clip ratio at which recipes are compared.
const std::span<const double> kFirst(&GridOf(2).first, 1);

// Windows whose effect is scored in addition to those in use: the sizes in upstream's recipes.
constexpr std::array<CacheWindows, 4> kWindows = {{{0, 0}, {64, 256}, {64, 512}, {128, 1024}}};

int64_t LongestText(const ObservedLayer& observed) {
  int64_t longest = 0;
  for (const at::Tensor& keys : observed.keys) longest = std::max(longest, keys.size(0));
  return longest;
}

// Returns the means over heads for each window.
std::vector<double> MeansOf(const AutoScorer::WindowScores& scores) {
  std::vector<double> means;
  for (const std::vector<double>& heads : scores) means.push_back(Mean(heads));
  return means;
}

// State that the searches of one layer share, for all consumers: rows, moments, fits and scores.
struct LayerSearch {
  LayerSearch(const ObservedLayer& layer, const LayerSpec& spec, const SearchOptions& options,
              PhaseTimes& phases)
      : observed(layer),
        times(phases),
        composition(options.composition),
        quant_group_size(options.quant_group_size),
        num_kv_heads(spec.attention.num_kv_heads),
        text_length(LongestText(layer)),
        context(options.automatic.context > 0 ? options.automatic.context
                                              : DefaultContext(text_length)),
        moments(SpreadOverPositions(layer.fit, text_length, context)),
        windows(PricedWindows(options.windows)),
        scorer(layer, spec, windows, context / 2,
               AutoScorer::ValuesAtOnce(layer.keys.at(0).device().type())) {}

  // Fit recipes like FitKeys and FitValues, but only those that have not been fitted yet.
  std::vector<CacheSide> Fit(const std::vector<KeyRecipe>& recipes) {
    return Known(key_fits, recipes, [&](const auto& missing) { return FitKeys(moments, missing); });
  }
  std::vector<CacheSide> Fit(const std::vector<ValueRecipe>& recipes) {
    return Known(value_fits, recipes,
                 [&](const auto& missing) { return FitValues(moments, missing); });
  }

  const ObservedLayer& observed;
  PhaseTimes& times;
  Composition composition;
  int64_t quant_group_size, num_kv_heads, text_length, context;
  LayerMoments moments;
  std::vector<CacheWindows> windows;
  AutoScorer scorer;
  KnownScores scores;
  std::map<std::string, CacheSide> key_fits, value_fits;  // keyed by recipe name

 private:
  template <typename Recipe>
  static std::vector<CacheSide> Known(std::map<std::string, CacheSide>& fits,
                                      const std::vector<Recipe>& recipes, const auto& fit) {
    std::vector<Recipe> missing;
    for (const Recipe& recipe : recipes) {
      if (!fits.contains(recipe.Name())) missing.push_back(recipe);
    }
    std::vector<CacheSide> fitted;
    if (!missing.empty()) fitted = fit(missing);
    for (size_t i = 0; i < missing.size(); ++i)
      fits.emplace(missing[i].Name(), std::move(fitted[i]));
    std::vector<CacheSide> sides;
    for (const Recipe& recipe : recipes) sides.push_back(fits.at(recipe.Name()));
    return sides;
  }
};

// Searches the key and value settings of a layer for one consumer. Unless `in_depth` is set, it
// scores only 2 bits and the windows in use, and does not measure stability.
class Search {
 public:
  Search(LayerSearch& layer, const AutoOptions& options, bool in_depth)
      : layer_(layer),
        moments_(layer.moments),
        options_(options),
        rules_(RulesOf(options.consumer)),
        in_depth_(in_depth),
        limits_{.rules = rules_,
                .composition = layer.composition,
                .rope = layer.moments.fold.pairs.rotary_dim > 0,
                .fold = options.fold && layer.moments.fold.pairs.rotary_dim > 0,
                .feedback = rules_.feedback || options.feedback,
                .num_kv_heads = layer.num_kv_heads},
        scorer_(layer.scorer),
        choice_(Begun(options, layer)),
        compared_(scorer_, layer.times, layer.scores, choice_.scores, OfRange(2), OfRange(2)),
        written_(scorer_, layer.times, layer.scores, choice_.scores, Format<KeyRecipe>(2),
                 Format<ValueRecipe>(2)) {
    limits_.quant_group_size = choice_.quant_group_size;
    choice_.context = layer.context;
    choice_.text_length = layer.text_length;
    choice_.rows = scorer_.rows();
    choice_.rows_in_windows = scorer_.rows_in_windows();
  }

  AutoChoice Run() {
    // Values are fitted on host threads while the choice of keys is made.
    const std::vector<ValueRecipe> recipes = FirstValueRecipes(limits_, !moments_.diagonal.empty());
    std::future<std::vector<CacheSide>> values =
        std::async(std::launch::async, [&] { return layer_.Fit(recipes); });
    ChooseKeys();
    // Halves are fitted while the choice of values is made.
    std::optional<HalfFits> halves;
    if (in_depth_) halves.emplace(layer_.observed, choice_);
    ChooseValues(recipes, values.get());
    const auto time = layer_.times.Measure("choice: stability");
    if (halves) choice_.stability = halves->Measure(choice_, scorer_);
    return std::move(choice_);
  }

 private:
  using KeyCandidate = Candidate<KeyRecipe>;
  using ValueCandidate = Candidate<ValueRecipe>;

  static AutoChoice Begun(const AutoOptions& options, const LayerSearch& layer) {
    AutoChoice choice;
    choice.made = true;
    choice.SetWriter(options, layer.quant_group_size, layer.moments.head_dim,
                     layer.moments.v_head_dim);
    return choice;
  }
  template <typename Recipe>
  AutoScorer::Quantizer Format(int bits) const {
    return choice_.Format(bits, std::is_same_v<Recipe, KeyRecipe>);
  }

  AffineFormat OfRange(int bits) const { return {bits, group()}; }

  // Returns Hadamard, the first candidate, and then the best few by score.
  template <typename Recipe>
  static std::vector<Candidate<Recipe>*> BestFew(std::vector<Candidate<Recipe>>& all,
                                                 size_t count) {
    std::vector<Candidate<Recipe>*> order;
    for (Candidate<Recipe>& c : all) order.push_back(&c);
    std::ranges::stable_sort(order,
                             [](const auto* a, const auto* b) { return a->best() < b->best(); });
    order.resize(std::min(count, order.size()));
    std::erase(order, &all.front());
    order.insert(order.begin(), &all.front());
    return order;
  }
  // Recipes are first compared by scores with range scales, which all consumers' searches share. If
  // the consumer stores fitted scales, the best few are compared again with fitted scales. The
  // other factor orders of the best recipe are only compared with fitted scales.
  bool writes_otherwise() const { return choice_.fitted_scales.has_value(); }
  template <typename Recipe>
  void CompareWritten(std::vector<Candidate<Recipe>>& all) {
    std::vector<Candidate<Recipe>*> few = BestFew(all, kWrittenRecipes);
    std::ranges::sort(few);  // sorts by ascending demands
    std::vector<Candidate<Recipe>> kept;
    for (Candidate<Recipe>* c : few) {
      c->curve.clear();
      kept.push_back(std::move(*c));
    }
    all = std::move(kept);
    few.clear();
    for (Candidate<Recipe>& c : all) few.push_back(&c);
    written_.AddRatios<Recipe>(few, kFirst);
  }
  // Returns the index of the best candidate whose gain justifies its demands. `all` is sorted by
  // demands, least first.
  template <typename Recipe>
  static size_t Worthwhile(const std::vector<Candidate<Recipe>>& all) {
    size_t best = 0;
    for (size_t i = 1; i < all.size(); ++i) {
      const double share = IsReordered(all[i].recipe, all[best].recipe) ? kWorthwhile : kWorthFit;
      if (WorthMore(all[i].scores(), all[best].scores(), share)) best = i;
    }
    return best;
  }
  // Whether `later` only reorders the factors of `earlier`, which is fitted (not data-free).
  template <typename Recipe>
  static bool IsReordered(Recipe later, const Recipe& earlier) {
    later.composition = earlier.composition;
    return later == earlier && earlier.composition != Composition::kHPbr;
  }

  // Adds an option for each number of bits above 2. Under a bit budget, searches its clip ratio;
  // without one, only scores it at one ratio.
  template <typename Recipe>
  void AddBits(const Candidate<Recipe>& c, const AutoScorer::Rotated& rotated,
               std::vector<SideOption>& options) {
    options = {OptionOf(2, c.curve, clip_of_head())};
    if (!in_depth_) return;
    for (const int bits : MoreBits(options_)) {
      const ClipGrid& grid = GridOf(bits);
      const std::span<const double> all = grid.ratios;
      const Curve curve =
          written_.ScoreCurve(c, rotated, options_.shares_bits() ? all : std::span(&grid.first, 1),
                              Format<Recipe>(bits));
      options.push_back(OptionOf(bits, curve, clip_of_head()));
    }
  }

  // Fits the recipes and scores them at one clip ratio, in order.
  void TryKeys(std::vector<KeyRecipe> recipes, CandidateScores& by) {
    std::erase_if(recipes, [&](const KeyRecipe& recipe) {
      return std::ranges::any_of(keys_, [&](const auto& c) { return c.recipe == recipe; });
    });
    std::vector<CacheSide> sides;
    {
      const auto time = layer_.times.Measure("choice: key fits");
      sides = layer_.Fit(recipes);
    }
    const size_t known = keys_.size();
    for (size_t i = 0; i < recipes.size(); ++i) {
      if (sides[i].num_rotations > 0) keys_.push_back({recipes[i], std::move(sides[i]), {}});
    }
    std::vector<KeyCandidate*> tried;
    for (size_t i = known; i < keys_.size(); ++i) tried.push_back(&keys_[i]);
    by.AddRatios<KeyRecipe>(tried, kFirst);
  }
  const KeyRecipe& BestKeys() const { return keys_[Worthwhile(keys_)].recipe; }

  void ChooseKeys() {
    TryKeys(FirstKeyRecipes(limits_), compared_);
    OSCAR_CHECK(!keys_.empty());  // Hadamard needs no moments
    TryKeys(MoreKeyRecipes(limits_, BestKeys()), compared_);
    if (writes_otherwise()) CompareWritten(keys_);
    std::vector<KeyRecipe> orders;
    for (const Composition composition : OtherOrders(limits_, moments_.head_dim)) {
      orders.push_back(BestKeys());
      orders.back().composition = composition;
    }
    TryKeys(std::move(orders), written_);
    if (limits_.feedback) {
      KeyRecipe fed = BestKeys();
      fed.feedback = true;
      TryKeys({fed}, written_);
    }
    // The best ratio depends on the transform. So the best few recipes are scored at coarse ratios
    // first, and the chosen one then at all ratios.
    written_.AddRatios<KeyRecipe>(BestFew(keys_, writes_otherwise() ? 1 : kClippedRecipes),
                                  coarse());
    size_t chosen = Worthwhile(keys_);
    written_.AddRatios(keys_[chosen], ratios());
    const SideOption two = OptionOf(2, keys_[chosen].curve, clip_of_head());
    choice_.k_check = two.check;
    choice_.k_hadamard = CheckOf(keys_[0].curve);
    if (choice_.k_check > choice_.k_hadamard) {
      choice_.k_fallback = keys_[chosen].recipe.Name();
      chosen = 0;
      written_.AddRatios(keys_[0], ratios());
    }
    FinishKeys(keys_[chosen]);
  }

  void FinishKeys(const KeyCandidate& c) {
    choice_.keys = c.recipe;
    choice_.k = c.side;
    if (!in_depth_) return InUseAlone(c);
    const AutoScorer::Rotated rotated = written_.Rotate(c);
    AddBits(c, rotated, choice_.k_options);
    // Scores quantization groups of half the size, which cost 32 / group bits per value.
    const double clip = c.curve[Best(c.curve)].first;
    AutoScorer::Quantizer half = Format<KeyRecipe>(2);
    const int64_t whole = half.quant_group_size == 0 ? moments_.head_dim : half.quant_group_size;
    half.quant_group_size = whole / 2;
    if (whole >= 32 && whole % 2 == 0) written_.ScoreCurve(c, rotated, {&clip, 1}, half);
    const auto time = layer_.times.Measure("choice: windows");
    if (options_.shares_bits()) {
      choice_.k_output_error = Mean(scorer_.KeyOutputErrors(
          rotated, {0, choice_.k_options.front().clip}, Format<KeyRecipe>(2)));
    }
    for (const CacheWindows& windows : layer_.windows)
      choice_.windows.push_back({windows, scorer_.RowsBeyond(windows)});
    std::vector<AutoScorer::WindowScores> of_heads;
    for (SideOption& option : choice_.k_options) {
      std::vector<AutoScorer::Trial> trials = {{0, option.clip}};
      if (shares_ratio()) {
        for (const double ratio : option.ratios) trials.push_back({0, {ratio}});
      }
      std::vector<AutoScorer::WindowScores> in_windows =
          scorer_.ScoreWindows(rotated, trials, Format<KeyRecipe>(option.Bits()[0]));
      option.in_windows = MeansOf(in_windows[0]);
      for (size_t i = 1; i < in_windows.size(); ++i)
        option.windows_curve.push_back(MeansOf(in_windows[i]));
      of_heads.push_back(std::move(in_windows[0]));
    }
    if (bits_of_head()) AddHeadBits(of_heads, choice_.k_options);
  }

  // Fills in scores for the windows in use only: the mean of choosing and judging rows.
  void InUseAlone(const KeyCandidate& c) {
    SideOption option = OptionOf(2, c.curve, clip_of_head());
    option.in_windows = {(option.score + option.check) / 2};
    for (size_t i = 0; i < option.ratios.size(); ++i)
      option.windows_curve.push_back({(option.curve[i] + option.check_curve[i]) / 2});
    const CacheWindows& in_use = layer_.windows.front();
    choice_.windows = {{in_use, scorer_.RowsBeyond(in_use)}};
    choice_.k_options = {std::move(option)};
  }

  void ChooseValues(const std::vector<ValueRecipe>& recipes, std::vector<CacheSide> sides) {
    std::vector<ValueCandidate> candidates;
    size_t chosen = 0;
    const auto attempt = [&](const std::vector<ValueRecipe>& more, std::vector<CacheSide> fits,
                             CandidateScores& by) {
      const size_t known = candidates.size();
      for (size_t i = 0; i < more.size(); ++i) {
        if (fits[i].num_rotations > 0) candidates.push_back({more[i], std::move(fits[i]), {}});
      }
      std::vector<ValueCandidate*> tried;
      for (size_t i = known; i < candidates.size(); ++i) tried.push_back(&candidates[i]);
      by.AddRatios<ValueRecipe>(tried, kFirst);
      chosen = Worthwhile(candidates);
    };
    attempt(recipes, std::move(sides), compared_);
    if (writes_otherwise()) {
      CompareWritten(candidates);
      chosen = Worthwhile(candidates);
    }
    if (chosen != 0) {
      std::vector<ValueRecipe> orders;
      for (const Composition composition : OtherOrders(limits_, moments_.v_head_dim)) {
        orders.push_back(candidates[chosen].recipe);
        orders.back().composition = composition;
      }
      attempt(orders, layer_.Fit(orders), written_);
    }
    written_.AddRatios(candidates[0], coarse());
    written_.AddRatios(candidates[chosen], ratios());
    choice_.v_check = OptionOf(2, candidates[chosen].curve, clip_of_head()).check;
    choice_.v_hadamard = CheckOf(candidates[0].curve);
    if (choice_.v_check > choice_.v_hadamard) {
      choice_.v_fallback = candidates[chosen].recipe.Name();
      chosen = 0;
      written_.AddRatios(candidates[0], ratios());
    }
    const ValueCandidate& c = candidates[chosen];
    choice_.values = c.recipe;
    choice_.v = c.side;
    AddBits(c, in_depth_ ? written_.Rotate(c) : AutoScorer::Rotated(), choice_.v_options);
    if (bits_of_head()) AddHeadBits({}, choice_.v_options);
    // If keys and values share one ratio, it is that of the keys, whose KL decides the cost of a
    // cache.
    if (rules_.clip == ClipScope::kModel) {
      choice_.v_option().SetRatio(choice_.k_option().clip[0]);
      choice_.v_check = choice_.v_option().check;
    }
  }

  // Returns the judging score at the ratio with the best choosing score, for the guard.
  static double CheckOf(const Curve& curve) { return Mean(curve[Best(curve)].second.check); }

  int64_t group() const { return layer_.quant_group_size; }
  bool clip_of_head() const { return rules_.clip == ClipScope::kHead && options_.head_clip; }
  bool bits_of_head() const { return options_.shares_bits() && options_.head_bits; }
  bool shares_ratio() const {
    return rules_.clip == ClipScope::kSide || rules_.clip == ClipScope::kModel;
  }
  // Return the clip ratios for 2 bits, and those at which the best few recipes are compared.
  std::span<const double> ratios() const {
    return shares_ratio() ? SharedRatios() : GridOf(2).ratios;
  }
  std::span<const double> coarse() const {
    return shares_ratio() ? std::span<const double>(SharedRatios()) : kCoarse;
  }

  LayerSearch& layer_;
  const LayerMoments& moments_;
  const AutoOptions& options_;
  const ConsumerRules& rules_;
  bool in_depth_;
  RecipeLimits limits_;
  const AutoScorer& scorer_;
  AutoChoice choice_;
  CandidateScores compared_, written_;
  std::vector<KeyCandidate> keys_;  // the first is Hadamard
};

// If a search that may fold has folded nothing, its choice is for the same checkpoint as that of
// the same consumer without folding. Then both become the better of the two.
void TakeTheBetterUnfolded(const std::vector<AutoOptions>& options, std::span<AutoChoice> choices) {
  for (size_t plain = 0; plain < options.size(); ++plain) {
    for (size_t fold = 0; fold < options.size(); ++fold) {
      if (options[plain].fold || !options[fold].fold ||
          options[plain].consumer != options[fold].consumer || !choices[fold].k.pair_scale.empty())
        continue;
      const bool better = choices[fold].k_option().score < choices[plain].k_option().score;
      choices[better ? plain : fold] = choices[better ? fold : plain];
    }
  }
}

}  // namespace

std::vector<CacheWindows> PricedWindows(const CacheWindows& in_use) {
  std::vector<CacheWindows> windows = {in_use};
  for (const CacheWindows& w : kWindows) {
    if (w.sink != windows[0].sink || w.recent != windows[0].recent) windows.push_back(w);
  }
  return windows;
}

std::vector<int> MoreBits(const AutoOptions& options) {
  if (!RulesOf(options.consumer).any_bits) return {};
  return options.wide_codes() ? std::vector<int>{3, 4, 8} : std::vector<int>{3, 4};
}

std::vector<AutoChoice> SearchEach(
    const AutoOptions& headline, const std::vector<AutoOptions>& others,
    const std::function<AutoChoice(const AutoOptions& options, bool is_headline)>& search) {
  std::vector<AutoChoice> choices = {search(headline, true)};
  for (const AutoOptions& other : others) {
    size_t shared = 0;
    while (shared < choices.size() &&
           !ShareSearch(shared == 0 ? headline : others[shared - 1], other))
      ++shared;
    choices.push_back(shared < choices.size() ? AutoChoice(choices[shared]) : search(other, false));
  }
  return choices;
}

std::vector<AutoChoice> SearchChoices(const ObservedLayer& observed, const LayerSpec& spec,
                                      const SearchOptions& options,
                                      const std::vector<AutoOptions>& others, PhaseTimes& times) {
  OSCAR_CHECK(!observed.queries.empty());
  if (spec.attention.latent) return SearchLatentChoices(observed, spec, options, others, times);
  std::optional<LayerSearch> layer;
  {
    const auto time = times.Measure("choice: rows and moments");
    layer.emplace(observed, spec, options, times);
  }
  std::vector<AutoChoice> choices =
      SearchEach(options.automatic, others, [&](const AutoOptions& of, bool headline) {
        std::optional<PhaseTimes::Scope> time;
        if (!headline) time.emplace(times, "choice: other runtimes");
        return Search(*layer, of, headline || of.shares_bits()).Run();
      });
  TakeTheBetterUnfolded(others, std::span(choices).subspan(1));
  return choices;
}

}  // namespace oscar
