// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "capture/model/spec/rope_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "capture/files/quote.h"
#include "capture/files/strict_json.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

template <typename T, size_t n>
using Names = std::array<std::pair<std::string_view, T>, n>;

constexpr Names<RopeKind, 8> kRopeKinds = {{{"default", RopeKind::kDefault},
                                            {"linear", RopeKind::kLinear},
                                            {"llama3", RopeKind::kLlama3},
                                            {"dynamic", RopeKind::kDynamic},
                                            {"yarn", RopeKind::kYarn},
                                            {"longrope", RopeKind::kLongRope},
                                            {"proportional", RopeKind::kProportional},
                                            {"none", RopeKind::kNone}}};
constexpr Names<RopeLayout, 2> kRopeLayouts = {
    {{"half", RopeLayout::kHalf}, {"interleaved", RopeLayout::kInterleaved}}};

template <typename T, size_t n>
std::string NameOf(const Names<T, n>& names, T value) {
  return std::string(
      std::ranges::find(names, value, &std::pair<std::string_view, T>::second)->first);
}

template <typename T, size_t n>
T ByName(const Names<T, n>& names, const Json& json, const char* key, std::string_view what) {
  const std::string name = JsonString(json, key, what);
  for (const auto& [known, value] : names) {
    if (known == name) return value;
  }
  throw InputError(fmt::format("{}: {} {} is unknown", what, key, Quoted(name)));
}

std::vector<double> Factors(const Json& json, const char* key, std::string_view what) {
  std::vector<double> factors;
  for (const Json& factor : JsonArray(json, key, what)) {
    if (!factor.is_number()) throw InputError(fmt::format("{}: {} contains no numbers", what, key));
    factors.push_back(factor.get<double>());
  }
  return factors;
}

void Check(const RopeSpec& rope, int64_t head_dim, std::string_view what) {
  const auto fits = [&](const std::vector<double>& factors) {
    return rope.kind != RopeKind::kLongRope || std::ssize(factors) == rope.rotary_dim / 2;
  };
  if (rope.first_position < 0 || rope.rotary_dim < 0 || rope.rotary_dim > head_dim ||
      rope.rotary_dim % 2 != 0 || !fits(rope.short_factor) || !fits(rope.long_factor)) {
    throw InputError(fmt::format(
        "{}: {} rotary dimensions with {} and {} pair factors do not match head dimension {}", what,
        rope.rotary_dim, rope.short_factor.size(), rope.long_factor.size(), head_dim));
  }
  const auto is_positive = [](double value) { return value > 0; };
  if (!is_positive(rope.theta) || !is_positive(rope.factor) ||
      !is_positive(rope.attention_factor) || !std::ranges::all_of(rope.short_factor, is_positive) ||
      !std::ranges::all_of(rope.long_factor, is_positive)) {
    throw InputError(fmt::format(
        "{}: theta {}, factor {}, attention_factor {} and pair factors must all be above 0", what,
        rope.theta, rope.factor, rope.attention_factor));
  }
}

}  // namespace

std::string RopeToText(const RopeSpec& rope) {
  Json json{{"kind", NameOf(kRopeKinds, rope.kind)},
            {"theta", rope.theta},
            {"factor", rope.factor},
            {"low_freq_factor", rope.low_freq_factor},
            {"high_freq_factor", rope.high_freq_factor},
            {"original_max_positions", rope.original_max_positions},
            {"rotary_dim", rope.rotary_dim},
            {"layout", NameOf(kRopeLayouts, rope.layout)},
            {"attention_factor", rope.attention_factor},
            {"beta_fast", rope.beta_fast},
            {"beta_slow", rope.beta_slow},
            {"truncate", rope.truncate},
            {"turning_pairs", rope.turning_pairs},
            {"short_factor", rope.short_factor},
            {"long_factor", rope.long_factor}};
  if (rope.first_position != 0) json["first_position"] = rope.first_position;
  return json.dump();
}

RopeSpec RopeFromText(std::string_view text, int64_t head_dim, std::string_view what) {
  const Json json = ParseStrictJson(text, what);
  const auto number = [&](const char* key) { return JsonDouble(json, key, what); };
  const auto count = [&](const char* key) { return JsonInt(json, key, what); };
  RopeSpec rope;
  rope.kind = ByName(kRopeKinds, json, "kind", what);
  rope.theta = number("theta");
  rope.factor = number("factor");
  rope.low_freq_factor = number("low_freq_factor");
  rope.high_freq_factor = number("high_freq_factor");
  rope.original_max_positions = count("original_max_positions");
  rope.rotary_dim = count("rotary_dim");
  rope.layout = ByName(kRopeLayouts, json, "layout", what);
  rope.attention_factor = number("attention_factor");
  rope.beta_fast = number("beta_fast");
  rope.beta_slow = number("beta_slow");
  rope.truncate = JsonBool(json, "truncate", true, what);
  rope.turning_pairs = count("turning_pairs");
  if (json.contains("first_position")) rope.first_position = count("first_position");
  rope.short_factor = Factors(json, "short_factor", what);
  rope.long_factor = Factors(json, "long_factor", what);
  Check(rope, head_dim, what);
  return rope;
}

}  // namespace oscar
