// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/evaluate/bits_per_element.h"

#include <fmt/format.h>

#include <algorithm>

#include "linalg/base/check.h"

namespace oscar {
namespace {

double QuantizedBits(const CacheLayout& layout, double metadata_bits) {
  return layout.payload_bits + metadata_bits / static_cast<double>(layout.quant_group_size);
}

}  // namespace

double PaperBitsPerElement(const CacheLayout& layout, int64_t tokens) {
  OSCAR_CHECK_LE(1, tokens);
  if (layout.payload_bits >= kKeptBits) return kKeptBits;
  const auto kept =
      static_cast<double>(std::min(tokens, layout.sink_tokens + layout.recent_tokens));
  const auto all = static_cast<double>(tokens);
  return ((all - kept) * QuantizedBits(layout, layout.metadata_bits) + kKeptBits * kept) / all;
}

double ActualBitsPerElement(const CacheLayout& layout, int64_t tokens) {
  OSCAR_CHECK_LE(1, tokens);
  if (layout.payload_bits >= kKeptBits) return kKeptBits;
  const bool has_ring = layout.recent_tokens > 0;
  const int64_t candidates =
      std::max<int64_t>(0, tokens - layout.sink_tokens - layout.recent_tokens);
  const int64_t pages = has_ring ? candidates / kDemotionTokens
                                 : (candidates + kDemotionTokens - 1) / kDemotionTokens;
  const int64_t kept =
      layout.sink_tokens + (has_ring ? layout.recent_tokens + kDemotionTokens - 1 : 0);
  return (static_cast<double>(pages * kDemotionTokens) *
              QuantizedBits(layout, layout.actual_metadata_bits) +
          kKeptBits * static_cast<double>(kept)) /
         static_cast<double>(tokens);
}

std::string BitsText(const Json& serving) {
  if (!serving.contains("auto")) return "";
  const Json& choice = serving.at("auto");
  const double stored = choice.at("bits_stored");
  const CacheLayout layout = {.payload_bits = stored,
                              .metadata_bits = 0,
                              .actual_metadata_bits = 0,
                              .sink_tokens = choice.at("sink_tokens"),
                              .recent_tokens = choice.at("recent_tokens")};
  std::string text = fmt::format("{:.3g} per value in codes, {:.3g} with scales and zeros",
                                 choice.at("bits_spent").get<double>(), stored);
  if (layout.sink_tokens + layout.recent_tokens == 0) return text;
  constexpr int64_t kTokens = 8192;
  return text +
         fmt::format(", {:.3g} in a cache of {} tokens whose {} first and {} last are in bf16",
                     ActualBitsPerElement(layout, kTokens), kTokens, layout.sink_tokens,
                     layout.recent_tokens);
}

}  // namespace oscar
