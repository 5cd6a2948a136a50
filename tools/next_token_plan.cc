// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/next_token_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>

#include "calib/job/layer_file.h"
#include "export/artifact/choice_plans.h"
#include "export/report/sensitive_sides.h"
#include "linalg/error.h"

namespace oscar {
namespace {

constexpr int64_t kLeastTokens = 768;

size_t NumTrials(const std::vector<AutoChoice>& choices) {
  int64_t trials = 0;
  for (const AutoChoice& choice : choices) {
    trials += std::ranges::count_if(choice.k_options, IsMeasured);
    if (!choice.latent()) trials += std::ranges::count_if(choice.v_options, IsMeasured);
  }
  return static_cast<size_t>(trials);
}

// Sides that cost a tenth or more of what all sides together cost at 2 bits, each by itself, and
// the fewest bits at which they no longer do.
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

Json CostJson(BitPrice price, const NextTokenCost& cost) {
  return {{"by", BitPriceName(price)}, {"token_kl", cost.mean}, {"token_kl_p99", cost.p99}};
}

}  // namespace

int64_t TokensOfPass(const CalibrationInput& input, size_t trials) {
  const int64_t effort = input.options.automatic.effort == SearchEffort::kThorough ? 4 : 1;
  return std::max(kLeastTokens, 4 * effort * input.num_tokens() / static_cast<int64_t>(trials));
}

int64_t NumTokens(const NextTokenRun& run) {
  return std::accumulate(
      run.sequences.begin(), run.sequences.end(), int64_t{0},
      [](int64_t sum, const auto& sequence) { return sum + std::ssize(sequence); });
}

bool PlansByNextToken(const CalibrationInput& input) {
  const AutoOptions& automatic = input.options.automatic;
  if (!automatic.enabled || input.model() == nullptr) return false;
  if (automatic.effort == SearchEffort::kThorough) return true;
  return automatic.effort == SearchEffort::kNormal && automatic.shares_bits() &&
         automatic.price.value_or(BitPrice::kNextToken) == BitPrice::kNextToken;
}

void CheckBitPrice(const CalibrationInput& input) {
  const AutoOptions& automatic = input.options.automatic;
  if (!automatic.price) return;
  const std::string_view name = BitPriceName(*automatic.price);
  if (!automatic.shares_bits())
    throw UsageError(fmt::format("--bits-by {} has no effect: all codes have 2 bits", name));
  if (automatic.price == BitPrice::kNextToken && !PlansByNextToken(input)) {
    throw UsageError(fmt::format(
        "--bits-by {} needs passes of the model: a dump has none, nor has --effort quick", name));
  }
}

void PlanByNextToken(const CalibrationInput& input, const HeldOutSplit& split,
                     const JobDirectory& job, ArtifactDraft& draft, CommandContext& context) {
  ChoicePlans& plans = draft.choices();
  const ModelSource& model = *input.model();
  std::vector<AutoChoice> choices = plans.headline_layers();
  const size_t layers = choices.size();
  CacheWindows windows{input.options.sink_tokens, input.options.recent_tokens};
  NextTokenRun run{
      .checkpoint = model.loop().checkpoint(),
      .spec = model.loop().spec(),
      .device = input.device,
      .dtype = input.dtype,
      .sequences = HeldOutText(model.sequences(), split, TokensOfPass(input, NumTrials(choices))),
      .windows = windows,
      .choice =
          [&](size_t layer) {
            return ReadLayerFile(job.LayerPath(layer), MomentsPart::kMeans).automatic;
          },
      .stop_requested = [&] { return context.stop.requested(); },
      .prefetch = model.loop().options().prefetch};
  const auto longest = std::ranges::max(run.sequences, {}, [](const auto& s) { return s.size(); });
  const int64_t inside = windows.sink + windows.recent;
  if (std::ssize(longest) < 2 * inside) run.windows = {};  // nothing to speak of lies beyond
  const auto pass = [&](const char* what) {
    context.progress.Begin(what, 1);
    run.on_layer = [&](size_t done) {
      context.progress.Update(static_cast<double>(done) / static_cast<double>(layers), "layers");
    };
  };
  pass("pricing bits by the next token");
  PriceOptions(run, choices);
  context.progress.End();

  const AutoOptions& automatic = input.options.automatic;
  std::vector<BitPrice> prices = {automatic.price.value_or(BitPrice::kNextToken)};
  if (automatic.shares_bits() && !automatic.price)
    prices.assign(std::begin(kBitPrices), std::end(kBitPrices));
  std::vector<std::vector<AutoChoice>> planned;
  for (const BitPrice price : prices) planned.push_back(plans.PlannedAt(price, choices));
  pass("measuring whole caches");
  const std::vector<NextTokenCost> whole = MeasureWhole(run, planned);
  context.progress.End();
  size_t best = 0;
  Json compared = Json::array();
  for (size_t i = 0; i < whole.size(); ++i) {
    if (whole[i].damage() < whole[best].damage()) best = i;
    compared.push_back(CostJson(prices[i], whole[i]));
  }
  const int64_t tokens = NumTokens(run);
  const Json why = {{"sensitive", SensitiveSides(choices, input.source->layers())},
                    {"price", BitPriceName(prices[best])},
                    {"tokens", tokens},
                    {"sink_tokens", run.windows.sink},
                    {"recent_tokens", run.windows.recent},
                    {"plans", compared}};
  std::string line = fmt::format("next token, on {} held-out tokens:", tokens);
  for (size_t i = 0; i < whole.size(); ++i) {
    line += fmt::format("{} bits by {}: KL {:.4f}, worst hundredth {:.3f}", i == 0 ? "" : ";",
                        BitPriceName(prices[i]), whole[i].mean, whole[i].p99);
  }
  context.log.Info("next_token", line, why);
  context.log.Info("sensitive", SensitiveSidesText({{"auto", {{"bits_by", why}}}}));
  plans.SetPriced(std::move(choices), prices[best], why);
}

}  // namespace oscar
