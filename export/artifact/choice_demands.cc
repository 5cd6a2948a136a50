// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/artifact/choice_demands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace oscar {
namespace {

// Formats layer ids like "layers 0, 3, 5 and 21 more".
std::string LayersText(const std::vector<int>& layers) {
  constexpr size_t kShown = 3;
  const size_t shown = std::min(layers.size(), kShown);
  std::string text =
      fmt::format("{} {}", layers.size() == 1 ? "layer" : "layers",
                  fmt::join(layers.begin(), layers.begin() + static_cast<ptrdiff_t>(shown), ", "));
  if (layers.size() > shown) text += fmt::format(" and {} more", layers.size() - shown);
  return text;
}

bool Differ(const std::vector<double>& values) {
  return std::ranges::any_of(values, [&](double value) { return value != values[0]; });
}

}  // namespace

void ChoiceDemands::Add(int layer_id, const StoredChoice& choice) {
  const auto add = [&](bool demands, Layers& layers) {
    if (demands) layers.push_back(layer_id);
  };
  add(choice.k.num_rotations > 1 || choice.v.num_rotations > 1, per_head_);
  add(!choice.k.mean.empty(), key_mean_);
  add(!choice.k.query_rotation.empty(), query_matrix_);
  const auto more = [](int bits) { return bits != 2; };
  add(std::ranges::any_of(choice.k_codes.bits, more) ||
          std::ranges::any_of(choice.v_codes.bits, more),
      more_bits_);
  // If all heads have the same ratio, the runtime needs only one ratio.
  const bool of_head = Differ(choice.k_codes.clip) || Differ(choice.v_codes.clip);
  add(of_head, clip_of_head_);
  if (!of_head) {
    k_clip_.push_back(choice.k_codes.clip.at(0));
    v_clip_.push_back(choice.v_codes.clip.at(0));
  }
  add(choice.k_codes.scales != ScaleFit::kRange, fitted_scales_);
  groups_.push_back(choice.k_codes.quant_group_size);
}

std::vector<std::string> ChoiceDemands::NotCarriedBy(const ConsumerRules& rules) const {
  std::vector<std::string> texts;
  const auto say = [&](bool carried, const Layers& layers, std::string_view what) {
    if (!carried && !layers.empty())
      texts.push_back(fmt::format("{} ({})", what, LayersText(layers)));
  };
  say(rules.per_head, per_head_, "a rotation per KV head");
  say(rules.key_mean, key_mean_, "key means");
  say(rules.query_matrix, query_matrix_, "a separate matrix for queries");
  say(rules.any_bits, more_bits_, "numbers of bits other than 2");
  say(rules.clip == ClipScope::kHead, clip_of_head_, "a clip ratio per KV head");
  say(rules.fitted_scales, fitted_scales_, "scales fitted to the codes");
  const bool one_ratio = rules.clip == ClipScope::kSide || rules.clip == ClipScope::kModel;
  if (one_ratio && (Differ(k_clip_) || Differ(v_clip_)))
    texts.emplace_back("a clip ratio per layer");
  if (rules.clip == ClipScope::kModel && clip_of_head_.empty() && k_clip_ != v_clip_)
    texts.emplace_back("clip ratios that differ between keys and values");
  if (std::ranges::any_of(groups_, [&](int64_t group) { return group != groups_[0]; }))
    texts.emplace_back("quantization groups that differ between layers");
  return texts;
}

ChoiceDemands DemandsOf(const Artifact& artifact, std::string_view choice) {
  ChoiceDemands demands;
  for (const int id : artifact.layer_ids()) demands.Add(id, artifact.ReadChoice(id, choice));
  return demands;
}

}  // namespace oscar
