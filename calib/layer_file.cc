// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// See layer_file.h. Layout: /moments as in moments_file.h; /side/<name>, /arm/<name> and /auto
// below, the last with its choice as JSON text.
#include "calib/layer_file.h"

#include <array>
#include <string>
#include <utility>

#include "calib/moments_file.h"
#include "linalg/error.h"

namespace oscar {
namespace {

constexpr const char* kFormat = "oscar-layer";
constexpr int64_t kVersion = 2;

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

void WriteAutoSide(Hdf5Writer& file, const std::string& group, const AutoSide& side) {
  file.CreateGroup(group);
  file.SetAttribute(group, "num_rotations", side.num_rotations);
  file.SetAttribute(group, "dim", side.dim);
  WriteVector(file, group + "/rotation", side.rotation);
  WriteVector(file, group + "/query_rotation", side.query_rotation);
  WriteVector(file, group + "/pair_scale", side.pair_scale);
  WriteVector(file, group + "/mean", side.mean);
}

AutoSide ReadAutoSide(const Hdf5Reader& file, const std::string& group) {
  return {.num_rotations = file.IntAttribute(group, "num_rotations"),
          .dim = file.IntAttribute(group, "dim"),
          .rotation = ReadVector(file, group + "/rotation"),
          .query_rotation = ReadVector(file, group + "/query_rotation"),
          .pair_scale = ReadVector(file, group + "/pair_scale"),
          .mean = ReadVector(file, group + "/mean")};
}

void WriteChoice(Hdf5Writer& file, const AutoChoice& choice) {
  if (!choice.made) return;
  const std::string json = ChoiceToJson(choice).dump();
  const std::vector<uint8_t> text(json.begin(), json.end());
  file.Write<uint8_t>("/auto/choice", {std::ssize(text)}, text);
  WriteAutoSide(file, "/auto/k", choice.k);
  WriteAutoSide(file, "/auto/v", choice.v);
}

AutoChoice ReadChoice(const Hdf5Reader& file, std::string_view what) {
  if (!file.Exists("/auto")) return {};
  const std::vector<uint8_t> text = file.Read<uint8_t>("/auto/choice", {-1});
  AutoChoice choice =
      ChoiceFromJson(ParseStrictJson(std::string(text.begin(), text.end()), what), what);
  choice.k = ReadAutoSide(file, "/auto/k");
  choice.v = ReadAutoSide(file, "/auto/v");
  return choice;
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
    const std::string group = "/arm/" + arm.name;
    file.CreateGroup(group);
    file.SetAttribute(group, "rows", arm.rows);
    file.SetAttribute(group, "rows_beyond", arm.rows_beyond);
    for (const auto& [name, number] : kArmNumbers) file.SetAttribute(group, name, arm.*number);
  }
  file.SetAttribute("/", "arms", std::span<const std::string>(names));
  WriteChoice(file, result.automatic);
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
    const std::string group = "/arm/" + name;
    ArmResult arm;
    arm.name = name;
    arm.rows = file.IntAttribute(group, "rows");
    arm.rows_beyond = file.IntAttribute(group, "rows_beyond");
    for (const auto& [number_name, number] : kArmNumbers)
      arm.*number = file.DoubleAttribute(group, number_name);
    result.arms.push_back(arm);
  }
  result.automatic = ReadChoice(file, path.string());
  return result;
}

}  // namespace oscar
