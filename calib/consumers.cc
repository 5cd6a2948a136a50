// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/consumers.h"

#include <fmt/format.h>

#include <algorithm>

#include "linalg/base/check.h"

namespace oscar {

const std::vector<ConsumerRules>& AllConsumers() {
  static const std::vector<ConsumerRules> consumers = {
      {Consumer::kAny, "any", true, true, true, ClipScope::kHead, true, /*latents=*/true,
       /*fitted_scales=*/true, /*feedback=*/true, "oscar-torch"},
      // Format version 1 has one rotation per layer. The server reads clip ratios from environment
      // variables.
      {Consumer::kSglang, "sglang", false, false, false, ClipScope::kSide, false,
       /*latents=*/false, /*fitted_scales=*/false, /*feedback=*/false, "sglang"},
      // Format versions 2 and 3: per head, k_mean, q_rotation. Latents: a directory of matrices.
      {Consumer::kSglangOct, "sglang-oct", true, true, true, ClipScope::kSide, false,
       /*latents=*/true, /*fitted_scales=*/false, /*feedback=*/false, "sglang-oct"},
      {Consumer::kVllm, "vllm", false, false, false, ClipScope::kSide, false,
       /*latents=*/false, /*fitted_scales=*/false, /*feedback=*/false, "vllm"},
      // attn_k_rot and attn_v_rot in a GGUF; LLAMA_KV_CLIP_RATIO applies to both sides.
      {Consumer::kLlamacpp, "llamacpp", false, false, false, ClipScope::kModel, false,
       /*latents=*/false, /*fitted_scales=*/false, /*feedback=*/false, "llamacpp"},
      // R_K and R_V are orthogonal, [num_kv_heads, d, d]. The clip ratio is an attribute of the
      // layer's node.
      {Consumer::kOnnx, "onnx", true, false, false, ClipScope::kLayer, false,
       /*latents=*/false, /*fitted_scales=*/false, /*feedback=*/false, "onnx"},
  };
  return consumers;
}

std::string_view BitPriceName(BitPrice price) {
  switch (price) {
    case BitPrice::kAttention:
      return "attention";
    case BitPrice::kNextToken:
      return "next_token";
    case BitPrice::kUniform:
      return "uniform";
  }
  return "";
}

std::string_view SearchEffortName(SearchEffort effort) {
  switch (effort) {
    case SearchEffort::kQuick:
      return "quick";
    case SearchEffort::kNormal:
      return "normal";
    case SearchEffort::kThorough:
      return "thorough";
  }
  return "";
}

const ConsumerRules& RulesOf(Consumer consumer) {
  for (const ConsumerRules& rules : AllConsumers()) {
    if (rules.consumer == consumer) return rules;
  }
  OSCAR_CHECK(!"a consumer without rules");
  return AllConsumers().front();
}

std::string_view ExportTargetOf(std::string_view consumer) {
  const auto rules = std::ranges::find(AllConsumers(), consumer, &ConsumerRules::name);
  return rules == AllConsumers().end() ? "" : rules->export_target;
}

bool AutoOptions::shares_bits() const {
  return RulesOf(consumer).any_bits && (bits != 2 || !budgets.empty());
}

bool ConsumerRules::SameAs(const ConsumerRules& other) const {
  ConsumerRules named = other;
  named.consumer = consumer;
  named.name = name;
  named.export_target = export_target;
  return named == *this;
}

bool ShareSearch(const AutoOptions& a, const AutoOptions& b) {
  return a.shares_bits() && b.shares_bits() && a.consumer == b.consumer && a.fold == b.fold &&
         a.wide_codes() == b.wide_codes();
}

std::string ChoiceName(const AutoOptions& options) {
  std::string name(RulesOf(options.consumer).name);
  if (options.fold) name += "+fold";
  return options.shares_bits() ? fmt::format("{}@{:g}", name, options.bits) : name;
}

namespace {

bool SameRules(const AutoOptions& a, const AutoOptions& b) {
  return a.fold == b.fold && RulesOf(a.consumer).SameAs(RulesOf(b.consumer));
}

}  // namespace

std::vector<AutoOptions> OtherChoices(AutoOptions headline, bool latents) {
  std::vector<AutoOptions> others;
  if (!headline.enabled) return others;
  if (latents) headline.fold = false;  // there is nothing to fold
  AutoOptions other = headline;
  other.bits = 2;
  other.price.reset();
  other.windows = false;
  other.refine = 0;
  other.feedback = false;
  other.budgets.clear();
  for (const ConsumerRules& rules : AllConsumers()) {
    for (const bool fold : {false, true}) {
      if (latents && (!rules.latents || fold)) continue;
      if (fold && rules.query_matrix) continue;
      other.consumer = rules.consumer;
      other.fold = fold;
      const auto same = [&](const AutoOptions& known) { return SameRules(known, other); };
      if (!same(headline) && std::ranges::none_of(others, same)) others.push_back(other);
    }
  }
  other.consumer = Consumer::kAny;
  other.fold = false;
  other.price = headline.price;
  other.budgets = headline.budgets;
  for (const double bits : headline.budgets) {
    other.bits = bits;
    const auto same = [&](const AutoOptions& known) {
      return SameRules(known, other) && known.bits == other.bits && known.shares_bits();
    };
    if (!same(headline) && std::ranges::none_of(others, same)) others.push_back(other);
  }
  return others;
}

std::string ChoiceFor(const AutoOptions& headline, bool latents, Consumer consumer, bool fold) {
  AutoOptions wanted = headline, known = headline;
  wanted.consumer = consumer;
  wanted.fold = fold && !latents;
  if (latents) known.fold = false;
  if (SameRules(known, wanted)) return std::string(kHeadlineChoice);
  if (RulesOf(consumer).query_matrix) wanted.fold = false;
  if (SameRules(known, wanted)) return std::string(kHeadlineChoice);
  for (const AutoOptions& other : OtherChoices(headline, latents)) {
    if (SameRules(other, wanted)) return ChoiceName(other);
  }
  return {};
}

}  // namespace oscar
