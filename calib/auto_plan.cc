// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See auto_plan.h.
#include "calib/auto_plan.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "linalg/check.h"

namespace oscar {
namespace {

constexpr double kKeptBits = 16;  // of tokens in windows

// The next of a layer's options for more bits; null where there is none up to `limit`.
const SideOption* Next(const std::vector<SideOption>& options, int bits, int limit) {
  for (const SideOption& option : options) {
    if (option.bits > bits && option.bits <= limit) return &option;
  }
  return nullptr;
}
const SideOption& At(const std::vector<SideOption>& options, int bits) {
  const auto found = std::ranges::find(options, bits, &SideOption::bits);
  OSCAR_CHECK(found != options.end());
  return *found;
}

struct Bits {
  std::vector<int> k, v;  // of layers
};

// Spends bits on one side of the layers, greedily. `score(option)`: what a layer would have.
class Spender {
 public:
  Spender(const std::vector<LayerElements>& elements, double budget_bits)
      : elements_(elements), left_(budget_bits) {}

  template <typename Options, typename Score>
  void Spend(std::vector<int>& bits, int64_t LayerElements::*side, int limit, Options options_of,
             Score score) {
    while (true) {
      std::optional<size_t> best;
      double best_gain = 0;
      for (size_t i = 0; i < bits.size(); ++i) {
        const std::vector<SideOption>& options = options_of(i);
        const SideOption* next = Next(options, bits[i], limit);
        if (next == nullptr) continue;
        const double price = Price(i, side, next->bits - bits[i]);
        if (price > left_ + 1e-9) continue;
        const double gain = (score(At(options, bits[i])) - score(*next)) / price;
        if (!best || gain > best_gain) {
          best = i;
          best_gain = gain;
        }
      }
      if (!best) return;
      const SideOption* next = Next(options_of(*best), bits[*best], limit);
      left_ -= Price(*best, side, next->bits - bits[*best]);
      bits[*best] = next->bits;
    }
  }

  double left() const { return left_; }

 private:
  double Price(size_t layer, int64_t LayerElements::*side, int bits) const {
    return static_cast<double>(elements_[layer].*side) * bits;
  }
  const std::vector<LayerElements>& elements_;
  double left_;  // bits per token of all layers
};

double Elements(const std::vector<LayerElements>& elements) {
  double sum = 0;
  for (const LayerElements& layer : elements) sum += static_cast<double>(layer.k + layer.v);
  return sum;
}

Bits Allocate(const std::vector<LayerElements>& elements, const std::vector<AutoChoice>& choices,
              double bits_per_element, size_t window) {
  Bits bits{std::vector<int>(choices.size(), 2), std::vector<int>(choices.size(), 2)};
  Spender spender(elements, (bits_per_element - 2) * Elements(elements));
  const auto k = [&](size_t i) -> const auto& { return choices[i].k_options; };
  const auto v = [&](size_t i) -> const auto& { return choices[i].v_options; };
  const auto kl = [&](const SideOption& option) {
    return window < option.in_windows.size() ? option.in_windows[window] : option.score;
  };
  const auto error = [](const SideOption& option) { return option.score * option.score; };
  for (const int limit : {4, 8}) {
    spender.Spend(bits.k, &LayerElements::k, limit, k, kl);
    spender.Spend(bits.v, &LayerElements::v, limit, v, error);
  }
  return bits;
}

double MeanKl(const std::vector<AutoChoice>& choices, const std::vector<int>& k_bits,
              size_t window) {
  double sum = 0;
  for (size_t i = 0; i < choices.size(); ++i)
    sum += At(choices[i].k_options, k_bits[i]).in_windows.at(window);
  return sum / static_cast<double>(choices.size());
}

// The ratio of least summed score over layers; all curves stand over the same ratios. `sides` are
// the options that are summed together.
void ShareClip(const std::vector<SideOption*>& options) {
  if (options.empty()) return;
  const std::vector<double>& ratios = options.front()->ratios;
  std::vector<double> sums(ratios.size(), 0.0);
  for (const SideOption* option : options) {
    OSCAR_CHECK(option->ratios == ratios);
    for (size_t i = 0; i < ratios.size(); ++i) sums[i] += option->curve[i];
  }
  const auto best = static_cast<size_t>(std::ranges::min_element(sums) - sums.begin());
  for (SideOption* option : options) {
    option->clip = {ratios[best]};
    option->score = option->curve[best];
  }
}

void ShareClips(ClipScope scope, std::vector<AutoChoice>& choices) {
  if (scope != ClipScope::kSide && scope != ClipScope::kModel) return;
  std::vector<SideOption*> k, v;
  for (AutoChoice& choice : choices) {
    k.push_back(&choice.k_options.front());  // these consumers have 2 bits
    v.push_back(&choice.v_options.front());
  }
  ShareClip(k);
  ShareClip(v);
  if (scope != ClipScope::kModel) return;
  // The keys' ratio for both sides: their KL is what the cache costs.
  for (SideOption* option : v) {
    const auto at = std::ranges::find(option->ratios, k.front()->clip[0]) - option->ratios.begin();
    option->clip = k.front()->clip;
    option->score = option->curve.at(static_cast<size_t>(at));
  }
}

}  // namespace

double WindowBits(const CacheWindows& windows) {
  return (kKeptBits - 2) * static_cast<double>(windows.sink + windows.recent) /
         static_cast<double>(kPriceTokens);
}

AutoPlan PlanLayers(const AutoOptions& options, const std::vector<LayerElements>& elements,
                    std::vector<AutoChoice>& choices) {
  OSCAR_CHECK_EQ(choices.size(), elements.size());
  OSCAR_CHECK(!choices.empty());
  ShareClips(RulesOf(options.consumer).clip, choices);
  const std::vector<WindowPrice>& windows = choices.front().windows;
  size_t window = 0;
  Bits bits = Allocate(elements, choices, options.bits, 0);
  if (options.windows) {
    double best = MeanKl(choices, bits.k, 0);
    for (size_t w = 1; w < windows.size(); ++w) {
      const double left =
          options.bits - (WindowBits(windows[w].windows) - WindowBits(windows[0].windows));
      if (left < 2) continue;
      Bits other = Allocate(elements, choices, left, w);
      const double kl = MeanKl(choices, other.k, w);
      if (kl >= best) continue;
      best = kl;
      window = w;
      bits = std::move(other);
    }
  }
  AutoPlan plan;
  plan.windows = windows.at(window).windows;
  double spent = 0;
  for (size_t i = 0; i < choices.size(); ++i) {
    choices[i].k_bits = bits.k[i];
    choices[i].v_bits = bits.v[i];
    spent += static_cast<double>(elements[i].k * bits.k[i] + elements[i].v * bits.v[i]);
  }
  plan.bits = spent / Elements(elements);
  for (size_t w = 0; w < windows.size(); ++w)
    plan.window_scores.push_back(MeanKl(choices, bits.k, w));
  return plan;
}

}  // namespace oscar
