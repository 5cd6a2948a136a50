// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "zoo/check/remeasure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "capture/files/quote.h"
#include "export/evaluate/gate.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr size_t kMaxLines = 8;        // the largest number of differences that are printed
constexpr double kSameMachine = 1e-6;  // relative tolerance
constexpr double kOtherMachine = 0.05, kFraction = 0.05, kNothing = 1e-4;

const Json* ArmOf(const Json& validation, const std::string& name) {
  for (const Json& arm : validation.at("arms"))
    if (arm.at("name") == name) return &arm;
  return nullptr;
}

class Comparison {
 public:
  std::vector<std::string> Finish() {
    const size_t more = lines_.size() - std::min(lines_.size(), kMaxLines);
    if (more == 0) return std::move(lines_);
    lines_.resize(kMaxLines);
    lines_.push_back(fmt::format("and {} more", more));
    return std::move(lines_);
  }

  void Differs(const std::string& where, const Json& recorded, const Json& again) {
    lines_.push_back(fmt::format("{}: recorded {}, now measured {}", Escaped(where),
                                 Escaped(recorded.dump(), 100), Escaped(again.dump(), 100)));
  }

  // Compares every number below `recorded`, and reports members that only one side has.
  void All(const std::string& where, const Json& recorded, const Json& again) {
    if (recorded.is_number() && again.is_number()) {
      const double a = recorded, b = again;
      if (std::abs(a - b) > kSameMachine * std::max(std::abs(a), std::abs(b)))
        Differs(where, recorded, again);
    } else if (recorded.is_structured() && recorded.type() == again.type() &&
               recorded.size() == again.size()) {
      const Json a = recorded.flatten(), b = again.flatten();
      for (const auto& [path, value] : a.items()) {
        if (!b.contains(path)) {
          Differs(where + path, value, nullptr);
        } else if (value.is_primitive()) {
          All(where + path, value, b.at(path));
        }
      }
    } else if (recorded != again) {
      Differs(where, recorded.is_structured() ? Json(recorded.type_name()) : recorded,
              again.is_structured() ? Json(again.type_name()) : again);
    }
  }

  void GateMetricsOf(const std::string& where, const Json& recorded, const Json& again) {
    for (const Measure& metric : GateMetrics()) {
      // On another machine, a rounding difference may lead to a different generated text.
      if (metric.path.starts_with("reasoning.")) continue;
      const Json *of_a = FindAt(recorded, metric.path), *of_b = FindAt(again, metric.path);
      if (of_a == nullptr && of_b == nullptr) continue;
      const Json a = of_a ? *of_a : Json(), b = of_b ? *of_b : Json();
      if (!a.is_number() || !b.is_number() || !Close(metric, a.get<double>(), b.get<double>()))
        Differs(where + "." + std::string(metric.path), a, b);
    }
  }

 private:
  static bool Close(const Measure& metric, double a, double b) {
    if (metric.format == Format::kPercent) return std::abs(a - b) <= kFraction;
    const bool is_ratio = metric.name == "ppl_ratio";
    if (is_ratio) a -= 1, b -= 1;
    const double slack = kOtherMachine * std::max(std::abs(a), std::abs(b));
    return std::abs(a - b) <= std::max(slack, is_ratio ? 10 * kNothing : kNothing);
  }

  std::vector<std::string> lines_;
};

}  // namespace

Json RecordedConfiguration(const Json& validation, std::string_view what) {
  const Json& settings = JsonMember(validation, "settings", what);
  Json configuration = JsonMember(settings, "configuration", what);
  if (!configuration.is_object())
    throw InputError(fmt::format("{}: 'configuration' is not an object", what));
  if (!configuration.contains("scope")) configuration["scope"] = "normal";  // old reports have none
  configuration["arms"] = JsonMember(settings, "arms", what);
  configuration["methods"] = Json::array();
  // Without --needle-arms, --arms decides which arms have their recall measured. Here --arms names
  // every arm, so the arms with a recorded recall are given explicitly.
  if (configuration.value("needle_arms", Json::array()).empty()) {
    configuration["needle_arms"] = Json::array();
    for (const Json& arm : JsonMember(validation, "arms", what))
      if (arm.contains("needle")) configuration["needle_arms"].push_back(arm.at("name"));
  }
  configuration["headline_arm"] = JsonString(validation, "headline_arm", what);
  for (const char* member : {"sink_tokens", "recent_tokens", "quant_group_size"})
    configuration[member] = JsonInt(settings, member, what);
  configuration["dtype"] = JsonString(settings, "compute_dtype", what);
  for (const char* left_out : {"gate", "kernels", "allow_other_model"})
    configuration.erase(left_out);
  return configuration;
}

std::vector<std::string> CompareValidations(const Json& recorded, const Json& again) {
  Comparison comparison;
  const auto member = [](const Json& validation, const char* pointer) {
    return validation.value(Json::json_pointer(pointer), Json());
  };
  for (const char* pointer : {"/data/digest", "/data/tokens", "/headline_arm", "/settings/seed",
                              "/settings/score_from", "/settings/rows_per_sequence"}) {
    if (member(recorded, pointer) == member(again, pointer)) continue;
    comparison.Differs(pointer, member(recorded, pointer), member(again, pointer));
    return comparison.Finish();  // results on other text or rows cannot be compared
  }
  const bool same_machine = member(recorded, "/machine") == member(again, "/machine") &&
                            member(recorded, "/program") == member(again, "/program");
  for (const Json& arm : recorded.at("arms")) {
    const std::string name = arm.at("name");
    const Json* other = ArmOf(again, name);
    if (other == nullptr) {
      comparison.Differs("configuration " + name, "there", nullptr);
    } else if (same_machine) {
      comparison.All("configuration " + name, arm, *other);
    } else {
      comparison.GateMetricsOf("configuration " + name, arm, *other);
    }
  }
  return comparison.Finish();
}

}  // namespace oscar
