// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/calibrate/next_token_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "calib/job/layer_file.h"
#include "export/artifact/choice_plans.h"
#include "export/report/sensitive_sides.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr int64_t kLeastTokens = 768, kLeastOfText = 1024;
// If a trial has fewer tokens than this, only whole bit widths are measured, and the costs of
// others are interpolated. Their measurements would be so noisy that they do more harm than
// interpolation (export/simulate/RESULTS.md).
constexpr int64_t kTokensForAllWidths = 4096;

// Returns the sides (the keys or the values of a layer) that each cause a tenth or more of the
// total cost at 2 bits, and the fewest bits at which a side costs less than that tenth.
Json SensitiveSides(const std::vector<AutoChoice>& choices, const std::vector<LayerSpec>& layers) {
  const auto cost = [](const SideOption& option) { return option.next_token_kl.at(0); };
  double sum = 0;
  for (const AutoChoice& choice : choices)
    sum += cost(choice.k_options[0]) + (choice.latent() ? 0 : cost(choice.v_options[0]));
  Json sides = Json::array();
  const auto add = [&](size_t layer, const char* side, const std::vector<SideOption>& options) {
    const double limit = sum / 10;
    if (cost(options[0]) < limit || limit == 0) return;
    const auto enough = std::ranges::find_if(
        options, [&](const SideOption& option) { return cost(option) < limit; });
    sides.push_back({{"layer_id", layers[layer].layer_id},
                     {"side", side},
                     {"token_kl", cost(options[0])},
                     {"share", cost(options[0]) / sum}});
    if (enough != options.end()) sides.back()["bits"] = enough->bits;
  };
  for (size_t layer = 0; layer < choices.size(); ++layer) {
    add(layer, "k", choices[layer].k_options);
    if (!choices[layer].latent()) add(layer, "v", choices[layer].v_options);
  }
  return sides;
}

// Returns the number of tokens from which the lengths of all measurements derive: the
// calibration's, or four times as many for a thorough search.
int64_t SearchTokens(const CalibrationInput& input) {
  return input.num_tokens() * (input.options.automatic.effort == SearchEffort::kThorough ? 4 : 1);
}

// Returns the number of tokens of one trial. A trial runs only half of the layers on average, so
// all trials together cost as much as two runs of the model over `search_tokens`.
int64_t TokensOfTrial(int64_t search_tokens, size_t trials) {
  return 4 * search_tokens / static_cast<int64_t>(trials);
}

Json CostJson(BitPrice price, const NextTokenCost& cost) {
  return {{"by", BitPriceName(price)}, {"token_kl", cost.mean}, {"token_kl_p99", cost.p99}};
}

}  // namespace

NextTokenRun RunOf(const CalibrationInput& input, CommandContext& context) {
  const LayerLoop& loop = input.model()->loop();
  return {.checkpoint = loop.checkpoint(),
          .spec = loop.spec(),
          .device = input.device,
          .dtype = input.dtype,
          .sequences = {},
          .windows = {},
          .choice = {},
          .stop_requested = [&context] { return context.stop.requested(); },
          .prefetch = loop.options().prefetch};
}

PassTexts TextsOf(const CalibrationInput& input, const HeldOutSplit& split, size_t trials,
                  CacheWindows* windows) {
  const TokenTexts& sequences = input.model()->sequences();
  const int64_t tokens = SearchTokens(input);
  const auto most = [](int64_t share) { return std::max(kLeastTokens, share); };
  const int64_t inside = windows->sink + windows->recent;
  // The passages that are chosen depend only on the lengths of texts, so those of the masks match
  // those of the ids.
  TokenTexts masks;
  for (size_t i = 0; !split.counted.empty() && i < sequences.size(); ++i) {
    const std::vector<uint8_t>* counted = split.CountedOf(i);
    masks.emplace_back(sequences[i].size(), 1);
    if (counted != nullptr) masks.back().assign(counted->begin(), counted->end());
  }
  const auto fitted = [&](const TokenTexts& of) {
    return of.empty() ? of
                      : FittedText(of, split, most(TokensOfTrial(tokens, trials)),
                                   std::max(kLeastOfText, 4 * inside));
  };
  const auto held_out = [&](const TokenTexts& of) {
    return of.empty() ? of : HeldOutText(of, split, most(tokens / 6));
  };
  const PassTexts texts = {{fitted(sequences), fitted(masks)},
                           {held_out(sequences), held_out(masks)}};
  for (const PassText* of : {&texts.priced, &texts.judged}) {
    const auto reaches = [&](const auto& text) { return std::ssize(text) >= 2 * inside; };
    if (std::ranges::none_of(of->ids, reaches)) *windows = {};
  }
  return texts;
}

void DoPass(const char* what, const PassText& text, NextTokenRun& run, CommandContext& context,
            const std::function<void()>& work) {
  context.progress.Begin(what, 1);
  run.sequences = text.ids;
  run.counted.clear();
  for (const auto& mask : text.counted) run.counted.emplace_back(mask.begin(), mask.end());
  run.on_layer = [&, layers = static_cast<double>(run.spec.layers.size())](size_t done) {
    context.progress.Update(static_cast<double>(done) / layers, "layers");
  };
  work();
  context.progress.End();
}

namespace {

// Returns whether a choice allocates bits by costs that are measured by running the model.
bool IsPriced(const AutoOptions& options) {
  return options.effort != SearchEffort::kQuick && options.shares_bits() &&
         options.price.value_or(BitPrice::kNextToken) == BitPrice::kNextToken;
}

// Returns the headline's choice and the others.
std::vector<AutoOptions> AllChoices(const CalibrationInput& input) {
  const AutoOptions& headline = input.options.automatic;
  const bool latents = std::ranges::any_of(input.source->layers(), [](const LayerSpec& layer) {
    return layer.attention.latent.has_value();
  });
  std::vector<AutoOptions> all = OtherChoices(headline, latents);
  all.insert(all.begin(), headline);
  return all;
}

}  // namespace

bool PlansByNextToken(const CalibrationInput& input) {
  const AutoOptions& automatic = input.options.automatic;
  if (!automatic.enabled || input.model() == nullptr) return false;
  return automatic.effort == SearchEffort::kThorough ||
         std::ranges::any_of(AllChoices(input), IsPriced);
}

void CheckBitPrice(const CalibrationInput& input) {
  const AutoOptions& automatic = input.options.automatic;
  if (!automatic.price) return;
  const std::string_view name = BitPriceName(*automatic.price);
  if (std::ranges::none_of(AllChoices(input), &AutoOptions::shares_bits))
    throw UsageError(fmt::format("--bits-by {} has no effect: all codes have 2 bits", name));
  if (automatic.price == BitPrice::kNextToken && !PlansByNextToken(input)) {
    throw UsageError(
        fmt::format("--bits-by {} needs extra passes of the model; give the model instead of a "
                    "dump, and no --effort quick",
                    name));
  }
}

namespace {

// Plans the bits of choices that come from one search, so that the costs are measured only once.
// `together`: the indices of these choices.
void PlanTogether(const std::vector<size_t>& together, const CalibrationInput& input,
                  const HeldOutSplit& split, const JobDirectory& job, ChoicePlans& plans,
                  CommandContext& context) {
  const size_t first = together.front();
  std::vector<AutoChoice> choices = plans.layers(first);
  NextTokenRun run = RunOf(input, context);
  run.windows = {input.options.sink_tokens, input.options.recent_tokens};
  run.choice = [&](size_t layer) {
    LayerResult result = ReadLayerFile(job.LayerPath(layer), MomentsPart::kMeans);
    return first == 0 ? std::move(result.automatic) : std::move(result.other_choices.at(first - 1));
  };
  const auto tokens_of = [&](MeasuredWidths widths) {
    return TokensOfTrial(SearchTokens(input), NumMeasured(choices, widths));
  };
  const MeasuredWidths widths = tokens_of(MeasuredWidths::kAll) < kTokensForAllWidths
                                    ? MeasuredWidths::kWhole
                                    : MeasuredWidths::kAll;
  const PassTexts texts = TextsOf(input, split, NumMeasured(choices, widths), &run.windows);
  DoPass("measuring next-token KL by bits", texts.priced, run, context,
         [&] { PriceOptions(run, widths, choices); });

  const AutoOptions& automatic = plans.options(first);
  std::vector<BitPrice> prices = {automatic.price.value_or(BitPrice::kNextToken)};
  if (automatic.shares_bits() && !automatic.price)
    prices.assign(std::begin(kBitPrices), std::end(kBitPrices));
  std::vector<std::vector<AutoChoice>> planned;  // [together][prices]
  for (const size_t choice : together)
    for (const BitPrice price : prices) planned.push_back(plans.PlannedAt(choice, price, choices));
  std::vector<NextTokenCost> whole;
  DoPass("measuring whole caches", texts.judged, run, context,
         [&] { whole = MeasureWhole(run, planned); });
  const int64_t tokens = NumTokens(texts.judged.ids);
  Json why = {{"sensitive", SensitiveSides(choices, input.source->layers())},
              {"tokens", tokens},
              {"tokens_priced", NumTokens(texts.priced.ids)},
              {"sink_tokens", run.windows.sink},
              {"recent_tokens", run.windows.recent}};
  for (size_t i = 0; i < together.size(); ++i) {
    const std::span<const NextTokenCost> costs(&whole[i * prices.size()], prices.size());
    const auto least = std::ranges::min_element(costs, {}, &NextTokenCost::damage);
    const BitPrice best = prices[static_cast<size_t>(least - costs.begin())];
    why["price"] = BitPriceName(best);
    why["plans"] = Json::array();
    std::string line = fmt::format("next token, measured on {} held-out tokens:", tokens);
    if (!input.options.automatic.budgets.empty())
      line = fmt::format("{:g} bits: {}", plans.options(together[i]).bits, line);
    for (size_t p = 0; p < costs.size(); ++p) {
      why["plans"].push_back(CostJson(prices[p], costs[p]));
      line += fmt::format("{} bits by {}: KL {:.4f}, 99th percentile {:.3f}", p == 0 ? "" : ";",
                          BitPriceName(prices[p]), costs[p].mean, costs[p].p99);
    }
    context.log.Info("next_token", line, why);
    plans.SetPriced(together[i], choices, best, why);
  }
  context.log.Info("sensitive", SensitiveSidesText({{"auto", {{"bits_by", why}}}}));
}

}  // namespace

void PlanByNextToken(const CalibrationInput& input, const HeldOutSplit& split,
                     const JobDirectory& job, ArtifactDraft& draft, CommandContext& context) {
  ChoicePlans& plans = draft.choices();
  const bool prices_headline = input.options.automatic.effort == SearchEffort::kThorough;
  std::vector<std::vector<size_t>> groups;
  for (size_t choice = 0; choice < plans.size(); ++choice) {
    const AutoOptions& options = plans.options(choice);
    if (!IsPriced(options) && !(choice == 0 && prices_headline)) continue;
    const auto same = std::ranges::find_if(groups, [&](const std::vector<size_t>& group) {
      return ShareSearch(plans.options(group.front()), options);
    });
    if (same == groups.end()) {
      groups.push_back({choice});
    } else {
      same->push_back(choice);
    }
  }
  for (const std::vector<size_t>& group : groups)
    PlanTogether(group, input, split, job, plans, context);
}

}  // namespace oscar
