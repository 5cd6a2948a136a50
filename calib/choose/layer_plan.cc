// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/choose/layer_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "calib/choose/bit_allocation.h"
#include "linalg/base/check.h"

namespace oscar {
namespace {

constexpr double kKeptBits = 16;  // per element of tokens in windows
constexpr double kRounding = 1e-9;

const SideOption& At(const std::vector<SideOption>& options, double bits) {
  const auto found = std::ranges::find(options, bits, &SideOption::bits);
  OSCAR_CHECK(found != options.end());
  return *found;
}

struct Bits {
  std::vector<double> k, v;  // per layer
};

// Return the numbers of quantized elements and of all elements.
double Quantized(const std::vector<LayerElements>& elements) {
  double sum = 0;
  for (const LayerElements& layer : elements) sum += static_cast<double>(layer.k + layer.v);
  return sum;
}

double Elements(const std::vector<LayerElements>& elements) {
  double sum = Quantized(elements);
  for (const LayerElements& layer : elements) sum += static_cast<double>(layer.kept);
  return sum;
}

// Returns the stored bits that are not codes.
double Metadata(const std::vector<LayerElements>& elements) {
  double sum = 0;
  for (const LayerElements& layer : elements)
    sum += layer.metadata_bits + kKeptBits * static_cast<double>(layer.kept);
  return sum;
}

// Returns the damage of storing a side with `option`, in the unit of `price`. `attention`: the KL
// of attention with this option, in nats.
double Damage(BitPrice price, const SideOption& option, double elements, double attention) {
  if (price == BitPrice::kUniform) return elements * std::exp2(-2 * option.bits);
  if (price == BitPrice::kAttention) return attention;
  return NextTokenCost{option.next_token_kl.at(0), option.next_token_kl.at(1)}.damage();
}

// `budget`: bits for codes per token, summed over all layers.
Bits Allocate(BitPrice price, const std::vector<LayerElements>& elements,
              const std::vector<AutoChoice>& choices, double budget, size_t window) {
  std::vector<BitPart> parts;  // keys of all layers, then values of all layers
  const auto add = [&](int64_t count, const std::vector<SideOption>& options, auto attention) {
    BitPart part{.elements = static_cast<double>(count), .points = {}};
    for (const SideOption& option : options) {
      part.points.push_back({option.bits, Damage(price, option, part.elements, attention(option))});
    }
    parts.push_back(std::move(part));
  };
  for (size_t i = 0; i < choices.size(); ++i) {
    add(elements[i].k, choices[i].k_options, [&](const SideOption& option) {
      return window < option.in_windows.size() ? option.in_windows[window] : option.score;
    });
  }
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i].latent()) continue;  // the values are the keys
    const double key_kl = choices[i].k_options.front().score, key_error = choices[i].k_output_error;
    add(elements[i].v, choices[i].v_options,
        [&](const SideOption& option) { return ValueDamage(option.score, key_kl, key_error); });
  }
  const std::vector<double> bits = AllocateBits(parts, budget);
  auto next = bits.begin() + std::ssize(choices);
  Bits of_layers{{bits.begin(), next}, {}};
  for (size_t i = 0; i < choices.size(); ++i)
    of_layers.v.push_back(choices[i].latent() ? of_layers.k[i] : *next++);
  return of_layers;
}

double MeanKl(const std::vector<AutoChoice>& choices, const std::vector<double>& k_bits,
              size_t window) {
  double sum = 0;
  for (size_t i = 0; i < choices.size(); ++i)
    sum += At(choices[i].k_options, k_bits[i]).in_windows.at(window);
  return sum / static_cast<double>(choices.size());
}

// Sets the ratio with the lowest score summed over `options`. All curves have the same ratios.
void ShareClip(const std::vector<SideOption*>& options) {
  if (options.empty()) return;
  const std::vector<double>& ratios = options.front()->ratios;
  std::vector<double> sums(ratios.size(), 0.0);
  for (const SideOption* option : options) {
    OSCAR_CHECK(option->ratios == ratios);
    for (size_t i = 0; i < ratios.size(); ++i) sums[i] += option->curve[i];
  }
  const auto best = static_cast<size_t>(std::ranges::min_element(sums) - sums.begin());
  for (SideOption* option : options) option->SetRatio(ratios[best]);
}

void ShareClips(ClipScope scope, std::vector<AutoChoice>& choices) {
  if (scope != ClipScope::kSide && scope != ClipScope::kModel) return;
  std::vector<SideOption*> k, v;
  for (AutoChoice& choice : choices) {
    k.push_back(&choice.k_options.front());  // these consumers always use 2 bits
    v.push_back(&choice.v_options.front());
  }
  ShareClip(k);
  ShareClip(v);
  if (scope != ClipScope::kModel) return;
  // Both sides take the keys' ratio, because the keys' KL decides what the cache costs.
  for (SideOption* option : v) option->SetRatio(k.front()->clip[0]);
}

}  // namespace

LayerElements ElementsOf(int64_t num_kv_heads, int64_t head_dim, int64_t v_head_dim,
                         const GroupFormat& groups) {
  const int64_t size = groups.quant_group_size;
  const auto of_dim = [&](int64_t dim) { return size == 0 ? 1 : (dim + size - 1) / size; };
  const auto count = static_cast<double>(num_kv_heads * (of_dim(head_dim) + of_dim(v_head_dim)));
  return {num_kv_heads * head_dim, num_kv_heads * v_head_dim, (groups.bytes ? 16 : 32) * count,
          64 * count};
}

LayerElements LatentElementsOf(int64_t rank, int64_t position_dim, const GroupFormat& groups) {
  LayerElements elements = ElementsOf(1, rank, 0, groups);
  if (groups.quant_group_size == 0) {  // values have no group of their own
    elements.metadata_bits /= 2;
    elements.oscar_bits /= 2;
  }
  elements.kept = position_dim;
  return elements;
}

double LeastStoredBits(const std::vector<LayerElements>& elements) {
  return (2 * Quantized(elements) + Metadata(elements)) / Elements(elements);
}

double StoredBits(const AutoOptions& options, const std::vector<LayerElements>& elements) {
  if (options.bits != kOscarsBits) {
    return options.bits == 2 ? LeastStoredBits(elements) : options.bits;
  }
  std::vector<LayerElements> published = elements;
  for (LayerElements& layer : published) layer.metadata_bits = layer.oscar_bits;
  return LeastStoredBits(published);
}

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
  const double least = LeastStoredBits(elements), all = Elements(elements);
  const double stored = StoredBits(options, elements);
  OSCAR_CHECK(stored >= least - kRounding);  // CheckCalibration ensures this
  const auto codes = [&](double bits) { return bits * all - Metadata(elements); };
  const BitPrice price = options.price.value_or(BitPrice::kAttention);
  size_t window = 0;
  Bits bits = Allocate(price, elements, choices, codes(stored), 0);
  if (options.windows) {
    double best = MeanKl(choices, bits.k, 0);
    for (size_t w = 1; w < windows.size(); ++w) {
      const double left =
          stored - (WindowBits(windows[w].windows) - WindowBits(windows[0].windows)) *
                       (Quantized(elements) / all);
      if (left < least - kRounding) continue;
      Bits other = Allocate(price, elements, choices, codes(left), w);
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
    spent += static_cast<double>(elements[i].k) * bits.k[i] +
             static_cast<double>(elements[i].v) * bits.v[i];
  }
  plan.bits = spent / Quantized(elements);
  plan.stored_bits = (spent + Metadata(elements)) / all;
  for (size_t w = 0; w < windows.size(); ++w)
    plan.window_scores.push_back(MeanKl(choices, bits.k, w));
  return plan;
}

}  // namespace oscar
