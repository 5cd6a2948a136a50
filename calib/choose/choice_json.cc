// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts a choice to and from JSON, a part of report.json (export/report/schema.md). Each
// record's members are listed once, in a Fields() that Writer and Reader both visit.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "calib/choose/choice.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

// Writes whole numbers as integers.
Json BitsToJson(double bits) {
  if (bits == std::floor(bits)) return static_cast<int64_t>(bits);
  return bits;
}

struct Writer {
  Json& json;

  void operator()(const char* key, const auto& value) const { json[key] = value; }
  void Bits(const char* key, double bits) const { json[key] = BitsToJson(bits); }
  // Leaves the member out if it is 1.
  void IfNotOne(const char* key, double value) const {
    if (value != 1) json[key] = value;
  }
  void IfTrue(const char* key, bool value) const {
    if (value) json[key] = true;
  }
  // Leaves the member out if the list is empty.
  void IfAny(const char* key, const auto& list) const {
    if (!list.empty()) json[key] = list;
  }
  template <typename T>
  void IfNamed(const char* key, const std::optional<T>& value, std::string_view name(T),
               T(std::string_view)) const {
    if (value) json[key] = name(*value);
  }
  template <typename T>
  void Named(const char* key, T value, std::string_view name(T), T(std::string_view)) const {
    json[key] = name(value);
  }
  void Record(const char* key, auto fields) const {
    json[key] = Json::object();
    fields(Writer{json[key]});
  }
  template <typename T>
  void List(const char* key, const std::vector<T>& list, auto fields) const {
    Json& array = json[key] = Json::array();
    for (const T& element : list) fields(Writer{array.emplace_back(Json::object())}, element);
  }
};

// Reads members. Throws InputError that names the member.
struct Reader {
  const Json& json;
  std::string_view what;

  void operator()(const char* key, double& value) const { value = JsonDouble(json, key, what); }
  void operator()(const char* key, int64_t& value) const { value = JsonInt(json, key, what); }
  void operator()(const char* key, int& value) const { value = JsonInt32(json, key, what); }
  void operator()(const char* key, std::string& value) const {
    value = JsonString(json, key, what);
  }
  void operator()(const char* key, bool& value) const {
    JsonMember(json, key, what);
    value = JsonBool(json, key, false, what);
  }
  template <typename T>
  void operator()(const char* key, std::vector<T>& list) const {
    IfAny(key, list);
  }
  void IfNotOne(const char* key, double& value) const {
    value = 1;
    if (json.contains(key)) (*this)(key, value);
  }
  void IfTrue(const char* key, bool& value) const { value = JsonBool(json, key, false, what); }
  void Bits(const char* key, double& bits) const { (*this)(key, bits); }
  template <typename T>
  void IfAny(const char* key, std::vector<T>& list) const {
    list.clear();
    if (json.contains(key)) Fill(json.at(key), key, list);
  }
  template <typename T>
  void IfNamed(const char* key, std::optional<T>& value, std::string_view name(T),
               T from(std::string_view)) const {
    value.reset();
    if (json.contains(key)) Named(key, value.emplace(), name, from);
  }
  template <typename T>
  void Named(const char* key, T& value, std::string_view(T), T from(std::string_view)) const {
    try {
      value = from(JsonString(json, key, what));
    } catch (const UsageError& unknown) {  // the name comes from a file, not from a user
      throw InputError(fmt::format("{}: {}", what, unknown.what()));
    }
  }
  void Record(const char* key, auto fields) const {
    fields(Reader{JsonMember(json, key, what), what});
  }
  template <typename T>
  void List(const char* key, std::vector<T>& list, auto fields) const {
    const Json& array = JsonMember(json, key, what);
    if (!array.is_array()) throw InputError(fmt::format("{}: {} is not an array", what, key));
    for (const Json& element : array) fields(Reader{element, what}, list.emplace_back());
  }

 private:
  template <typename T>
  void Fill(const Json& array, const char* key, std::vector<T>& list) const {
    const auto fail = [&] {
      throw InputError(fmt::format("{}: {} is not a list of numbers", what, key));
    };
    if (!array.is_array()) fail();
    for (const Json& value : array) {
      if constexpr (std::is_arithmetic_v<T>) {
        if (!value.is_number()) fail();
        list.push_back(value.get<T>());
      } else {
        Fill(value, key, list.emplace_back());
      }
    }
  }
};

// In the functions below, the record is const when it is written.
void KeyFields(auto at, auto& recipe) {
  at.Named("transform", recipe.kind, KeyTransformName, KeyTransformFromName);
  at("power_of_two", recipe.power_of_two);
  at("folded", recipe.folded);
  at("epsilon", recipe.epsilon);
  at("per_head", recipe.per_head);
  at("centred", recipe.centred);
  at.IfNotOne("mean_share", recipe.mean_share);
  at.IfTrue("feedback", recipe.feedback);
  at.Named("composition", recipe.composition, CompositionName, CompositionFromName);
}

void ValueFields(auto at, auto& recipe) {
  at.Named("target", recipe.target, ValueTargetName, ValueTargetFromName);
  at("per_head", recipe.per_head);
  at.Named("composition", recipe.composition, CompositionName, CompositionFromName);
}

void OptionFields(auto at, auto& option) {
  at.Bits("bits", option.bits);
  at("clip", option.clip);
  at("score", option.score);
  at("check", option.check);
  at("ratios", option.ratios);
  at("curve", option.curve);
  at.IfAny("head_bits", option.head_bits);
  at.IfAny("head_score", option.head_score);
  at.IfAny("head_check", option.head_check);
  at.IfAny("check_curve", option.check_curve);
  at.IfAny("in_windows", option.in_windows);
  at.IfAny("windows_curve", option.windows_curve);
  at.IfAny("next_token_kl", option.next_token_kl);
}

void WindowFields(auto at, auto& window) {
  at("sink_tokens", window.windows.sink);
  at("recent_tokens", window.windows.recent);
  at("rows", window.rows);
}

void ScoreFields(auto at, auto& score) {
  at("side", score.side);
  at("recipe", score.recipe);
  at("bits", score.bits);
  at("clip", score.clip);
  at("quant_group_size", score.quant_group_size);
  at.IfNamed("fitted_scales", score.fitted_scales, MetadataTypeName, MetadataTypeFromName);
  at("score", score.score);
  at("check", score.check);
}

void GuardFields(auto at, auto& choice) {
  at("k", choice.k_check);
  at("k_hadamard", choice.k_hadamard);
  at("k_fallback", choice.k_fallback);
  at("v", choice.v_check);
  at("v_hadamard", choice.v_hadamard);
  at("v_fallback", choice.v_fallback);
}

void StabilityFields(auto at, auto& s) {
  at("k_cost", s.k_cost);
  at("v_cost", s.v_cost);
  at("tokens", s.tokens);
  at("few_tokens", s.few_tokens);
  at("unstable", s.unstable);
}

// The members of every choice; position_dim and stability are handled elsewhere.
void ChoiceFields(auto at, auto& choice) {
  at.Record("keys", [&](auto of) { KeyFields(of, choice.keys); });
  at.Record("values", [&](auto of) { ValueFields(of, choice.values); });
  at("context", choice.context);
  at("text_length", choice.text_length);
  at("quant_group_size", choice.quant_group_size);
  at.IfNamed("fitted_scales", choice.fitted_scales, MetadataTypeName, MetadataTypeFromName);
  at.Bits("k_bits", choice.k_bits);
  at.Bits("v_bits", choice.v_bits);
  at("k_output_error", choice.k_output_error);
  at.List("k_options", choice.k_options, [](auto of, auto& option) { OptionFields(of, option); });
  at.List("v_options", choice.v_options, [](auto of, auto& option) { OptionFields(of, option); });
  at.List("windows", choice.windows, [](auto of, auto& window) { WindowFields(of, window); });
  at.Record("guard", [&](auto of) { GuardFields(of, choice); });
  at("refined", choice.refined);
  at("refined_kl", choice.refined_kl);
  at("unrefined_kl", choice.unrefined_kl);
  at("rows", choice.rows);
  at("rows_in_windows", choice.rows_in_windows);
  at.List("scores", choice.scores, [](auto of, auto& score) { ScoreFields(of, score); });
}

// Checks what users of options rely on. `num_windows` is 0 for values, which have no window scores.
void CheckOptions(const std::vector<SideOption>& options, double chosen_bits, size_t num_windows,
                  std::string_view key, std::string_view what) {
  const auto fail = [&](std::string_view why) {
    throw InputError(fmt::format("{}: {} {}", what, key, why));
  };
  double last = 0;
  for (const SideOption& option : options) {
    if (option.bits <= last || option.bits > 8) fail("should have ascending bits up to 8");
    last = option.bits;
    if (option.clip.empty()) fail("should have one clip ratio each");
    const std::vector<int> bits = option.Bits();
    if (option.head_bits.empty() && option.bits != std::floor(option.bits))
      fail(fmt::format("should have whole bits or head_bits, but has {}", option.bits));
    if (std::ranges::any_of(bits, [](int of_head) { return of_head < 1 || of_head > 8; }))
      fail("should have head_bits of 1 to 8");
    if (bits.size() > 1 && option.clip.size() > 1 && bits.size() != option.clip.size())
      fail("should have clip and head_bits for the same number of heads");
    const size_t ratios = option.ratios.size();
    const auto of_ratios = [&](size_t size) { return size == 0 || size == ratios; };
    if (option.curve.size() != ratios || !of_ratios(option.check_curve.size()) ||
        !of_ratios(option.windows_curve.size()))
      fail("should have a score for each clip ratio");
    const auto of_windows = [&](const std::vector<double>& scores) {
      return scores.size() == num_windows;
    };
    if (!of_windows(option.in_windows) || !std::ranges::all_of(option.windows_curve, of_windows))
      fail("should have a score for each of the windows");
  }
  if (std::ranges::find(options, chosen_bits, &SideOption::bits) == options.end())
    fail(fmt::format("has no element with the chosen {} bits", chosen_bits));
}

}  // namespace

Json ChoiceToJson(const AutoChoice& choice) {
  Json json;
  const Writer at{json};
  ChoiceFields(at, choice);
  json["keys"]["name"] = choice.keys.Name();
  json["values"]["name"] = choice.values.Name();
  if (choice.latent()) at("position_dim", choice.position_dim);
  if (choice.stability.measured)
    at.Record("stability", [&](auto of) { StabilityFields(of, choice.stability); });
  return json;
}

AutoChoice ChoiceFromJson(const Json& json, std::string_view what) {
  const Reader at{json, what};
  AutoChoice choice;
  choice.made = true;
  ChoiceFields(at, choice);
  if (json.contains("position_dim")) {
    at("position_dim", choice.position_dim);
    if (choice.position_dim < 1)
      throw InputError(fmt::format("{}: position_dim is {}", what, choice.position_dim));
  }
  if (json.contains("stability")) {
    choice.stability.measured = true;
    at.Record("stability", [&](auto of) { StabilityFields(of, choice.stability); });
  }
  CheckOptions(choice.k_options, choice.k_bits, choice.windows.size(), "k_options", what);
  CheckOptions(choice.v_options, choice.v_bits, 0, "v_options", what);
  if (choice.windows.empty()) throw InputError(fmt::format("{}: windows is empty", what));
  return choice;
}

}  // namespace oscar
