// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// The JSON is part of report.json (export/report/schema.md).
#include "calib/choose/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "capture/files/quote.h"
#include "linalg/check.h"
#include "linalg/error.h"

namespace oscar {
namespace {

template <typename Options>
auto& OptionOf(Options& options, double bits) {
  const auto found =
      std::ranges::find_if(options, [&](const SideOption& option) { return option.bits == bits; });
  OSCAR_CHECK(found != options.end());
  return *found;
}

Json ToJson(const KeyRecipe& recipe) {
  return {{"name", recipe.Name()},
          {"transform", KeyTransformName(recipe.kind)},
          {"power_of_two", recipe.power_of_two},
          {"folded", recipe.folded},
          {"epsilon", recipe.epsilon},
          {"per_head", recipe.per_head},
          {"centred", recipe.centred},
          {"composition", CompositionName(recipe.composition)}};
}

Json ToJson(const ValueRecipe& recipe) {
  return {{"name", recipe.Name()},
          {"target", ValueTargetName(recipe.target)},
          {"per_head", recipe.per_head},
          {"composition", CompositionName(recipe.composition)}};
}

// Whole numbers as such.
Json BitsToJson(double bits) {
  if (bits == std::floor(bits)) return static_cast<int64_t>(bits);
  return bits;
}

Json ToJson(const SideOption& option) {
  Json json = {{"bits", BitsToJson(option.bits)}, {"clip", option.clip},
               {"score", option.score},           {"check", option.check},
               {"ratios", option.ratios},         {"curve", option.curve}};
  if (!option.head_bits.empty()) json["head_bits"] = option.head_bits;
  if (!option.head_score.empty()) json["head_score"] = option.head_score;
  if (!option.head_check.empty()) json["head_check"] = option.head_check;
  if (!option.check_curve.empty()) json["check_curve"] = option.check_curve;
  if (!option.in_windows.empty()) json["in_windows"] = option.in_windows;
  if (!option.windows_curve.empty()) json["windows_curve"] = option.windows_curve;
  return json;
}

// Members of an object, with errors that name it.
class Reader {
 public:
  Reader(const Json& json, std::string_view what) : json_(json), what_(what) {}

  Reader At(const char* key) const { return {JsonMember(json_, key, what_), what_}; }
  double Number(const char* key) const { return JsonDouble(json_, key, what_); }
  int64_t Int(const char* key) const { return JsonInt(json_, key, what_); }
  bool Bool(const char* key) const {
    JsonMember(json_, key, what_);
    return JsonBool(json_, key, false, what_);
  }
  std::string Text(const char* key) const { return JsonString(json_, key, what_); }
  std::vector<double> Numbers(const char* key) const {
    return json_.contains(key) ? NumbersOf(Array(key), key) : std::vector<double>();
  }
  std::vector<std::vector<double>> NumberLists(const char* key) const {
    std::vector<std::vector<double>> lists;
    if (!json_.contains(key)) return lists;
    for (const Json& list : Array(key)) lists.push_back(NumbersOf(list, key));
    return lists;
  }
  const Json& Array(const char* key) const {
    const Json& array = JsonMember(json_, key, what_);
    if (!array.is_array()) throw InputError(fmt::format("{}: {} is not an array", what_, key));
    return array;
  }
  template <typename T, typename Read>
  std::vector<T> List(const char* key, Read read) const {
    std::vector<T> list;
    for (const Json& element : Array(key)) list.push_back(read(Reader(element, what_)));
    return list;
  }

 private:
  std::vector<double> NumbersOf(const Json& list, const char* key) const {
    std::vector<double> numbers;
    const auto fail = [&] {
      throw InputError(fmt::format("{}: {} is no list of numbers", what_, key));
    };
    if (!list.is_array()) fail();
    for (const Json& value : list) {
      if (!value.is_number()) fail();
      numbers.push_back(value.get<double>());
    }
    return numbers;
  }

  const Json& json_;
  std::string_view what_;
};

KeyRecipe ReadKeyRecipe(const Reader& r) {
  return {.kind = KeyTransformFromName(r.Text("transform")),
          .power_of_two = r.Bool("power_of_two"),
          .folded = r.Bool("folded"),
          .epsilon = r.Number("epsilon"),
          .per_head = r.Bool("per_head"),
          .centred = r.Bool("centred"),
          .composition = CompositionFromName(r.Text("composition"))};
}

ValueRecipe ReadValueRecipe(const Reader& r) {
  return {.target = ValueTargetFromName(r.Text("target")),
          .per_head = r.Bool("per_head"),
          .composition = CompositionFromName(r.Text("composition"))};
}

SideOption ReadOption(const Reader& r) {
  SideOption option = {.bits = r.Number("bits"),
                       .clip = r.Numbers("clip"),
                       .score = r.Number("score"),
                       .check = r.Number("check"),
                       .head_score = r.Numbers("head_score"),
                       .head_check = r.Numbers("head_check"),
                       .ratios = r.Numbers("ratios"),
                       .curve = r.Numbers("curve"),
                       .check_curve = r.Numbers("check_curve"),
                       .in_windows = r.Numbers("in_windows")};
  for (const double bits : r.Numbers("head_bits"))
    option.head_bits.push_back(static_cast<int>(bits));
  option.windows_curve = r.NumberLists("windows_curve");
  return option;
}

// What the code that uses options relies on; `num_windows` 0: of values, which have no such scores.
void CheckOptions(const std::vector<SideOption>& options, double chosen_bits, size_t num_windows,
                  std::string_view key, std::string_view what) {
  const auto fail = [&](std::string_view why) {
    throw InputError(fmt::format("{}: {} {}", what, key, why));
  };
  double last = 0;
  for (const SideOption& option : options) {
    if (option.bits <= last || option.bits > 8) fail("should have ascending bits up to 8");
    last = option.bits;
    if (option.clip.empty()) fail("should have a clip ratio each");
    const std::vector<int> bits = option.Bits();
    if (option.head_bits.empty() && option.bits != std::floor(option.bits))
      fail(fmt::format("should have whole bits, or head_bits, where it has {}", option.bits));
    if (std::ranges::any_of(bits, [](int of_head) { return of_head < 1 || of_head > 8; }))
      fail("should have head_bits of 1 to 8");
    if (bits.size() > 1 && option.clip.size() > 1 && bits.size() != option.clip.size())
      fail("should have clip and head_bits of as many heads");
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
    fail(fmt::format("has none with the {} bits that were chosen", chosen_bits));
}

}  // namespace

std::vector<int> SideOption::Bits() const {
  return head_bits.empty() ? std::vector<int>{static_cast<int>(bits)} : head_bits;
}

std::string ValueRecipe::Name() const {
  return fmt::format("{} {} {}", ValueTargetName(target), per_head ? "per_head" : "shared",
                     CompositionName(composition));
}

ValueRecipe ValueRecipe::FromName(std::string_view name) {
  ValueRecipe recipe;
  std::string target, grouping, composition;
  std::istringstream{std::string(name)} >> target >> grouping >> composition;
  try {
    recipe = {ValueTargetFromName(target), grouping == "per_head",
              CompositionFromName(composition)};
  } catch (const UsageError&) {  // said below
  }
  if (recipe.Name() == name) return recipe;
  throw InputError(fmt::format("{} names no recipe of values", Quoted(name)));
}

const SideOption& AutoChoice::k_option() const { return OptionOf(k_options, k_bits); }
const SideOption& AutoChoice::v_option() const { return OptionOf(v_options, v_bits); }
SideOption& AutoChoice::k_option() { return OptionOf(k_options, k_bits); }
SideOption& AutoChoice::v_option() { return OptionOf(v_options, v_bits); }

void SideOption::SetRatio(double ratio) {
  const auto found = std::ranges::find(ratios, ratio);
  OSCAR_CHECK(found != ratios.end());
  const auto at = static_cast<size_t>(found - ratios.begin());
  clip = {ratio};
  head_score = head_check = {};  // curves are means
  score = curve.at(at);
  if (!check_curve.empty()) check = check_curve.at(at);
  if (!windows_curve.empty()) in_windows = windows_curve.at(at);
}

size_t FirstEqual(const std::vector<const AutoSide*>& sides, size_t index) {
  size_t first = 0;
  while (*sides[first] != *sides[index]) ++first;
  return first;
}

Json ChoiceToJson(const AutoChoice& choice) {
  Json json = {{"keys", ToJson(choice.keys)},
               {"values", ToJson(choice.values)},
               {"context", choice.context},
               {"text_length", choice.text_length},
               {"quant_group_size", choice.quant_group_size},
               {"k_bits", BitsToJson(choice.k_bits)},
               {"v_bits", BitsToJson(choice.v_bits)},
               {"k_output_error", choice.k_output_error},
               {"k_options", Json::array()},
               {"v_options", Json::array()},
               {"windows", Json::array()},
               {"guard",
                {{"k", choice.k_check},
                 {"k_hadamard", choice.k_hadamard},
                 {"k_fallback", choice.k_fallback},
                 {"v", choice.v_check},
                 {"v_hadamard", choice.v_hadamard},
                 {"v_fallback", choice.v_fallback}}},
               {"refined", choice.refined},
               {"refined_kl", choice.refined_kl},
               {"unrefined_kl", choice.unrefined_kl},
               {"rows", choice.rows},
               {"rows_in_windows", choice.rows_in_windows},
               {"scores", Json::array()}};
  for (const SideOption& option : choice.k_options) json["k_options"].push_back(ToJson(option));
  for (const SideOption& option : choice.v_options) json["v_options"].push_back(ToJson(option));
  for (const WindowPrice& window : choice.windows) {
    json["windows"].push_back({{"sink_tokens", window.windows.sink},
                               {"recent_tokens", window.windows.recent},
                               {"rows", window.rows}});
  }
  for (const CandidateScore& score : choice.scores) {
    json["scores"].push_back({{"side", score.side},
                              {"recipe", score.recipe},
                              {"bits", score.bits},
                              {"clip", score.clip},
                              {"quant_group_size", score.quant_group_size},
                              {"score", score.score},
                              {"check", score.check}});
  }
  if (choice.latent()) json["position_dim"] = choice.position_dim;
  if (choice.stability.measured) {
    const Stability& s = choice.stability;
    json["stability"] = {
        {"k_cost", s.k_cost},   {"v_cost", s.v_cost},         {"k_angle", s.k_angle},
        {"v_angle", s.v_angle}, {"k_kept", s.k_kept},         {"v_kept", s.v_kept},
        {"tokens", s.tokens},   {"few_tokens", s.few_tokens}, {"unstable", s.unstable}};
  }
  return json;
}

AutoChoice ChoiceFromJson(const Json& json, std::string_view what) {
  const Reader r(json, what);
  AutoChoice choice;
  choice.made = true;
  try {
    choice.keys = ReadKeyRecipe(r.At("keys"));
    choice.values = ReadValueRecipe(r.At("values"));
  } catch (const UsageError& unknown) {  // a name that nobody typed
    throw InputError(fmt::format("{}: {}", what, unknown.what()));
  }
  choice.context = r.Int("context");
  choice.text_length = r.Int("text_length");
  choice.quant_group_size = r.Int("quant_group_size");
  choice.k_bits = r.Number("k_bits");
  choice.v_bits = r.Number("v_bits");
  choice.k_output_error = r.Number("k_output_error");
  choice.k_options = r.List<SideOption>("k_options", ReadOption);
  choice.v_options = r.List<SideOption>("v_options", ReadOption);
  choice.windows = r.List<WindowPrice>("windows", [](const Reader& w) {
    return WindowPrice{{w.Int("sink_tokens"), w.Int("recent_tokens")}, w.Int("rows")};
  });
  const Reader guard = r.At("guard");
  choice.k_check = guard.Number("k");
  choice.k_hadamard = guard.Number("k_hadamard");
  choice.k_fallback = guard.Text("k_fallback");
  choice.v_check = guard.Number("v");
  choice.v_hadamard = guard.Number("v_hadamard");
  choice.v_fallback = guard.Text("v_fallback");
  choice.refined = r.Bool("refined");
  choice.refined_kl = r.Number("refined_kl");
  choice.unrefined_kl = r.Number("unrefined_kl");
  choice.rows = r.Int("rows");
  choice.rows_in_windows = r.Bool("rows_in_windows");
  if (json.contains("position_dim")) {
    choice.position_dim = r.Int("position_dim");
    if (choice.position_dim < 1)
      throw InputError(fmt::format("{}: position_dim is {}", what, choice.position_dim));
  }
  choice.scores = r.List<CandidateScore>("scores", [](const Reader& s) {
    return CandidateScore{
        s.Text("side"),   s.Text("recipe"),          static_cast<int>(s.Int("bits")),
        s.Number("clip"), s.Int("quant_group_size"), s.Number("score"),
        s.Number("check")};
  });
  if (json.contains("stability")) {
    const Reader s = r.At("stability");
    choice.stability = {.measured = true,
                        .k_cost = s.Number("k_cost"),
                        .v_cost = s.Number("v_cost"),
                        .k_angle = s.Number("k_angle"),
                        .v_angle = s.Number("v_angle"),
                        .k_kept = s.Number("k_kept"),
                        .v_kept = s.Number("v_kept"),
                        .tokens = s.Int("tokens"),
                        .few_tokens = s.Bool("few_tokens"),
                        .unstable = s.Bool("unstable")};
  }
  CheckOptions(choice.k_options, choice.k_bits, choice.windows.size(), "k_options", what);
  CheckOptions(choice.v_options, choice.v_bits, 0, "v_options", what);
  if (choice.windows.empty()) throw InputError(fmt::format("{}: windows is empty", what));
  return choice;
}

}  // namespace oscar
