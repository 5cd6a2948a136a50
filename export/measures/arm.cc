// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/measures/arm.h"

#include <fmt/format.h>

namespace oscar::measures {

void Verify(const Spot& spot, const HeadErrors& heads) {
  const auto same_size = [&](const char* name, size_t size) {
    if (size == heads.layer_ids.size()) return;
    spot.Refuse(fmt::format("\"layer_ids\" has {} values and \"{}\" has {}", heads.layer_ids.size(),
                            name, size));
  };
  same_size("kl", heads.kl.size());
  if (heads.output_rel_error) same_size("output_rel_error", heads.output_rel_error->size());
}

void Verify(const Spot& spot, const CacheCapacity& capacity) {
  if (capacity.held.empty()) spot.Refuse("expected at least one context", "/held");
}

}  // namespace oscar::measures
