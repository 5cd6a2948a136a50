// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See arm.h.
#include "export/validate/arm.h"

#include <fmt/format.h>

#include <algorithm>

#include "linalg/error.h"

namespace oscar {
namespace {

constexpr std::string_view kClip = "+clip", kWindows = "+windows";

// Ten arms that answer the usual questions, and four controls.
constexpr std::string_view kDefaultArms[] = {
    "bf16",
    "naive",
    "naive+windows",
    "hadamard",
    "hadamard+windows",
    "hadamard+clip+windows",
    "int4_hadamard",
    "oscar_shared+clip+windows",
    "oscar_per_head+clip",
    "oscar_per_head+clip+windows",
    "identity+clip+windows",
    "random_rotation+clip+windows",
    "wrong_layer+clip+windows",
    "shuffled_tokens+clip+windows",
};

Arm MakeArm(const CacheMethod& method, bool clip, bool windows) {
  std::string name(method.name);
  if (clip) name += kClip;
  if (windows) name += kWindows;
  return {name, &method, clip, windows};
}

std::vector<Arm> AllArms() {
  std::vector<Arm> arms;
  for (const CacheMethod& method : CacheMethods()) {
    for (const bool windows : {false, true}) {
      for (const bool clip : {false, true}) {
        if (method.payload_bits == 16 && (clip || windows)) continue;
        arms.push_back(MakeArm(method, clip, windows));
      }
    }
  }
  return arms;
}

}  // namespace

Arm ParseArm(std::string_view name) {
  const size_t plus = name.find('+');
  const CacheMethod& method = CacheMethodNamed(name.substr(0, plus));
  bool clip = false, windows = false;
  for (std::string_view rest = plus == name.npos ? "" : name.substr(plus); !rest.empty();) {
    const std::string_view modifier = rest.substr(0, rest.find('+', 1));
    bool* const set = modifier == kClip ? &clip : modifier == kWindows ? &windows : nullptr;
    if (set == nullptr) {
      throw UsageError(fmt::format(
          "arm '{}': '{}' is no modifier; an arm is METHOD[+clip][+windows]", name, modifier));
    }
    if (*set) throw UsageError(fmt::format("arm '{}': '{}' is given twice", name, modifier));
    *set = true;
    rest.remove_prefix(modifier.size());
  }
  if (method.payload_bits == 16 && (clip || windows)) {
    throw UsageError(fmt::format("arm '{}': nothing is quantized by {}, so it takes no modifiers",
                                 name, method.name));
  }
  return MakeArm(method, clip, windows);
}

std::vector<Arm> ParseArms(const std::vector<std::string>& names, const MethodContext& context) {
  std::vector<Arm> arms = {ParseArm(kReferenceArm)};
  const auto add = [&](const Arm& arm) {
    const auto same = [&](const Arm& other) { return other.name == arm.name; };
    if (std::ranges::none_of(arms, same)) arms.push_back(arm);
  };
  for (const std::string& name : names) {
    if (name == "default" || name == "all") {
      std::vector<Arm> list = AllArms();
      if (name == "default") {
        list.clear();
        for (const std::string_view arm : kDefaultArms) list.push_back(ParseArm(arm));
      }
      for (const Arm& arm : list) {
        if (arm.method->available(context)) add(arm);
      }
    } else {
      add(ParseArm(name));
    }
  }
  if (arms.size() < 2) throw UsageError("no arm to compare with bf16: give --arms");
  return arms;
}

const Arm& HeadlineArm(const std::vector<Arm>& arms) {
  const auto rank = [](const Arm& arm) {
    const int method =
        arm.method->name == "oscar_per_head" ? 2 : arm.method->name == "oscar_shared";
    return method == 0 ? 0 : 4 * method + 2 * arm.windows + arm.clip;
  };
  const auto best = std::ranges::max_element(arms, {}, rank);
  return rank(*best) > 0 ? *best : arms.back();
}

}  // namespace oscar
