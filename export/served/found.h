// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// What the functions of the checks share: how a runtime comes to its scales, and how a finding is
// said.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "capture/files/quote.h"
#include "export/served/served_checks.h"

namespace oscar {

ServedView ViewOf(const ServedDirectory& served, ServedRuntime runtime);

// Whether there is a kind of file or field that the runtime reads, whatever is in it; and what of
// it arrives.
bool ReadsAnything(const ServedView& view);
std::vector<std::string> Loaded(const ServedView& view);

// "a", "a and b", "a and 7 more".
inline std::string Naming(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  const std::string first = Escaped(names.front(), 120);
  if (names.size() == 1) return first;
  if (names.size() == 2) return fmt::format("{} and {}", first, Escaped(names[1], 120));
  return fmt::format("{} and {} more", first, names.size() - 1);
}

// The names of the scales for which `is` holds.
template <typename Scales, typename Predicate>
std::string NamingScales(const Scales& scales, const Predicate& is) {
  std::vector<std::string> names;
  for (const auto& entry : scales) {
    const StoredScale& scale = [&]() -> const StoredScale& {
      if constexpr (std::is_pointer_v<std::decay_t<decltype(entry)>>)
        return *entry;
      else
        return entry;
    }();
    if (is(scale)) names.push_back(scale.name);
  }
  return Naming(names);
}

// "layer 3", "layers 0, 2 and 5 more".
std::string NamingLayers(const std::vector<int64_t>& ids);

// The loader takes the parameters' own names (vllm issue 54623).
inline bool LoadsByOwnName(const ServedDirectory& served) {
  return served.model_type.starts_with("qwen3_5");
}

}  // namespace oscar
