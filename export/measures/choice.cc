// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/measures/choice.h"

#include <fmt/format.h>

#include <algorithm>

namespace oscar::measures {

void Verify(const Spot& spot, const LayerChoice& choice) {
  for (const auto& [side, bits, options] : {std::tuple("k", choice.k_bits, &choice.k_options),
                                            {"v", choice.v_bits, &choice.v_options}}) {
    const double chosen = bits;
    if (std::ranges::none_of(*options, [&](const Option& of) { return of.bits == chosen; })) {
      spot.Refuse(fmt::format("no element of \"{}_options\" has {} bits", side, chosen),
                  fmt::format("/{}_bits", side));
    }
  }
}

}  // namespace oscar::measures
