// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Layout of a layer file:
//
// clang-format off
//     metadata                  format = "oscar-layer", format_version, layer.<id> as in moments.safetensors, and facts:
//                               JSON with layer_id, a row of numbers per side, arm and point, and all choices, starting
//                               with the headline's; a choice has the indices of the first ones with the same k and v
//     layer.<id>.<sum>          as in moments.safetensors
//     clip_candidates           F64, like all lists below
//     side.<side>.<list>        a member of SideResult
//     choice.<i>.<side>.<list>  a member of CacheSide
// clang-format on
#include "calib/job/layer_file.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr const char* kFormat = "oscar-layer";
constexpr const char* kVersion = "8";

using Doubles = std::vector<double>;
template <typename Owner, typename Member>
using Named = std::pair<const char*, Member Owner::*>;

// Plain numbers of a side and of an arm, in the order in which they are stored.
constexpr std::array<double SideResult::*, 6> kSideNumbers = {
    &SideResult::clip_ratio,
    &SideResult::orthogonality,
    &SideResult::float32_orthogonality,
    &SideResult::eigen_residual,
    &SideResult::min_relative_gap,
    &SideResult::importance_max_over_mean,
};
constexpr std::array<double ArmResult::*, 7> kArmNumbers = {
    &ArmResult::kl_mean,
    &ArmResult::kl_mean_beyond,
    &ArmResult::kl_max,
    &ArmResult::output_rel_error,
    &ArmResult::output_rel_error_beyond,
    &ArmResult::kl_mean_no_windows,
    &ArmResult::output_rel_error_no_windows,
};
constexpr std::array<Named<LayerResult, SideResult>, 4> kSides = {
    {{"k", &LayerResult::k},
     {"v", &LayerResult::v},
     {"k_shared", &LayerResult::k_shared},
     {"v_shared", &LayerResult::v_shared}}};
constexpr std::array<Named<SideResult, Doubles>, 4> kSideLists = {
    {{"rotation", &SideResult::rotation},
     {"eigenvalues", &SideResult::eigenvalues},
     {"clip_error", &SideResult::clip_error},
     {"clip_threshold", &SideResult::clip_threshold}}};
constexpr std::array<Named<AutoChoice, CacheSide>, 2> kChoiceSides = {
    {{"k", &AutoChoice::k}, {"v", &AutoChoice::v}}};
constexpr std::array<Named<CacheSide, Doubles>, 5> kCacheLists = {
    {{"rotation", &CacheSide::rotation},
     {"query_rotation", &CacheSide::query_rotation},
     {"pair_scale", &CacheSide::pair_scale},
     {"mean", &CacheSide::mean},
     {"feedback", &CacheSide::feedback}}};

// Visits every list of a result except those of its choices, for writing and for reading.
template <typename Result, typename Visit>
void ForEachList(Result& result, const Visit& visit) {
  visit("clip_candidates", result.clip_candidates);
  for (const auto& [name, side] : kSides)
    for (const auto& [list, values] : kSideLists)
      visit(fmt::format("side.{}.{}", name, list), result.*side.*values);
}

// Visits every list on one side of a choice.
template <typename Side, typename Visit>
void ForEachList(size_t choice, const char* name, Side& side, const Visit& visit) {
  for (const auto& [list, values] : kCacheLists)
    visit(fmt::format("choice.{}.{}.{}", choice, name, list), side.*values);
}

Json SideToJson(const SideResult& side) {
  Json row = {side.num_rotations, side.dim};
  for (const auto number : kSideNumbers) row.push_back(side.*number);
  return row;
}

void FromJson(const Json& row, SideResult& side) {
  side.num_rotations = row.at(0);
  side.dim = row.at(1);
  for (size_t i = 0; i < kSideNumbers.size(); ++i) side.*kSideNumbers[i] = row.at(2 + i);
}

Json ArmToJson(const ArmResult& arm) {
  Json row = {arm.name, arm.rows, arm.rows_beyond};
  for (const auto number : kArmNumbers) row.push_back(arm.*number);
  return row;
}

ArmResult ArmFromJson(const Json& row) {
  ArmResult arm{.name = row.at(0), .rows = row.at(1), .rows_beyond = row.at(2)};
  for (size_t i = 0; i < kArmNumbers.size(); ++i) arm.*kArmNumbers[i] = row.at(3 + i);
  return arm;
}

// Whether the lists of a side have the lengths that the layer requires.
bool Fits(const CacheSide& side, int64_t num_kv_heads, int64_t dim) {
  const int64_t n = side.num_rotations;
  const auto has = [&](const Doubles& values, int64_t rows) {
    return values.empty() || std::ssize(values) == rows * dim;
  };
  return side.dim == dim && (n == 1 || n == num_kv_heads) && !side.rotation.empty() &&
         has(side.rotation, n * dim) && has(side.query_rotation, n * dim) &&
         has(side.pair_scale, num_kv_heads) && has(side.mean, num_kv_heads) &&
         has(side.feedback, num_kv_heads * dim);
}

void ReadFacts(const Json& facts, const SafetensorsFile& file, LayerResult& result) {
  const std::string what = file.path().string();
  const auto read = [&](const std::string& name, Doubles& values) {
    if (!file.tensors().contains(name)) return;
    const TensorView view = file.tensor(name);
    values.resize(view.data.size() / sizeof(double));
    std::memcpy(values.data(), view.data.data(), values.size() * sizeof(double));
  };
  ForEachList(result, read);
  const LayerMoments& m = result.moments;
  const auto check = [&](const std::string& name, const CacheSide& side, int64_t dim) {
    if (Fits(side, m.num_kv_heads, dim)) return;
    throw InputError(fmt::format("{}: {} does not match {} KV heads of dimension {}", what, name,
                                 m.num_kv_heads, dim),
                     Remedy::kStartOver);
  };
  for (const auto& [name, side] : kSides) {
    FromJson(facts.at("sides").at(name), result.*side);
    check(fmt::format("side.{}", name), result.*side, name[0] == 'k' ? m.head_dim : m.v_head_dim);
  }
  for (const Json& row : facts.at("arms")) result.arms.push_back(ArmFromJson(row));
  for (const Json& row : facts.at("points")) {
    const Json& at = row.at(0);
    result.auto_arms.push_back(
        {{.k_bits = at.at(0), .v_bits = at.at(1), .k_clip = at.at(2), .v_clip = at.at(3)},
         ArmFromJson(row.at(1))});
  }
  std::vector<AutoChoice> choices;
  for (const Json& row : facts.at("choices")) {
    const size_t index = choices.size();
    AutoChoice& choice = choices.emplace_back(ChoiceFromJson(row.at("choice"), what));
    for (const auto& [name, side] : kChoiceSides) {
      const auto same = row.at(name).at("of").get<size_t>();
      CacheSide& own = choice.*side;
      if (same < index) own = choices[same].*side;
      own.num_rotations = row.at(name).at("num_rotations");
      own.dim = row.at(name).at("dim");
      ForEachList(index, name, own, read);
      check(fmt::format("choice.{}.{}", index, name), own,
            name[0] == 'k' ? m.head_dim : m.v_head_dim);
    }
  }
  if (choices.empty()) return;
  result.automatic = std::move(choices.front());
  result.other_choices.assign(std::make_move_iterator(choices.begin() + 1),
                              std::make_move_iterator(choices.end()));
}

}  // namespace

void WriteLayerFile(const std::filesystem::path& path, const LayerResult& result) {
  std::vector<SafetensorsWriter::Declaration> declared;
  std::vector<const Doubles*> lists;
  const auto add_shaped = [&](const std::string& name, const std::vector<int64_t>& shape,
                              const Doubles& values) {
    declared.push_back({name, DType::kF64, shape});
    lists.push_back(&values);
  };
  const auto add = [&](const std::string& name, const Doubles& values) {
    if (!values.empty()) add_shaped(name, {std::ssize(values)}, values);
  };
  ForEachSum(result.moments, add_shaped);
  ForEachList(result, add);
  const int layer_id = result.moments.layer_id;
  Json facts = {{"layer_id", layer_id},
                {"sides", Json::object()},
                {"arms", Json::array()},
                {"points", Json::array()},
                {"choices", Json::array()}};
  for (const auto& [name, side] : kSides) facts["sides"][name] = SideToJson(result.*side);
  for (const ArmResult& arm : result.arms) facts["arms"].push_back(ArmToJson(arm));
  for (const auto& [point, arm] : result.auto_arms) {
    facts["points"].push_back(
        {{point.k_bits, point.v_bits, point.k_clip, point.v_clip}, ArmToJson(arm)});
  }
  std::vector<const AutoChoice*> choices;
  if (result.automatic.made) choices.push_back(&result.automatic);
  for (const AutoChoice& other : result.other_choices) choices.push_back(&other);
  for (size_t i = 0; i < choices.size(); ++i) {
    Json& row = facts["choices"].emplace_back(Json{{"choice", ChoiceToJson(*choices[i])}});
    for (const auto& [name, side] : kChoiceSides) {
      std::vector<const CacheSide*> sides;
      for (const AutoChoice* choice : choices) sides.push_back(&(choice->*side));
      const size_t same = FirstEqual(sides, i);
      row[name] = {
          {"of", same}, {"num_rotations", sides[i]->num_rotations}, {"dim", sides[i]->dim}};
      if (same == i) ForEachList(i, name, *sides[i], add);
    }
  }
  SafetensorsWriter file(path, declared,
                         {{"format", kFormat},
                          {"format_version", kVersion},
                          {MomentsName(layer_id), MomentsFacts(result.moments)},
                          {"facts", facts.dump()}});
  for (size_t i = 0; i < lists.size(); ++i)
    file.Write(declared[i].name, std::as_bytes(std::span(*lists[i])));
  file.Commit();
}

LayerResult ReadLayerFile(const std::filesystem::path& path, MomentsPart part) {
  const SafetensorsFile file = SafetensorsFile::Open(path);
  const auto said = [&](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (said("format") != kFormat || said("format_version") != kVersion) {
    throw InputError(path.string() + ": not a layer file of this version of oscar",
                     Remedy::kStartOver);
  }
  LayerResult result;
  const Json facts = ParseStrictJson(said("facts"), path.string());
  try {
    result.moments = ReadMoments(file, facts.at("layer_id"), part);
    ReadFacts(facts, file, result);
  } catch (const Json::exception& error) {
    throw InputError(fmt::format("{}: facts: {}", path.string(), error.what()), Remedy::kStartOver);
  }
  return result;
}

}  // namespace oscar
