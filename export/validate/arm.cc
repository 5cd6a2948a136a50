// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "export/validate/arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "export/artifact/artifact_format.h"
#include "export/report/capacity.h"  // ReleasedTypes
#include "export/simulate/guest_methods.h"
#include "export/simulate/runtime_cache.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// The modifiers, in the order used in names.
struct Modifier {
  std::string_view name;
  bool ArmOptions::*option;
  bool CacheMethod::*taken;
  std::string_view why_not;  // why a method does not take it
};
constexpr Modifier kModifiers[] = {
    {"+clip", &ArmOptions::clip, &CacheMethod::takes_clip,
     "its quantizer does not clip at a percentile"},
    {"+windows", &ArmOptions::windows, &CacheMethod::takes_windows,
     "it has its own rules for exact tokens"},
    {"+bf16", &ArmOptions::bf16, &CacheMethod::takes_bf16,
     "it has a fixed arithmetic, or no rotation that could be computed in bf16"},
};

bool Takes(const CacheMethod& method, const Modifier& modifier) {
  return method.quantizes && method.*modifier.taken;
}

// The reference, nine configurations that are usually compared, and four null controls.
constexpr std::string_view kDefaultArms[] = {
    "bf16",
    "naive",
    "naive+windows",
    "hadamard",
    "hadamard+windows",
    "hadamard+clip+windows",
    "int4_hadamard",
    "oscar_shared+clip+windows",
    "oscar_per_head+clip+windows",
    "auto+windows",  // if the artifact has choices
    "identity+clip+windows",
    "random_rotation+clip+windows",
    "wrong_layer+clip+windows",
    "shuffled_tokens+clip+windows",
};

constexpr std::string_view kDefaultList = "default";

// The arms that a verdict needs: the exact model and the rivals of the artifact's own choice, which
// ParseArms adds.
constexpr std::string_view kQuickArms[] = {
    "bf16",
    "hadamard+clip+windows",
    "oscar_shared+clip+windows",
    "oscar_per_head+clip+windows",  // if the artifact has no choices
    "random_rotation+clip+windows",
};
constexpr std::string_view kQuickList = "quick";

Arm MakeArm(const CacheMethod& method, const ArmOptions& options, const GuestMethods& guests = {}) {
  std::string name(method.name);
  for (const Modifier& modifier : kModifiers) {
    if (!(options.*modifier.option)) continue;
    name += modifier.name;
    if (modifier.option == &ArmOptions::clip && options.clip_ratio > 0)
      name += fmt::format("={:g}", options.clip_ratio);
  }
  const auto guest = std::ranges::find(guests, &method, &std::shared_ptr<const CacheMethod>::get);
  return {name,
          guest != guests.end()
              ? *guest
              : std::shared_ptr<const CacheMethod>(std::shared_ptr<void>(), &method),
          options};
}

double ParseClipRatio(std::string_view text, std::string_view arm) {
  double ratio = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ratio);
  if (error != std::errc() || end != text.data() + text.size() || !(ratio > 0 && ratio <= 1)) {
    throw UsageError(fmt::format(
        "configuration '{}': clip ratio '{}', expected a number above 0 and up to 1", arm, text));
  }
  return ratio;
}

std::vector<Arm> ArmsNamed(std::span<const std::string_view> names) {
  std::vector<Arm> arms;
  for (const std::string_view name : names) arms.push_back(ParseArm(name));
  return arms;
}

std::vector<Arm> PublishedArms() {
  std::vector<Arm> arms;
  for (const CacheMethod& method : CacheMethods()) {
    if (!method.null_control) arms.push_back(MakeArm(method, method.as_published));
  }
  return arms;
}

std::vector<Arm> AllArms() {
  std::vector<Arm> arms;
  for (const CacheMethod& method : CacheMethods()) {
    for (const bool windows : {false, true}) {
      for (const bool clip : {false, true}) {
        const bool takes_windows = Takes(method, kModifiers[1]);
        if ((clip && !Takes(method, kModifiers[0])) || (windows && !takes_windows)) continue;
        if (clip && !windows && takes_windows && !method.null_control) continue;
        arms.push_back(MakeArm(method, {.clip = clip, .windows = windows}));
      }
    }
  }
  return arms;
}

std::optional<std::vector<Arm>> ListNamed(std::string_view name) {
  if (name == "published") return PublishedArms();
  if (name == "all") return AllArms();
  return std::nullopt;
}

}  // namespace

Arm ParseArm(std::string_view name, const GuestMethods& guests) {
  const size_t plus = name.find('+');
  const CacheMethod& method = CacheMethodNamed(name.substr(0, plus), guests);
  ArmOptions options;
  for (std::string_view rest = plus == name.npos ? "" : name.substr(plus); !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find('+', 1));
    const size_t equals = word.find('=');
    const auto modifier = std::ranges::find(kModifiers, word.substr(0, equals), &Modifier::name);
    if (modifier == std::end(kModifiers) ||
        (equals != word.npos && modifier->option != &ArmOptions::clip)) {
      throw UsageError(
          fmt::format("configuration '{}': '{}' is not a modifier; expected "
                      "METHOD[+clip[=RATIO]][+windows][+bf16]",
                      name, word));
    }
    if (equals != word.npos) options.clip_ratio = ParseClipRatio(word.substr(equals + 1), name);
    if (!Takes(method, *modifier)) {
      throw UsageError(fmt::format("configuration '{}': {} does not support {}: {}", name,
                                   method.name, word,
                                   method.quantizes ? modifier->why_not : "it does not quantize"));
    }
    if (std::exchange(options.*modifier->option, true))
      throw UsageError(fmt::format("configuration '{}': '{}' is given twice", name, word));
    rest.remove_prefix(word.size());
  }
  return MakeArm(method, options, guests);
}

bool IsArmList(std::string_view name) {
  return name == kDefaultList || name == kQuickList || ListNamed(name).has_value();
}

Arm PublishedArm(std::string_view method) {
  const CacheMethod& named = CacheMethodNamed(method);
  return MakeArm(named, named.as_published);
}

std::vector<Arm> ParseArms(const std::vector<std::string>& names, const MethodContext& context,
                           bool has_rows) {
  std::vector<Arm> arms = {ParseArm(kReferenceArm)};
  const auto add = [&](const Arm& arm) {
    const auto same = [&](const Arm& other) { return other.name == arm.name; };
    if (std::ranges::none_of(arms, same)) arms.push_back(arm);
  };
  const bool latents = HasLatents(context);
  const auto add_list = [&](const std::vector<Arm>& list) {
    for (const Arm& arm : list) {
      const CacheMethod& method = *arm.method;
      if ((!method.needs_rows || has_rows) && (!latents || method.why_no_latents.empty()) &&
          (!method.available || method.available(context)))
        add(arm);
    }
  };
  const auto add_with_shipped = [&](std::string_view list) {
    const std::string shipped = ShippedArm(context);
    std::vector<Arm> of_list = list == kQuickList ? ArmsNamed(kQuickArms) : ArmsNamed(kDefaultArms);
    if (list == kQuickList && !shipped.empty())
      std::erase_if(of_list, [](const Arm& arm) { return arm.method->name == "oscar_per_head"; });
    add_list(of_list);
    if (!shipped.empty()) add(ParseArm(shipped));
    const auto budgets = BudgetArms(context.artifact());
    for (const auto& [bits, arm] : budgets) add(ParseArm(arm, context.options().guests));
    for (const ReleasedType& type : ReleasedTypes())
      if (!budgets.empty()) add_list({ParseArm(type.method)});
  };
  if (names.empty()) add_with_shipped(kDefaultList);
  for (const std::string& name : names) {
    if (name == kDefaultList || name == kQuickList) {
      add_with_shipped(name);
      continue;
    }
    if (const auto list = ListNamed(name)) {
      add_list(*list);
      continue;
    }
    const Arm arm = ParseArm(name, context.options().guests);
    if (latents && !arm.method->why_no_latents.empty()) {
      throw UsageError(
          fmt::format("configuration '{}': the model has latent attention, whose single row is key "
                      "and value, and {} does not support it: {}",
                      name, arm.method->name, arm.method->why_no_latents));
    }
    if (arm.method->needs_rows && !has_rows) {
      throw UsageError(
          fmt::format("configuration '{}': {} is fitted to rows of calibration text, which a dump "
                      "does not have; measure it on the model",
                      name, arm.method->name));
    }
    if (arm.method->available) (void)arm.method->available(context);  // a guest's check may throw
    add(arm);
  }
  if (arms.size() < 2)
    throw UsageError(
        "there is no configuration to compare with bf16; name one with --arms or --methods");
  return arms;
}

bool NeedsRows(const std::vector<Arm>& arms) {
  return std::ranges::any_of(arms, [](const Arm& arm) { return arm.method->needs_rows; });
}

std::string ShippedArm(const MethodContext& context) {
  const Artifact& artifact = context.artifact();
  if (!artifact.has_choices()) return {};
  const std::string made_for = JsonString(artifact.Choice(), "for", kManifestFile);
  for (const RuntimeSpec& runtime : Runtimes()) {
    if (!runtime.chosen || runtime.runtime != made_for) continue;  // none matches `any`
    const Arm arm = PublishedArm(runtime.method);
    if (arm.method->available(context) &&
        (!HasLatents(context) || arm.method->why_no_latents.empty()))
      return arm.name;
  }
  return PublishedArm("auto").name;
}

namespace {

// Returns the name of the requested arm. A name that is in `arms` is returned unchanged; any other
// is parsed, which puts its modifiers in the usual order. Arms of GuestMethods must match a name in
// `arms` exactly, because the parser is not given those methods.
std::string NameAmong(const std::vector<Arm>& arms, std::string_view asked) {
  const bool known = std::ranges::find(arms, asked, &Arm::name) != arms.end();
  return known ? std::string(asked) : ParseArm(asked).name;
}

}  // namespace

const Arm& HeadlineArm(const std::vector<Arm>& arms, const std::vector<std::string>& own,
                       std::string_view asked) {
  if (!asked.empty()) {
    const std::string name = NameAmong(arms, asked);
    const auto found = std::ranges::find(arms, name, &Arm::name);
    if (found != arms.end()) return *found;
    throw UsageError(fmt::format(
        "the headline configuration {} is not among the measured configurations", name));
  }
  for (const std::string& name : own) {
    const auto found = std::ranges::find(arms, name, &Arm::name);
    if (found != arms.end()) return *found;
  }
  const auto rank = [](const Arm& arm) {
    const int method =
        arm.method->name == "oscar_per_head" ? 2 : arm.method->name == "oscar_shared";
    return method == 0 ? 0 : 4 * method + 2 * arm.options.windows + arm.options.clip;
  };
  const auto best = std::ranges::max_element(arms, {}, rank);
  return rank(*best) > 0 ? *best : arms.back();
}

std::vector<size_t> RecallArms(const std::vector<Arm>& arms, std::string_view headline,
                               const std::vector<std::string>& asked,
                               const std::vector<std::string>& named) {
  std::vector<size_t> all(arms.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (std::ranges::find(asked, "all") != asked.end()) return all;
  std::set<std::string, std::less<>> names = {std::string(headline)};
  if (asked.empty()) {
    const Arm* hadamard = nullptr;
    const auto rank = [](const Arm& arm) { return 2 * arm.options.windows + arm.options.clip; };
    for (const Arm& arm : arms) {
      const bool better = hadamard == nullptr || rank(arm) > rank(*hadamard);
      if (arm.method->name == "hadamard" && !arm.options.bf16 && better) hadamard = &arm;
    }
    names.insert("naive");
    if (hadamard != nullptr) names.insert(hadamard->name);
    for (const std::string& name : named) {
      if (!IsArmList(name)) names.insert(NameAmong(arms, name));
    }
  }
  for (const std::string& name : asked) {
    const auto [found, added] = names.insert(NameAmong(arms, name));
    if (std::ranges::find(arms, *found, &Arm::name) == arms.end())
      throw UsageError(
          fmt::format("--needle-arms: {} is not among the measured configurations", *found));
  }
  std::erase_if(all, [&](size_t i) { return i > 0 && !names.contains(arms[i].name); });
  return all;
}

}  // namespace oscar
