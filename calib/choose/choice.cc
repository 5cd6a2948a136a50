// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "calib/choose/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "capture/files/quote.h"
#include "linalg/base/check.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr int64_t kLeastQuartered = 32;  // values per head

template <typename Options>
auto& OptionOf(Options& options, double bits) {
  const auto found =
      std::ranges::find_if(options, [&](const SideOption& option) { return option.bits == bits; });
  OSCAR_CHECK(found != options.end());
  return *found;
}

}  // namespace

std::vector<int> SideOption::Bits() const {
  return head_bits.empty() ? std::vector{static_cast<int>(bits)} : head_bits;
}

void AutoChoice::SetWriter(const AutoOptions& options, int64_t quant_group, int64_t head_dim,
                           int64_t v_head_dim) {
  quant_group_size = quant_group;
  if (!RulesOf(options.consumer).fitted_scales) return;
  fitted_scales = MetadataType::kBFloat16;
  // Under a bit budget, bits are better spent on codes than on scales.
  if (options.shares_bits()) {
    if (!options.wide_codes()) fitted_scales = MetadataType::kByte;
    return;
  }
  // Without a budget, four 8-bit pairs of scale and zero take the space of one float32 pair.
  const bool quarters = quant_group_size == 0 && head_dim == v_head_dim && head_dim % 4 == 0 &&
                        head_dim >= kLeastQuartered;
  if (!quarters) return;
  fitted_scales = MetadataType::kByte;
  quant_group_size = head_dim / 4;
}

AffineFormat AutoChoice::Format(int bits, bool of_keys) const {
  AffineFormat format{bits, quant_group_size};
  if (fitted_scales) FitScales(of_keys || latent(), *fitted_scales, format);
  return format;
}

AffineQuantizer AutoChoice::Quantizer(const SideOption& option, bool of_keys) const {
  AffineQuantizer quantizer{
      .bits = option.Bits(), .clip = option.clip, .quant_group_size = quant_group_size};
  if (fitted_scales) FitScales(of_keys || latent(), *fitted_scales, quantizer);
  return quantizer;
}

std::string ValueRecipe::Name() const {
  return fmt::format("{} {} {}", ValueTargetName(target), per_head ? "per_head" : "shared",
                     CompositionName(composition));
}

ValueRecipe ValueRecipe::FromName(std::string_view name) {
  ValueRecipe recipe;
  std::string target, grouping, composition;
  std::istringstream{std::string(name)} >> target >> grouping >> composition;
  try {
    recipe = {ValueTargetFromName(target), grouping == "per_head",
              CompositionFromName(composition)};
  } catch (const UsageError&) {  // reported below
  }
  if (recipe.Name() == name) return recipe;
  throw InputError(fmt::format("unknown value recipe {}", Quoted(name)));
}

const SideOption& AutoChoice::k_option() const { return OptionOf(k_options, k_bits); }
const SideOption& AutoChoice::v_option() const { return OptionOf(v_options, v_bits); }
SideOption& AutoChoice::k_option() { return OptionOf(k_options, k_bits); }
SideOption& AutoChoice::v_option() { return OptionOf(v_options, v_bits); }

void SideOption::SetRatio(double ratio) {
  const auto found = std::ranges::find(ratios, ratio);
  OSCAR_CHECK(found != ratios.end());
  const auto at = static_cast<size_t>(found - ratios.begin());
  clip = {ratio};
  head_score = head_check = {};  // the curves have only means over heads
  score = curve.at(at);
  if (!check_curve.empty()) check = check_curve.at(at);
  if (!windows_curve.empty()) in_windows = windows_curve.at(at);
}

size_t FirstEqual(const std::vector<const CacheSide*>& sides, size_t index) {
  size_t first = 0;
  while (*sides[first] != *sides[index]) ++first;
  return first;
}

}  // namespace oscar
