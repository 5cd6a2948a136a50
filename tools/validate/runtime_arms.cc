// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/validate/runtime_arms.h"

#include <algorithm>

#include "export/measures/table.h"
#include "export/simulate/runtime_choice.h"

namespace oscar {
namespace {

// Whether the runtime has an ideal arm. The ideal "auto" exists only for the headline choice.
bool HasIdeal(const RuntimeSpec& runtime, const Artifact& artifact) {
  return !runtime.chosen || ServedChoice(runtime, artifact) == kHeadlineChoice;
}

}  // namespace

std::vector<std::string> RuntimeNames() {
  std::vector<std::string> names;
  for (const RuntimeSpec& runtime : Runtimes()) {
    const std::string name(runtime.runtime);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

void AddRuntimeArms(const std::vector<std::string>& runtimes, const Artifact& artifact,
                    std::vector<std::string>& arms) {
  for (const std::string& name : runtimes) {
    for (const RuntimeSpec& runtime : Runtimes()) {
      if (runtime.runtime != name) continue;
      if (runtime.chosen && ServedChoice(runtime, artifact).empty()) continue;
      if (HasIdeal(runtime, artifact)) arms.emplace_back(runtime.ideal);
      arms.emplace_back(runtime.method);
    }
  }
}

void AddRuntimeLosses(const Artifact& artifact, Json& validation) {
  Json& arms = validation.at("arms");
  for (const RuntimeSpec& runtime : Runtimes()) {
    if (!HasIdeal(runtime, artifact)) continue;
    const auto named = [&](std::string_view name) {
      return std::find_if(arms.begin(), arms.end(),
                          [&](const Json& arm) { return arm.at("name") == std::string(name); });
    };
    const auto arm = named(runtime.method), ideal = named(runtime.ideal);
    if (arm != arms.end() && ideal != arms.end()) (*arm)["ideal"] = RuntimeLoss(*arm, *ideal);
  }
}

}  // namespace oscar
