// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/report/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace oscar {
namespace {

constexpr ReleasedType kReleasedTypes[] = {
    {"fp8_e4m3", "vLLM, SGLang", "--kv-cache-dtype fp8_e4m3"},
    {"lmdeploy_int8", "LMDeploy", "--quant-policy 8"},
    {"llama_q8_0", "llama.cpp", "--cache-type-k q8_0 --cache-type-v q8_0"},
    {"lmdeploy_int4", "LMDeploy", "--quant-policy 4"},
    {"llama_q4_0", "llama.cpp", "--cache-type-k q4_0 --cache-type-v q4_0"},
};

}  // namespace

std::span<const ReleasedType> ReleasedTypes() { return kReleasedTypes; }

const ReleasedType* FindReleasedType(std::string_view method) {
  const auto* const found = std::ranges::find(kReleasedTypes, method, &ReleasedType::method);
  return found == std::end(kReleasedTypes) ? nullptr : found;
}

Record BitsHeld(const Record& arm, const Record& validation) {
  const double tokens = validation["capacity"]["request_tokens"].Number();
  const std::vector<Record> held = arm["capacity"]["held"].Items();
  const auto found = std::ranges::find_if(
      held, [&](const Record& context) { return context["tokens"].Number() == tokens; });
  return (found == held.end() ? held.back() : *found)["bits"];
}

std::string WhatWouldPass(const Record& validation) {
  if (!validation.Has("gate") || validation["gate"]["passed"].True()) return {};
  if (validation["source"].Text() != "model") return {};
  if (!validation.Has("capacity")) {
    return "It was not measured whether more bits would pass: oscar-calibrate MODEL --bits "
           "2,2.5,3,4 makes a choice at each budget, and oscar-validate measures them all.";
  }
  std::string budgets;
  std::optional<Record> fewest;
  for (const Record& arm : validation["arms"].Items()) {
    if (!arm.Has("capacity")) continue;
    const Record capacity = arm["capacity"];
    if (capacity.Has("budget"))
      budgets += fmt::format("{}{:g}", budgets.empty() ? "" : ", ", capacity["budget"].Number());
    if (!capacity.Has("budget") && FindReleasedType(arm["method"].Text()) == nullptr) continue;
    if (!capacity.Has("passes_gate") || !capacity["passes_gate"].True()) continue;
    if (!fewest || BitsHeld(arm, validation).Number() < BitsHeld(*fewest, validation).Number())
      fewest.emplace(arm);
  }
  if (budgets.empty()) return {};  // --arms left them out
  if (!fewest) {
    return fmt::format(
        "None of the measured budgets ({} bits) would pass, nor would any cache type of a released "
        "server.",
        budgets);
  }
  const Record capacity = (*fewest)["capacity"];
  if (!capacity.Has("budget")) {
    const ReleasedType& type = *FindReleasedType((*fewest)["method"].Text());
    return fmt::format(
        "None of the measured budgets ({} bits) would pass; the type with the fewest bits that "
        "would pass has {:.2f} bits, in {}: {}.",
        budgets, BitsHeld(*fewest, validation).Number(), type.server, type.flags);
  }
  const double bits = capacity["budget"].Number();
  return fmt::format(
      "{:g} bits would pass, the fewest among the measured budgets ({}); oscar-kv in Hugging Face "
      "transformers supports them: oscar-export ARTIFACT --to oscar-torch --bits {:g} -o "
      "DIRECTORY; to publish that choice, give it first to oscar-calibrate --bits",
      bits, budgets, bits);
}

}  // namespace oscar
