// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/measures/kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/files/quote.h"

namespace oscar::measures {

void Verify(const Spot& spot, const Kernels& kernels) {
  if (kernels.rotations != "per_head" && kernels.rotations != "shared") {
    spot.Refuse(
        fmt::format("expected \"per_head\" or \"shared\", found {}", Quoted(kernels.rotations, 40)),
        "/rotations");
  }
  double worst = 0;
  uint64_t differing = 0;
  for (const auto& [name, count] : {std::pair("codes", &KernelHead::codes),
                                    {"differing_codes", &KernelHead::differing_codes},
                                    {"differing_metadata", &KernelHead::differing_metadata},
                                    {"differing_simulated", &KernelHead::differing_simulated}}) {
    uint64_t sum = 0;
    const auto total = static_cast<uint64_t>(kernels.*count);
    for (const KernelLayer& layer : kernels.layers) {
      for (const KernelHead& head : layer.heads) {
        if (__builtin_add_overflow(sum, head.*count, &sum)) sum = UINT64_MAX;
        worst = std::max<double>(worst, head.kernel_error);
      }
    }
    if (sum != total)
      spot.Refuse(fmt::format("is {}, but the heads add up to {}", total, sum),
                  fmt::format("/{}", name));
    if (count != &KernelHead::codes) differing += total;
  }
  const bool holds = differing == 0 && worst <= kernels.kernel_error_limit;
  if (kernels.passed != holds) {
    spot.Refuse(fmt::format("is {}, but {} values differ and the largest kernel error is {}",
                            !holds, differing, worst),
                "/passed");
  }
}

}  // namespace oscar::measures
