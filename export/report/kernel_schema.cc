// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/kernel_schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/quote.h"

namespace oscar {
namespace {

// Of a head and, added up over heads, of everything.
constexpr const char* kCounts[] = {"codes", "differing_codes", "differing_metadata",
                                   "differing_simulated"};

void CheckCacheFormat(const Spot& spot) {
  static constexpr MemberRule kRules[] = {{"k_bits", CheckCount},
                                          {"v_bits", CheckCount},
                                          {"quant_group_size", CheckCount},
                                          {"page_tokens", CheckCount},
                                          {"metadata", CheckText}};
  CheckObject(spot, kRules, Unknown::kRefused);
}

void CheckKernelHead(const Spot& spot) {
  static constexpr MemberRule kRules[] = {{"codes", CheckCount},
                                          {"differing_codes", CheckCount},
                                          {"differing_metadata", CheckCount},
                                          {"differing_simulated", CheckCount},
                                          {"kernel_error", CheckNonNegative},
                                          {"total_error", CheckNonNegative}};
  CheckObject(spot, kRules, Unknown::kRefused);
}

void CheckKernelLayer(const Spot& spot) {
  static constexpr MemberRule kRules[] = {{"layer_id", CheckCount},
                                          {"write_us", CheckNonNegative},
                                          {"decode_us", CheckNonNegative},
                                          {"heads", ArrayOf<CheckKernelHead>}};
  CheckObject(spot, kRules, Unknown::kRefused);
}

}  // namespace

void CheckKernels(const Spot& spot) {
  static constexpr MemberRule kRules[] = {{"gpu", CheckText},
                                          {"rotations", CheckText},
                                          {"format", CheckCacheFormat},
                                          {"sink_tokens", CheckCount},
                                          {"recent_tokens", CheckCount},
                                          {"tokens", CheckCount},
                                          {"queries", CheckCount},
                                          {"codes", CheckCount},
                                          {"differing_codes", CheckCount},
                                          {"differing_metadata", CheckCount},
                                          {"differing_simulated", CheckCount},
                                          {"kernel_error", CheckNonNegative},
                                          {"kernel_error_limit", CheckNonNegative},
                                          {"total_error", CheckNonNegative},
                                          {"passed", CheckBool},
                                          {"layers", ArrayOf<CheckKernelLayer>}};
  CheckObject(spot, kRules, Unknown::kRefused);
  if (const std::string rotations = spot.Member("rotations").Text();
      rotations != "per_head" && rotations != "shared") {
    spot.Member("rotations")
        .Refuse(
            fmt::format("expected \"per_head\" or \"shared\", found {}", Quoted(rotations, 40)));
  }
  std::vector<Spot> heads;
  for (const Spot& layer : spot.Member("layers").Elements())
    std::ranges::move(layer.Member("heads").Elements(), std::back_inserter(heads));
  uint64_t differing = 0;
  for (const char* count : kCounts) {
    uint64_t sum = 0;
    for (const Spot& head : heads)
      if (__builtin_add_overflow(sum, head.Member(count).Count(), &sum)) sum = UINT64_MAX;
    const uint64_t total = spot.Member(count).Count();
    if (sum != total)
      spot.Member(count).Refuse(fmt::format("says {}, the heads add up to {}", total, sum));
    if (std::string_view(count) != "codes") differing += total;
  }
  double worst = 0;
  for (const Spot& head : heads) worst = std::max(worst, head.Member("kernel_error").Number());
  const bool holds = differing == 0 && worst <= spot.Member("kernel_error_limit").Number();
  if (spot.Member("passed").True() != holds) {
    spot.Member("passed").Refuse(
        fmt::format("says {}, but {} values differ and the largest kernel error is {}", !holds,
                    differing, Json(worst).dump()));
  }
}

}  // namespace oscar
