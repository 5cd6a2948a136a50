// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Layout of a layer file: /moments as in moments_file.h; /side/<name>; /arms, a row for each;
// /choice/<i> for every consumer, the headline first, with its choice as JSON text and its sides /k
// and /v, or the number of the choice that has the same; /choice/points of the headline, a row for
// each. Numbers stand in rows, not in attributes, which take HDF5 20 us each.
#include "calib/job/layer_file.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "calib/moments/moments_file.h"
#include "linalg/base/error.h"

namespace oscar {
namespace {

constexpr const char* kFormat = "oscar-layer";
constexpr int64_t kVersion = 7;

// The plain numbers of a side and of an arm in the order of their rows.
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
constexpr std::array<std::pair<const char*, SideResult LayerResult::*>, 4> kSides = {
    {{"k", &LayerResult::k},
     {"v", &LayerResult::v},
     {"k_shared", &LayerResult::k_shared},
     {"v_shared", &LayerResult::v_shared}}};

void WriteVector(Hdf5Writer& file, const std::string& name, const std::vector<double>& values) {
  if (!values.empty()) file.Write<double>(name, {static_cast<int64_t>(values.size())}, values);
}

std::vector<double> ReadVector(const Hdf5Reader& file, const std::string& name) {
  if (!file.Exists(name)) return {};
  return file.Read<double>(name, {-1});
}

void WriteSide(Hdf5Writer& file, const std::string& group, const SideResult& side) {
  std::vector<double> numbers;
  for (const auto number : kSideNumbers) numbers.push_back(side.*number);
  file.CreateGroup(group);
  WriteVector(file, group + "/numbers", numbers);
  file.Write<double>(group + "/rotation", {side.num_rotations, side.dim, side.dim}, side.rotation);
  file.Write<double>(group + "/eigenvalues", {side.num_rotations, side.dim}, side.eigenvalues);
  WriteVector(file, group + "/clip_error", side.clip_error);
  WriteVector(file, group + "/clip_threshold", side.clip_threshold);
}

SideResult ReadSide(const Hdf5Reader& file, const std::string& group) {
  SideResult side;
  const std::vector<double> numbers = file.Read<double>(group + "/numbers", {kSideNumbers.size()});
  for (size_t i = 0; i < numbers.size(); ++i) side.*kSideNumbers[i] = numbers[i];
  const Hdf5Shape& shape = file.dataset(group + "/eigenvalues").shape;
  if (shape.size() == 2) {
    side.num_rotations = shape[0];
    side.dim = shape[1];
  }
  side.rotation = file.Read<double>(group + "/rotation", {side.num_rotations, side.dim, side.dim});
  side.eigenvalues = file.Read<double>(group + "/eigenvalues", {side.num_rotations, side.dim});
  side.clip_error = ReadVector(file, group + "/clip_error");
  side.clip_threshold = ReadVector(file, group + "/clip_threshold");
  return side;
}

constexpr int64_t kArmRow = 2 + kArmNumbers.size();  // rows, rows_beyond, kArmNumbers

void AppendArm(const ArmResult& arm, std::vector<double>& row) {
  row.push_back(static_cast<double>(arm.rows));
  row.push_back(static_cast<double>(arm.rows_beyond));
  for (const auto number : kArmNumbers) row.push_back(arm.*number);
}

ArmResult ArmOf(const double* row, std::string name) {
  ArmResult arm;
  arm.name = std::move(name);
  arm.rows = static_cast<int64_t>(row[0]);
  arm.rows_beyond = static_cast<int64_t>(row[1]);
  for (size_t i = 0; i < kArmNumbers.size(); ++i) arm.*kArmNumbers[i] = row[2 + i];
  return arm;
}

std::string ChoiceGroup(size_t index) { return "/choice/" + std::to_string(index); }
constexpr const char* kArms = "/arms";
constexpr const char* kPoints = "/choice/points";
constexpr int64_t kPointRow = 4 + kArmRow;  // bits and ratio of k, of v; the arm

void WriteCacheSide(Hdf5Writer& file, const std::string& group, const CacheSide& side) {
  file.CreateGroup(group);
  file.SetAttribute(group, "num_rotations", side.num_rotations);
  file.SetAttribute(group, "dim", side.dim);
  WriteVector(file, group + "/rotation", side.rotation);
  WriteVector(file, group + "/query_rotation", side.query_rotation);
  WriteVector(file, group + "/pair_scale", side.pair_scale);
  WriteVector(file, group + "/mean", side.mean);
  WriteVector(file, group + "/feedback", side.feedback);
}

CacheSide ReadCacheSide(const Hdf5Reader& file, const std::string& group, int64_t num_kv_heads,
                        int64_t dim, std::string_view what) {
  CacheSide side{.num_rotations = file.IntAttribute(group, "num_rotations"),
                 .dim = file.IntAttribute(group, "dim"),
                 .rotation = ReadVector(file, group + "/rotation"),
                 .query_rotation = ReadVector(file, group + "/query_rotation"),
                 .pair_scale = ReadVector(file, group + "/pair_scale"),
                 .mean = ReadVector(file, group + "/mean"),
                 .feedback = ReadVector(file, group + "/feedback")};
  const auto has = [](const std::vector<double>& values, int64_t rows, int64_t columns) {
    return std::ssize(values) == rows * columns;
  };
  const auto may_have = [&](const std::vector<double>& values, int64_t rows, int64_t columns) {
    return values.empty() || has(values, rows, columns);
  };
  const int64_t n = side.num_rotations;
  if (side.dim != dim || (n != 1 && n != num_kv_heads) || !has(side.rotation, n * dim, dim) ||
      !may_have(side.query_rotation, n * dim, dim) ||
      !may_have(side.pair_scale, num_kv_heads, dim) || !may_have(side.mean, num_kv_heads, dim) ||
      !may_have(side.feedback, num_kv_heads * dim, dim)) {
    throw InputError(fmt::format("{}: {} does not fit {} KV heads of dimension {}", what, group,
                                 num_kv_heads, dim),
                     Remedy::kStartOver);
  }
  return side;
}

void WriteChoices(Hdf5Writer& file, const LayerResult& result) {
  if (!result.automatic.made) return;
  std::vector<const AutoChoice*> choices = {&result.automatic};
  for (const AutoChoice& other : result.other_choices) choices.push_back(&other);
  std::vector<const CacheSide*> keys, values;
  for (const AutoChoice* choice : choices) {
    keys.push_back(&choice->k);
    values.push_back(&choice->v);
  }
  for (size_t i = 0; i < choices.size(); ++i) {
    const std::string group = ChoiceGroup(i);
    const std::string json = ChoiceToJson(*choices[i]).dump();
    const std::vector<uint8_t> text(json.begin(), json.end());
    file.Write<uint8_t>(group + "/choice", {std::ssize(text)}, text);
    for (const auto& [name, sides] : {std::pair("k", &keys), std::pair("v", &values)}) {
      const size_t same = FirstEqual(*sides, i);
      file.SetAttribute(group, name + std::string("_of"), static_cast<int64_t>(same));
      if (same == i) WriteCacheSide(file, group + "/" + name, *(*sides)[i]);
    }
  }
  file.SetAttribute("/choice", "choices", std::ssize(choices));
  std::vector<double> points;
  for (const auto& [point, arm] : result.auto_arms) {
    points.insert(points.end(), {point.k_bits, point.v_bits, point.k_clip, point.v_clip});
    AppendArm(arm, points);
  }
  if (!points.empty())
    file.Write<double>(kPoints, {std::ssize(result.auto_arms), kPointRow}, points);
}

std::vector<AutoArm> ReadPoints(const Hdf5Reader& file) {
  std::vector<AutoArm> points;
  if (!file.Exists(kPoints)) return points;
  const std::vector<double> rows = file.Read<double>(kPoints, {-1, kPointRow});
  for (size_t at = 0; at < rows.size(); at += kPointRow) {
    const double* const row = rows.data() + at;
    points.push_back({{.k_bits = row[0], .v_bits = row[1], .k_clip = row[2], .v_clip = row[3]},
                      ArmOf(row + 4, "auto")});
  }
  return points;
}

void ReadChoices(const Hdf5Reader& file, std::string_view what, LayerResult& result) {
  if (!file.Exists("/choice")) return;
  const LayerMoments& m = result.moments;
  std::vector<AutoChoice> choices;
  const int64_t count = file.IntAttribute("/choice", "choices");
  for (int64_t i = 0; i < count; ++i) {
    const std::string group = ChoiceGroup(static_cast<size_t>(i));
    const std::vector<uint8_t> text = file.Read<uint8_t>(group + "/choice", {-1});
    AutoChoice choice =
        ChoiceFromJson(ParseStrictJson(std::string(text.begin(), text.end()), what), what);
    const auto read = [&](const char* name, int64_t dim, CacheSide AutoChoice::*side) {
      const int64_t same = file.IntAttribute(group, name + std::string("_of"));
      if (same < 0 || same > i) {
        throw InputError(fmt::format("{}: {} has the {} of choice {}", what, group, name, same),
                         Remedy::kStartOver);
      }
      choice.*side = same < i ? choices[static_cast<size_t>(same)].*side
                              : ReadCacheSide(file, group + "/" + name, m.num_kv_heads, dim, what);
    };
    read("k", m.head_dim, &AutoChoice::k);
    read("v", m.v_head_dim, &AutoChoice::v);
    choices.push_back(std::move(choice));
  }
  if (choices.empty()) return;
  result.automatic = std::move(choices.front());
  result.other_choices.assign(std::make_move_iterator(choices.begin() + 1),
                              std::make_move_iterator(choices.end()));
  result.auto_arms = ReadPoints(file);
}

}  // namespace

void WriteLayerFile(const std::filesystem::path& path, const LayerResult& result) {
  Hdf5Writer file(path);
  file.SetAttribute("/", "format", kFormat);
  file.SetAttribute("/", "format_version", kVersion);
  file.SetAttribute("/", "layer_id", static_cast<int64_t>(result.moments.layer_id));
  WriteMoments(file, "/moments", result.moments);
  WriteVector(file, "/clip_candidates", result.clip_candidates);
  for (const auto& [name, side] : kSides)
    WriteSide(file, std::string("/side/") + name, result.*side);
  std::vector<std::string> names;
  std::vector<double> arms;
  for (const ArmResult& arm : result.arms) {
    names.push_back(arm.name);
    AppendArm(arm, arms);
  }
  if (!names.empty()) {
    file.Write<double>(kArms, {std::ssize(names), kArmRow}, arms);
    file.SetAttribute(kArms, "names", std::span<const std::string>(names));
  }
  WriteChoices(file, result);
  file.Commit();
}

LayerResult ReadLayerFile(const std::filesystem::path& path, MomentsPart part) {
  const Hdf5Reader file(path);
  if (file.StringAttribute("/", "format") != kFormat ||
      file.IntAttribute("/", "format_version") != kVersion) {
    throw InputError(path.string() + ": not a layer file of this version of oscar",
                     Remedy::kStartOver);
  }
  LayerResult result;
  result.moments =
      ReadMoments(file, "/moments", static_cast<int>(file.IntAttribute("/", "layer_id")), part);
  result.clip_candidates = ReadVector(file, "/clip_candidates");
  for (const auto& [name, side] : kSides)
    result.*side = ReadSide(file, std::string("/side/") + name);
  if (file.Exists(kArms)) {
    const std::vector<std::string> names = file.StringListAttribute(kArms, "names");
    const std::vector<double> rows = file.Read<double>(kArms, {std::ssize(names), kArmRow});
    for (size_t i = 0; i < names.size(); ++i)
      result.arms.push_back(ArmOf(rows.data() + i * kArmRow, names[i]));
  }
  ReadChoices(file, path.string(), result);
  return result;
}

}  // namespace oscar
