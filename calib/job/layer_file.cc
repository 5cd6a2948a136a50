// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Layout of a layer file: /moments as in moments_file.h; /side/<name>, /arm/<name>; /choice/<i> for
// every consumer, the headline first, with its choice as JSON text and its sides /k and /v, or the
// number of the choice that has the same; /choice/point/<i> of the headline.
#include "calib/job/layer_file.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "calib/moments/moments_file.h"
#include "linalg/error.h"

namespace oscar {
namespace {

constexpr const char* kFormat = "oscar-layer";
constexpr int64_t kVersion = 5;

// The plain numbers of a side and of an arm, by name: one table serves writing and reading.
constexpr std::array<std::pair<const char*, double SideResult::*>, 6> kSideNumbers = {{
    {"clip_ratio", &SideResult::clip_ratio},
    {"orthogonality", &SideResult::orthogonality},
    {"float32_orthogonality", &SideResult::float32_orthogonality},
    {"eigen_residual", &SideResult::eigen_residual},
    {"min_relative_gap", &SideResult::min_relative_gap},
    {"importance_max_over_mean", &SideResult::importance_max_over_mean},
}};
constexpr std::array<std::pair<const char*, double ArmResult::*>, 7> kArmNumbers = {{
    {"kl_mean", &ArmResult::kl_mean},
    {"kl_mean_beyond", &ArmResult::kl_mean_beyond},
    {"kl_max", &ArmResult::kl_max},
    {"output_rel_error", &ArmResult::output_rel_error},
    {"output_rel_error_beyond", &ArmResult::output_rel_error_beyond},
    {"kl_mean_no_windows", &ArmResult::kl_mean_no_windows},
    {"output_rel_error_no_windows", &ArmResult::output_rel_error_no_windows},
}};
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
  file.CreateGroup(group);
  file.SetAttribute(group, "num_rotations", side.num_rotations);
  file.SetAttribute(group, "dim", side.dim);
  for (const auto& [name, number] : kSideNumbers) file.SetAttribute(group, name, side.*number);
  file.Write<double>(group + "/rotation", {side.num_rotations, side.dim, side.dim}, side.rotation);
  file.Write<double>(group + "/eigenvalues", {side.num_rotations, side.dim}, side.eigenvalues);
  WriteVector(file, group + "/clip_error", side.clip_error);
  WriteVector(file, group + "/clip_threshold", side.clip_threshold);
}

SideResult ReadSide(const Hdf5Reader& file, const std::string& group) {
  SideResult side;
  side.num_rotations = file.IntAttribute(group, "num_rotations");
  side.dim = file.IntAttribute(group, "dim");
  for (const auto& [name, number] : kSideNumbers) side.*number = file.DoubleAttribute(group, name);
  side.rotation = file.Read<double>(group + "/rotation", {side.num_rotations, side.dim, side.dim});
  side.eigenvalues = file.Read<double>(group + "/eigenvalues", {side.num_rotations, side.dim});
  side.clip_error = ReadVector(file, group + "/clip_error");
  side.clip_threshold = ReadVector(file, group + "/clip_threshold");
  return side;
}

void WriteArm(Hdf5Writer& file, const std::string& group, const ArmResult& arm) {
  file.CreateGroup(group);
  file.SetAttribute(group, "rows", arm.rows);
  file.SetAttribute(group, "rows_beyond", arm.rows_beyond);
  for (const auto& [name, number] : kArmNumbers) file.SetAttribute(group, name, arm.*number);
}

ArmResult ReadArm(const Hdf5Reader& file, const std::string& group, std::string name) {
  ArmResult arm;
  arm.name = std::move(name);
  arm.rows = file.IntAttribute(group, "rows");
  arm.rows_beyond = file.IntAttribute(group, "rows_beyond");
  for (const auto& [key, number] : kArmNumbers) arm.*number = file.DoubleAttribute(group, key);
  return arm;
}

std::string ChoiceGroup(size_t index) { return "/choice/" + std::to_string(index); }
std::string PointGroup(size_t index) { return "/choice/point/" + std::to_string(index); }

void WriteAutoSide(Hdf5Writer& file, const std::string& group, const AutoSide& side) {
  file.CreateGroup(group);
  file.SetAttribute(group, "num_rotations", side.num_rotations);
  file.SetAttribute(group, "dim", side.dim);
  WriteVector(file, group + "/rotation", side.rotation);
  WriteVector(file, group + "/query_rotation", side.query_rotation);
  WriteVector(file, group + "/pair_scale", side.pair_scale);
  WriteVector(file, group + "/mean", side.mean);
}

AutoSide ReadAutoSide(const Hdf5Reader& file, const std::string& group, int64_t num_kv_heads,
                      int64_t dim, std::string_view what) {
  AutoSide side{.num_rotations = file.IntAttribute(group, "num_rotations"),
                .dim = file.IntAttribute(group, "dim"),
                .rotation = ReadVector(file, group + "/rotation"),
                .query_rotation = ReadVector(file, group + "/query_rotation"),
                .pair_scale = ReadVector(file, group + "/pair_scale"),
                .mean = ReadVector(file, group + "/mean")};
  const auto has = [](const std::vector<double>& values, int64_t rows, int64_t columns) {
    return std::ssize(values) == rows * columns;
  };
  const auto may_have = [&](const std::vector<double>& values, int64_t rows, int64_t columns) {
    return values.empty() || has(values, rows, columns);
  };
  const int64_t n = side.num_rotations;
  if (side.dim != dim || (n != 1 && n != num_kv_heads) || !has(side.rotation, n * dim, dim) ||
      !may_have(side.query_rotation, n * dim, dim) ||
      !may_have(side.pair_scale, num_kv_heads, dim) || !may_have(side.mean, num_kv_heads, dim)) {
    throw InputError(
        fmt::format("{}: {} does not fit {} KV heads of dimension {}; start over with --restart",
                    what, group, num_kv_heads, dim));
  }
  return side;
}

void WriteChoices(Hdf5Writer& file, const LayerResult& result) {
  if (!result.automatic.made) return;
  std::vector<const AutoChoice*> choices = {&result.automatic};
  for (const AutoChoice& other : result.other_choices) choices.push_back(&other);
  std::vector<const AutoSide*> keys, values;
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
      if (same == i) WriteAutoSide(file, group + "/" + name, *(*sides)[i]);
    }
  }
  file.SetAttribute("/choice", "choices", std::ssize(choices));
  file.SetAttribute("/choice", "points", std::ssize(result.auto_arms));
  for (size_t i = 0; i < result.auto_arms.size(); ++i) {
    const auto& [point, arm] = result.auto_arms[i];
    const std::string group = PointGroup(i);
    WriteArm(file, group, arm);
    file.SetAttribute(group, "k_bits", point.k_bits);
    file.SetAttribute(group, "v_bits", point.v_bits);
    file.SetAttribute(group, "k_clip", point.k_clip);
    file.SetAttribute(group, "v_clip", point.v_clip);
  }
}

std::vector<AutoArm> ReadPoints(const Hdf5Reader& file) {
  std::vector<AutoArm> points;
  const auto count = static_cast<size_t>(file.IntAttribute("/choice", "points"));
  for (size_t i = 0; i < count; ++i) {
    const std::string group = PointGroup(i);
    points.push_back({{.k_bits = file.DoubleAttribute(group, "k_bits"),
                       .v_bits = file.DoubleAttribute(group, "v_bits"),
                       .k_clip = file.DoubleAttribute(group, "k_clip"),
                       .v_clip = file.DoubleAttribute(group, "v_clip")},
                      ReadArm(file, group, "auto")});
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
    const auto read = [&](const char* name, int64_t dim, AutoSide AutoChoice::*side) {
      const int64_t same = file.IntAttribute(group, name + std::string("_of"));
      if (same < 0 || same > i) {
        throw InputError(fmt::format("{}: {} has the {} of choice {}; start over with --restart",
                                     what, group, name, same));
      }
      choice.*side = same < i ? choices[static_cast<size_t>(same)].*side
                              : ReadAutoSide(file, group + "/" + name, m.num_kv_heads, dim, what);
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
  Hdf5Writer file(path, Hdf5Writer::Mode::kAtomic);
  file.SetAttribute("/", "format", kFormat);
  file.SetAttribute("/", "format_version", kVersion);
  file.SetAttribute("/", "layer_id", static_cast<int64_t>(result.moments.layer_id));
  WriteMoments(file, "/moments", result.moments);
  WriteVector(file, "/clip_candidates", result.clip_candidates);
  for (const auto& [name, side] : kSides)
    WriteSide(file, std::string("/side/") + name, result.*side);
  std::vector<std::string> names;
  for (const ArmResult& arm : result.arms) {
    names.push_back(arm.name);
    WriteArm(file, "/arm/" + arm.name, arm);
  }
  file.SetAttribute("/", "arms", std::span<const std::string>(names));
  WriteChoices(file, result);
  file.Commit();
}

LayerResult ReadLayerFile(const std::filesystem::path& path) {
  const Hdf5Reader file(path);
  if (file.StringAttribute("/", "format") != kFormat ||
      file.IntAttribute("/", "format_version") != kVersion) {
    throw InputError(path.string() +
                     ": not a layer file of this version of oscar; start over with --restart");
  }
  LayerResult result;
  result.moments =
      ReadMoments(file, "/moments", static_cast<int>(file.IntAttribute("/", "layer_id")));
  result.clip_candidates = ReadVector(file, "/clip_candidates");
  for (const auto& [name, side] : kSides)
    result.*side = ReadSide(file, std::string("/side/") + name);
  for (const std::string& name : file.StringListAttribute("/", "arms")) {
    result.arms.push_back(ReadArm(file, "/arm/" + name, name));
  }
  ReadChoices(file, path.string(), result);
  return result;
}

}  // namespace oscar
